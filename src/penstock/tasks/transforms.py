"""The user's own transforms on single samples in a flow: a function, or an albumentations pipeline.

Boxes go through a pipeline that has `bbox_params` of the format pascal_voc, and their classes with them; a function
`get_transform(augment)` that makes such a pipeline may be passed as it is.

What is random in them follows from the sample, so that the same bits come however the flow is run: a function takes
`rng`, a pipeline is seeded before each sample. An image comes back as H×W×3, or 3×H×W as ToTensorV2 gives it, of uint8,
or of floats from 0 to 1, which become levels again.
"""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import RecipeError
from penstock.flow.steps import takes_rng
from penstock.samples import Sample

IMAGE, BOXES, BOX_LABEL = "image", "boxes", "box_label"
AUGMENT = "augment"
SAMPLE_NAMES = ("sample", "item", "example")


def own_transform(transform: Any) -> Callable[..., Sample]:
    """What `Flow.map` takes, made of what a user gives."""
    if not callable(transform):
        raise RecipeError(f"transform takes a function or an albumentations pipeline, not {type(transform).__name__}.")
    if type(transform).__module__.split(".")[0] in ("albumentations", "albumentationsx"):
        return Pipeline(transform)
    if _first_parameter(transform) == AUGMENT:
        return own_transform(transform(**{AUGMENT: True}))
    return RandomFunction(transform) if takes_rng(transform) else PlainFunction(transform)


class PlainFunction:
    """A function of an image; of the whole sample, where its first parameter is called sample."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.func = function  # the name by which fingerprints find the code of the user
        self._of_samples = _first_parameter(function) in SAMPLE_NAMES

    def __call__(self, sample: Sample) -> Sample:
        return _applied(self.func, self._of_samples, sample)


class RandomFunction:
    """A function that takes `rng`: a generator that belongs to this sample alone."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.func = function
        self._of_samples = _first_parameter(function) in SAMPLE_NAMES

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        return _applied(self.func, self._of_samples, sample, rng=rng)


def _applied(function: Callable[..., Any], of_samples: bool, sample: Sample, **more: Any) -> Sample:
    made = function(sample if of_samples else sample[IMAGE], **more)
    if not of_samples:
        image = as_image(made)
        return {**sample, IMAGE: unmoved(image, np.asarray(sample[IMAGE])) if BOXES in sample else image}
    if not isinstance(made, dict) or IMAGE not in made:
        raise RecipeError(f"the transform gave {_described(made)}. It gets a sample as a dict and must return one.")
    return {**made, IMAGE: as_image(made[IMAGE])}


class Pipeline:
    """An albumentations pipeline: one copy for each thread, seeded for each sample."""

    def __init__(self, pipeline: Any) -> None:
        if not hasattr(pipeline, "set_random_seed"):
            raise RecipeError(
                f"{type(pipeline).__name__} cannot be seeded for each sample. Put it into albumentations.Compose([…]), "
                "and use albumentations from 1.4.19."
            )
        self.pipeline = pipeline
        self._label_field = _label_field(pipeline)
        self._threads = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {"pipeline": self.pipeline}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["pipeline"])  # type: ignore[misc]

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        own = getattr(self._threads, "pipeline", None)
        if own is None:  # a pipeline keeps its generators in itself, so two threads must not share one
            own = self._threads.pipeline = copy.deepcopy(self.pipeline)
        own.set_random_seed(int(rng.integers(2**32)))
        image = np.ascontiguousarray(sample[IMAGE])
        if BOXES in sample:
            return self._with_boxes(own, sample, image)
        return {**sample, IMAGE: as_image(own(image=image)["image"])}

    def _with_boxes(self, own: Any, sample: Sample, image: NDArray[Any]) -> Sample:
        """Boxes follow; those that the pipeline drops are dropped with their classes."""
        if self._label_field is None:
            made = own(image=image)
            return {**sample, IMAGE: unmoved(as_image(made["image"]), image)}
        labels = np.asarray(sample[BOX_LABEL]).tolist()
        given = {"bboxes": np.asarray(sample[BOXES]).tolist(), self._label_field: labels}
        made = own(image=image, **given)
        boxes = np.asarray(made["bboxes"], np.float32).reshape(-1, 4)
        kept = np.asarray(made[self._label_field], np.int64).reshape(-1)
        return {**sample, IMAGE: as_image(made["image"]), BOXES: boxes, BOX_LABEL: kept}


def _label_field(pipeline: Any) -> str | None:
    """The name under which a pipeline takes the classes of boxes; None where it takes no boxes."""
    boxes = getattr(pipeline, "processors", {}).get("bboxes")
    if boxes is None:
        return None
    if boxes.params.format != "pascal_voc":
        raise RecipeError(
            f"bbox_params has the format {boxes.params.format!r}; boxes here are 'pascal_voc' (x1 y1 x2 y2)."
        )
    names = list(boxes.params.label_fields or ())
    if len(names) != 1:
        raise RecipeError(f"bbox_params has label_fields={names}; it needs one, such as ['category_ids'].")
    return str(names[0])


def unmoved(image: NDArray[Any], before: NDArray[Any]) -> NDArray[Any]:
    """An image beside which boxes stay as they are: it must have kept its size."""
    if image.shape != before.shape:
        raise RecipeError(
            f"the transform made {image.shape[1]}×{image.shape[0]} px of {before.shape[1]}×{before.shape[0]} px, and "
            "boxes do not follow. Give the pipeline bbox_params, or write a function of the whole sample."
        )
    return image


def as_image(value: Any) -> NDArray[Any]:
    """An image as H×W×3 of uint8; what is no image is an error that says what came."""
    image = np.asarray(value)
    if image.ndim == 3 and image.shape[2] != 3 and image.shape[0] == 3:
        image = image.transpose(1, 2, 0)
    if image.ndim != 3 or image.shape[2] != 3:
        raise RecipeError(f"the transform gave {_described(value)} as image; expected H×W×3 or 3×H×W.")
    if image.dtype == np.uint8:
        return np.ascontiguousarray(image)
    if image.dtype.kind != "f":
        raise RecipeError(f"the transform gave {_described(value)} as image; expected uint8, or floats from 0 to 1.")
    if image.size and not (image.min() >= 0 and image.max() <= 1):
        raise RecipeError(
            f"the transform gave floats from {image.min():.3g} to {image.max():.3g} as image; expected 0 to 1. "
            "Normalising belongs to the task, so that evaluation does the same: leave Normalize out of the transform "
            "and use normalize of the task."
        )
    levels: NDArray[np.uint8] = np.rint(np.ascontiguousarray(image) * 255).astype(np.uint8)
    return levels


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{'×'.join(map(str, shape))} of {value.dtype}"


def _first_parameter(function: Callable[..., Any]) -> str | None:
    try:
        return next(iter(inspect.signature(function).parameters), None)
    except (TypeError, ValueError):  # written in C, without a signature
        return None
