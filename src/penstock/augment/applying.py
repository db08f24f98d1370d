"""Steps on one sample: the plain way, which every fusion equals.

| kind  | under a geometric step                                                                              |
|-------|-----------------------------------------------------------------------------------------------------|
| image | by the kernel, whose first page states the filter; all frames of a clip alike; outside is `fill`      |
| mask  | the pixel under the centre of each new one, never a mixture; outside is 0                             |
| boxes | see `boxes`; the rows of dropped boxes are dropped from every `box_…` vector of the same length       |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.augment.steps import Geometric, Pixelwise, Uniforms
from penstock.augment.views import HORIZONTAL, VERTICAL, Views
from penstock.codecs import kernel
from penstock.errors import OptionError
from penstock.geometry import Boxes, as_boxes
from penstock.samples import Kind, Sample, Schema

# Boxes under a view: cut to what is seen, scaled, moved, flipped; those of which nothing is seen are dropped.
#
# Coordinates are kept to 1/256 px. In that grid, up to the largest image, every move and flip is exact in float32, so
# that several steps give the same bits one by one as together; only resizing rounds, once.


GRID = 256.0


def seen_boxes(boxes: Boxes, views: Views) -> tuple[Boxes, NDArray[np.bool_]]:
    """The boxes of one sample in the pixels of its view, and which of the boxes these are."""
    crop, resized, part = views.crops[0], views.resized[0], views.parts[0]
    corners = _to_grid(boxes.astype(np.float64).reshape(-1, 2, 2))
    corners = np.clip(corners - crop[:2], 0, crop[2:])
    corners = _to_grid(corners * resized / crop[2:])
    corners = np.clip(corners - part[:2], 0, part[2:])
    for axis, bit in enumerate((HORIZONTAL, VERTICAL)):
        if views.flips[0] & bit:
            corners[:, :, axis] = part[2 + axis] - corners[:, ::-1, axis]
    is_seen = (corners[:, 1] > corners[:, 0]).all(axis=1)
    return corners[is_seen].reshape(-1, 4).astype(np.float32), is_seen


def _to_grid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.rint(values * GRID) / GRID


Kinds = Mapping[str, Kind]


def apply(
    step: Geometric | Pixelwise,
    sample: Sample,
    rng: np.random.Generator | None = None,
    *,
    schema: Schema | Kinds | None = None,
) -> Sample:
    """Do one step to one sample, without a flow; gives a new sample.

    A random step needs a generator. Without a schema, the fields are told by what they look like (`guessed_kinds`).
    """
    kinds = guessed_kinds(sample) if schema is None else kinds_of(schema)
    if step.uniform_count and rng is None:
        raise OptionError(f"{type(step).__name__} is random. Pass rng=numpy.random.default_rng(seed).")
    uniforms = np.zeros((1, 0)) if rng is None else rng.random((1, step.uniform_count))
    if not isinstance(step, Geometric):
        return apply_pixelwise(step, sample, kinds, uniforms)
    sizes = np.array([image_size(sample, kinds)], np.int64)
    return apply_geometric(sample, kinds, step.views(sizes, uniforms))


def apply_geometric(sample: Sample, schema_kinds: Kinds, views: Views) -> Sample:
    """What one view (the only one in `views`) shows of a sample, as a new sample; absent fields stay absent."""
    out = dict(sample)
    for name, kind in schema_kinds.items():
        if name not in sample:
            continue
        if kind == "image":
            out[name] = _seen_image(name, sample[name], views)
        elif kind == "mask":
            out[name] = _seen_mask(name, np.asarray(sample[name]), views)
    return {**out, **_seen_boxes(sample, schema_kinds, views)}


def apply_pixelwise(step: Pixelwise, sample: Sample, schema_kinds: Kinds, uniforms: Uniforms) -> Sample:
    """Every image of a sample after a step on pixels, as a new sample; `uniforms` are 1×uniform_count."""
    images = [name for name, kind in schema_kinds.items() if kind == "image" and name in sample]
    return {**sample, **{name: step.pixels(np.asarray(sample[name])[None], uniforms)[0] for name in images}}


def image_size(sample: Sample, schema_kinds: Kinds) -> tuple[int, int]:
    """Width and height that all images and masks of a sample have."""
    sizes = {}
    for name, kind in schema_kinds.items():
        if kind == "image" and name in sample:
            sizes[name] = _checked_image(name, sample[name]).shape[-2:-4:-1]
        elif kind == "mask" and name in sample:
            sizes[name] = np.shape(sample[name])[:-3:-1]
    if not sizes:
        found = ", ".join(f"{name} ({schema_kinds.get(name, 'no field of the schema')})" for name in sample)
        raise OptionError(
            "crops, resizes and flips need a field of kind image (height×width×3 of uint8) or mask, and a sample has "
            f"{found}. Write a function of the sample for other pixels: map(function)."
        )
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} {width}x{height}" for name, (width, height) in sizes.items())
        raise OptionError(f"the images of one sample must have one size, and there are {found}. Resize them first.")
    width, height = next(iter(sizes.values()))
    return width, height


def kinds_of(schema: Schema | Kinds) -> Kinds:
    """The kind of each field by its name."""
    return {field.name: field.kind for field in schema.fields} if isinstance(schema, Schema) else schema


def guessed_kinds(sample: Sample) -> Kinds:
    """The kinds of the fields of a sample without a schema, by what they look like.

    image: uint8 with three channels last; mask: whole numbers in the size of an image; boxes: a field `boxes`
    with four columns; labels: vectors named `box_…`. Everything else is left alone.
    """
    arrays = {name: value for name, value in sample.items() if isinstance(value, np.ndarray)}
    images = {name: value for name, value in arrays.items() if _looks_like_image(value)}
    shapes = {image.shape[:-1] for image in images.values()}
    kinds: dict[str, Kind] = dict.fromkeys(images, "image")
    for name, value in arrays.items():
        if name == "boxes" and value.ndim == 2 and value.shape[1] == 4:
            kinds[name] = "boxes"
        elif name.startswith("box_") and value.ndim == 1:
            kinds[name] = "labels"
        elif name not in images and value.dtype.kind in "biu" and value.shape in shapes:
            kinds[name] = "mask"
    return kinds


def _looks_like_image(value: NDArray[Any]) -> bool:
    return value.dtype == np.uint8 and value.ndim in (3, 4) and value.shape[-1] == 3


def _checked_image(name: str, value: Any) -> NDArray[np.uint8]:
    image = np.asarray(value)
    if not _looks_like_image(image):
        found = f"{'×'.join(map(str, image.shape))} {image.dtype}"
        raise OptionError(
            f"{name} must be height×width×3 (or frames of it) of uint8 and is {found}. Normalize goes last."
        )
    if 0 in image.shape:
        raise OptionError(f"{name} has no pixels: it is {'×'.join(map(str, image.shape))}.")
    return image


def _seen_image(name: str, value: Any, views: Views) -> NDArray[np.uint8]:
    image = np.ascontiguousarray(_checked_image(name, value))
    height, width = image.shape[-3:-1]
    frames = image.reshape(-1, height, width, 3)
    count = len(frames)
    places = np.zeros((count, 4), np.int64)
    places[:, 1] = np.arange(count) * (height * width * 3)
    places[:, 2:] = width, height
    target = kernel.Target(*views.sizes[0].tolist())
    out = np.empty((count, *target.shape), target.dtype)
    crops, flips = np.repeat(views.kernel_crops, count, axis=0), np.repeat(views.flips, count)
    failures = kernel.pixels_range([image], places, crops, flips, out, target, fill=views.fill)
    if failures:
        raise OptionError(f"{name}: {failures[0].reason}.")
    return out.reshape(*image.shape[:-3], *target.shape)


def _seen_mask(name: str, mask: NDArray[Any], views: Views) -> NDArray[Any]:
    if mask.ndim not in (2, 3):
        raise OptionError(f"{name} must be height×width (or frames of it) and is {'×'.join(map(str, mask.shape))}.")
    columns, has_column = _nearest(views, 0, bool(views.flips[0] & HORIZONTAL))
    rows, has_row = _nearest(views, 1, bool(views.flips[0] & VERTICAL))
    if rows.max() >= mask.shape[-2] or columns.max() >= mask.shape[-1]:
        raise OptionError(f"{name} of {mask.shape[-1]}x{mask.shape[-2]} px is smaller than the image it belongs to.")
    return np.where(has_row[:, None] & has_column, mask[..., rows[:, None], columns], 0).astype(mask.dtype)


def _nearest(views: Views, axis: int, is_flipped: bool) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each new position along an axis the old one under its centre, and whether there is one."""
    start, length = int(views.crops[0, axis]), int(views.crops[0, axis + 2])
    first, count = int(views.parts[0, axis]), int(views.parts[0, axis + 2])
    resized = int(views.resized[0, axis])
    positions = np.arange(first, first + count)
    exists = (positions >= 0) & (positions < resized)
    nearest = start + (2 * np.clip(positions, 0, resized - 1) + 1) * length // (2 * resized)
    return (nearest[::-1], exists[::-1]) if is_flipped else (nearest, exists)


def _seen_boxes(sample: Sample, schema_kinds: Kinds, views: Views) -> Sample:
    names = [name for name, kind in schema_kinds.items() if kind == "boxes" and name in sample]
    beside = [name for name, kind in schema_kinds.items() if kind == "labels" and name.startswith("box_")]
    if len(names) > 1 and beside:
        raise OptionError(f"{' and '.join(names)} are both boxes: it is not clear to which {beside[0]} belongs.")
    out: Sample = {}
    for name in names:
        boxes = as_boxes(sample[name])
        out[name], is_seen = seen_boxes(boxes, views)
        rows = {other: np.asarray(sample[other]) for other in beside if other in sample}
        out.update({other: values[is_seen] for other, values in rows.items() if len(values) == len(boxes)})
    return out
