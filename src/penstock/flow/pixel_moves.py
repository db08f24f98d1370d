"""Steps that move pixels must move what lies on them: boxes, masks, keypoints, further images.

| what moves pixels                                              | is refused                                          |
|----------------------------------------------------------------|-----------------------------------------------------|
| a step of `penstock.augment`, if there are keypoints           | when the plan is built                              |
| a transform of albumentations, torchvision, timm or kornia     | when the plan is built, also inside a function      |
| a function of one field that changes the size                  | at the sample                                       |
| a function of samples that leaves boxes outside of the image   | at the sample                                       |
| any other function, such as `lambda image: image[:, ::-1]`     | never: docs/flow.md says so                         |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.augment.steps import is_geometric
from penstock.errors import OptionError
from penstock.flow.movers import is_of_albumentations, mover_in, on_pixels, on_pixels_of, parts_of
from penstock.flow.pipelines import Pipeline
from penstock.flow.steps import Augment, Map, Step
from penstock.samples import Kind, Sample

CONVERTERS = ("ToImage", "ToTensor", "ToPILImage", "Lambda")
MOST_CHANNELS = 4
TOLERANCE_PX = 1.0

INSTEAD = "Use a step of penstock.augment, which moves all of them, or a function of the whole sample"


def check_moves(kinds: Mapping[str, Kind], before: Sequence[Step], step: Step) -> None:
    """Refuse a step that is known to move pixels and to leave something behind.

    A function of whole samples may take fields out: after one nothing is certain until a sample comes.
    """
    if any(isinstance(one, Map) and one.field is None and not isinstance(one.function, Pipeline) for one in before):
        return
    if isinstance(step, Augment) and is_geometric(step.step):
        _check_points(kinds, step)
    elif isinstance(step, Map) and step.field is not None:
        _check_field(kinds, step, step.field)
    elif isinstance(step, Map) and isinstance(step.function, Pipeline):
        step.function.check_takes(on_pixels(kinds))


def _check_points(kinds: Mapping[str, Kind], step: Augment) -> None:
    points = [name for name, kind in on_pixels(kinds).items() if kind == "points"]
    if points:
        raise OptionError(
            f"{step.name} moves pixels, and {points[0]} would stay: keypoints do not follow the steps of "
            "penstock.augment. Use map with an albumentations pipeline that has keypoint_params, or with a function of "
            "the whole sample."
        )


def _check_field(kinds: Mapping[str, Kind], step: Map, field: str) -> None:
    found = on_pixels(kinds)
    others = [name for name in found if name != field]
    function = step.function.pipeline if isinstance(step.function, Pipeline) else step.function
    mover = mover_in(function) if field in found and others else None
    if mover is not None:
        raise OptionError(
            f"map(…, field={field!r}): {mover} moves pixels, and {' and '.join(others)} would stay. {INSTEAD}: "
            "map(function) without field."
        )


def as_function(step: Any, field: str | None) -> Any:
    """What a user gives to map, as a function on samples."""
    check_torchvision(step, field)
    return Pipeline(step) if is_of_albumentations(step) else step


def check_torchvision(function: Any, field: str | None) -> None:
    """Transforms of torchvision leave numpy arrays as they are, without a word."""
    module, name = type(function).__module__, type(function).__name__
    if not module.startswith("torchvision.transforms"):
        return
    if field is None:
        raise OptionError(f"{name} of torchvision takes an image, not a sample: write map({name}(…), field='image').")
    parts = list(parts_of(function))
    is_own = any(type(part).__module__.split(".")[0] not in ("torchvision", "torch") for part in parts)
    converts = any(type(part).__name__ in CONVERTERS for part in parts)
    if module.startswith("torchvision.transforms.v2") and not (is_own or converts):
        raise OptionError(
            f"{name} of torchvision leaves numpy arrays as they are. Let it begin with a conversion: "
            f"v2.Compose([v2.ToImage(), {name}(…)])."
        )


def check_field_kept_size(field: str, before: Sample, made: Any, kinds: Mapping[str, Kind]) -> None:
    """A function of one field that changes its size leaves behind what lies on its pixels."""
    found = on_pixels_of(before, kinds)
    others = [name for name in found if name != field]
    if found.get(field) not in ("image", "mask") or not others:
        return
    old, new = pixel_size(before[field]), pixel_size(made)
    if old is not None and new is not None and old != new:
        raise OptionError(
            f"the function of field={field!r} made {new[0]}×{new[1]} px of {old[0]}×{old[1]} px, and "
            f"{' and '.join(others)} did not follow. {INSTEAD}"
        )


def check_boxes_inside(before: Sample, after: Sample, kinds: Mapping[str, Kind]) -> None:
    """Boxes that lay inside of their image must do so after functions of the user."""
    for name in (name for name, kind in kinds.items() if kind == "boxes"):
        if _is_outside(after, name, kinds) and not _is_outside(before, name, kinds):
            raise OptionError(
                f"after map {name} reach outside of the image: did a function change the size of the image and leave "
                f"{name} as they were? Change both, or use a step of penstock.augment"
            )


def _is_outside(sample: Sample, boxes: str, kinds: Mapping[str, Kind]) -> bool:
    image = next((name for name, kind in kinds.items() if kind == "image" and name in sample), None)
    size = None if image is None else pixel_size(sample[image])
    values = np.asarray(sample.get(boxes, ()))
    if size is None or values.ndim != 2 or values.shape[1] != 4 or not len(values):
        return False
    return bool((values.reshape(-1, 2, 2).max(axis=(0, 1)) > np.add(size, TOLERANCE_PX)).any())


def pixel_size(image: Any) -> tuple[int, int] | None:
    """Width and height of an image, a mask or frames of one, channels last or first; None if that is not clear."""
    shape = getattr(image, "shape", None)
    if shape is None:
        size = getattr(image, "size", None)  # of Pillow
        return size if isinstance(size, tuple) and len(size) == 2 else None
    if len(shape) == 2:
        return int(shape[1]), int(shape[0])
    if len(shape) not in (3, 4):
        return None
    height, width = shape[-2:] if shape[-1] > MOST_CHANNELS >= shape[-3] else shape[-3:-1]
    return int(width), int(height)
