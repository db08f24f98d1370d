"""What moves pixels, as far as it can be known before it runs, and which fields lie on them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, Literal

from penstock.samples import Kind, Sample

OnPixels = Literal["image", "mask", "boxes", "points"]

POINTS = re.compile(r"key_?points?|landmarks?")
LIBRARIES = ("torchvision", "timm", "kornia")
ALBUMENTATIONS = ("albumentations", "albumentationsx")
MOVING_WORDS = re.compile(
    r"Crop|Flip|Rotat|Affine|Perspective|Resize|Pad|Elastic|Shear|Translate|ThinPlate|Transpose|Zoom|ScaleJitter"
    r"|Mosaic|Fisheye|AutoAugment|RandAugment|TrivialAugment|AugMix"
)
STAYING = ("BaseDropout", "PixelDropout", "MaskDropout", "NoOp", "Morphological", "OverlayElements")
# Functions of cv2, numpy, torchvision and Pillow whose names mean one thing only.
MOVING_NAMES = {"fliplr", "flipud", "rot90", "hflip", "vflip", "warpAffine", "warpPerspective", "FLIP_LEFT_RIGHT"}
MOST_DEPTH = 3  # functions that call functions that hold a transform


def on_pixels(kinds: Mapping[str, Kind]) -> dict[str, OnPixels]:
    """The fields that lie on the pixels of a sample; keypoints have no kind of their own and are known by name."""
    found: dict[str, OnPixels] = {}
    for name, kind in kinds.items():
        if kind in ("image", "mask", "boxes"):
            found[name] = kind
        elif kind in ("array", "labels") and POINTS.search(name.lower()):
            found[name] = "points"
    return found


def on_pixels_of(sample: Sample, kinds: Mapping[str, Kind]) -> dict[str, OnPixels]:
    """The same for one sample, whose functions may have added fields and taken others out."""
    return on_pixels({name: kinds.get(name, "array") for name in sample})


def is_of_albumentations(value: Any) -> bool:
    """Whether an object is a transform or a pipeline of albumentations, or was derived from one."""
    return not isinstance(value, type) and _is_of(value, ALBUMENTATIONS)


def mover_in(function: Any, depth: int = 0) -> str | None:
    """The first transform in a function or a pipeline that is known to move pixels, by its name."""
    if isinstance(function, FunctionType):
        return _mover_in_code(function, depth)
    for part in parts_of(function):
        if _is_mover(part):
            return type(part).__name__
    inner = getattr(function, "func", None)  # functools.partial
    return None if inner is None else mover_in(inner, depth)


def _mover_in_code(function: FunctionType, depth: int) -> str | None:
    """What a function holds or names: its closure, the globals that it uses, the methods that it calls."""
    named = MOVING_NAMES.intersection(function.__code__.co_names)
    if named:
        return min(named)
    try:
        found = inspect.getclosurevars(function)
    except ValueError:  # a cell that is still empty
        return None
    for value in (*found.nonlocals.values(), *found.globals.values()):
        if not isinstance(value, FunctionType) or depth < MOST_DEPTH:
            mover = mover_in(value, depth + 1)
            if mover is not None:
                return mover
    return None


def parts_of(transform: Any) -> Iterator[Any]:
    """A transform, and all that it is composed of; what is never applied (p=0) is left out."""
    is_known = not isinstance(transform, type) and _is_of(transform, (*LIBRARIES, *ALBUMENTATIONS, "torch"))
    if not is_known or getattr(transform, "p", None) == 0:
        return
    yield transform
    inner = getattr(transform, "transforms", None)
    if not isinstance(inner, Iterable):
        children = getattr(transform, "children", None)  # of a torch module
        inner = children() if callable(children) else ()
    for one in inner:
        yield from parts_of(one)


def _is_of(value: Any, libraries: Sequence[str]) -> bool:
    """Whether a class of these libraries is among those that an object was made of."""
    return any(kind.__module__.split(".")[0] in libraries for kind in type(value).__mro__)


def _is_mover(transform: Any) -> bool:
    kinds = type(transform).__mro__
    if is_of_albumentations(transform):
        names = {kind.__name__ for kind in kinds}
        return "DualTransform" in names and not names.intersection(STAYING)
    return any(kind.__module__.split(".")[0] in LIBRARIES and MOVING_WORDS.search(kind.__name__) for kind in kinds)
