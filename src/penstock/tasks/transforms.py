"""The user's own transforms on single samples in a flow: a function, or an albumentations pipeline.

Boxes go through a pipeline that has `bbox_params` of the format pascal_voc, and their classes with them; one that
moves pixels and has none is refused. A function `get_transform(augment)` that makes a pipeline may be passed as it is.

What is random in them follows from the sample, so that the same bits come however the flow is run: a function takes
`rng`, a pipeline is seeded before each sample. An image comes back as H×W×3, or 3×H×W as ToTensorV2 gives it, of uint8,
or of floats from 0 to 1, which become levels again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.flow.flow import Flow
from penstock.flow.movers import is_of_albumentations
from penstock.flow.pipelines import IMAGE, Pipeline
from penstock.flow.pixel_moves import check_torchvision
from penstock.flow.steps import takes_rng
from penstock.samples import Sample

AUGMENT = "augment"
SAMPLE_NAMES = ("sample", "item", "example")


def transformed(flow: Flow, transform: Any) -> Flow:
    """A flow with what a user gives as transform."""
    if not callable(transform):
        raise OptionError(f"transform takes a function or an albumentations pipeline, not {type(transform).__name__}.")
    if is_of_albumentations(transform):
        return flow.map(Pipeline(transform, as_image))
    if _first_parameter(transform) == AUGMENT:
        return transformed(flow, transform(**{AUGMENT: True}))
    of_samples = _first_parameter(transform) in SAMPLE_NAMES
    check_torchvision(transform, IMAGE)
    function = (RandomFunction if takes_rng(transform) else PlainFunction)(transform, of_samples)
    return flow.map(function, field=None if of_samples else IMAGE)


class PlainFunction:
    """A function of an image; of the whole sample, if its first parameter is called sample."""

    def __init__(self, function: Callable[..., Any], of_samples: bool) -> None:
        self.func = function  # the name by which fingerprints find the code of the user
        self._finish = _finished_sample if of_samples else as_image

    def __call__(self, value: Any) -> Any:
        return self._finish(self.func(value))


class RandomFunction:
    """A function that takes `rng`: a generator that belongs to this sample alone."""

    def __init__(self, function: Callable[..., Any], of_samples: bool) -> None:
        self.func = function
        self._finish = _finished_sample if of_samples else as_image

    def __call__(self, value: Any, rng: np.random.Generator) -> Any:
        return self._finish(self.func(value, rng=rng))


def _finished_sample(made: Any) -> Sample:
    if not isinstance(made, dict) or IMAGE not in made:
        raise OptionError(f"the transform gave {_described(made)}. It gets a sample as a dict and must return one.")
    return {**made, IMAGE: as_image(made[IMAGE])}


def as_image(value: Any) -> NDArray[Any]:
    """An image as H×W×3 of uint8; what is no image is an error that says what came."""
    image = np.asarray(value)
    if image.ndim == 3 and image.shape[2] != 3 and image.shape[0] == 3:
        image = image.transpose(1, 2, 0)
    if image.ndim != 3 or image.shape[2] != 3:
        raise OptionError(f"the transform gave {_described(value)} as image; expected H×W×3 or 3×H×W.")
    if image.dtype == np.uint8:
        return np.ascontiguousarray(image)
    if image.dtype.kind != "f":
        raise OptionError(f"the transform gave {_described(value)} as image; expected uint8, or floats from 0 to 1.")
    if image.size and not (image.min() >= 0 and image.max() <= 1):
        raise OptionError(
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
