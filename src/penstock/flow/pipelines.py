"""Pipelines of albumentations as functions on samples: boxes, masks and keypoints go through them with the image.

A pipeline is seeded for each sample, so that the same bits come however a flow is run.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.flow.movers import OnPixels, mover_in, on_pixels_of
from penstock.samples import Kind, Sample

IMAGE, BOXES, KEYPOINTS = "image", "boxes", "keypoints"
BOX_PARAMS = 'bbox_params=A.BboxParams(format="pascal_voc", label_fields=["box_label"])'
POINT_PARAMS = 'keypoint_params=A.KeypointParams(format="xy", remove_invisible=False)'


def _as_it_is(image: Any) -> Any:
    return np.asarray(image)


class Pipeline:
    """An albumentations pipeline: one copy for each thread, seeded for each sample; `finish` is done to its image."""

    def __init__(self, pipeline: Any, finish: Callable[[Any], Any] = _as_it_is) -> None:
        if not hasattr(pipeline, "set_random_seed"):
            raise OptionError(
                f"{type(pipeline).__name__} cannot be seeded for each sample. Put it into albumentations.Compose([…]), "
                "and use albumentations from 1.4.19."
            )
        self.pipeline, self._finish = pipeline, finish
        self._label_field = _label_field(pipeline)
        self._takes_points = _takes_points(pipeline)
        self._mover = mover_in(pipeline)
        self._threads = threading.local()

    def __repr__(self) -> str:  # fingerprints tell pipelines apart by it
        return repr(self.pipeline)

    def __getstate__(self) -> dict[str, Any]:
        return {"pipeline": self.pipeline, "finish": self._finish}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def check_takes(self, on_pixels: Mapping[str, OnPixels]) -> None:
        """Refuse a pipeline that moves pixels and does not take these fields along; masks always follow."""
        if self._mover is None:
            return
        for name, kind in on_pixels.items():
            remedy = self._missing(name, kind)
            if remedy is not None:
                raise OptionError(f"{self._mover} moves pixels, and {name} would stay. {remedy}")

    def _missing(self, name: str, kind: OnPixels) -> str | None:
        """What a pipeline needs so that a field follows; None if it does."""
        if kind == "mask" or name == IMAGE:
            return None
        expected = BOXES if kind == "boxes" else KEYPOINTS if kind == "points" else IMAGE
        if name != expected:
            return f"Pipelines take {expected!r}: rename the field by a map before."
        params, is_taken = (
            (BOX_PARAMS, self._label_field is not None) if kind == "boxes" else (POINT_PARAMS, self._takes_points)
        )
        return None if is_taken else f"Add to the pipeline: A.Compose([…], {params})."

    def __call__(self, sample: Any, rng: np.random.Generator, kinds: Mapping[str, Kind] | None = None) -> Any:
        own = getattr(self._threads, "pipeline", None)
        if own is None:  # a pipeline keeps its generators in itself, so two threads must not share one
            own = self._threads.pipeline = copy.deepcopy(self.pipeline)
        own.set_random_seed(int(rng.integers(2**32)))
        if not isinstance(sample, dict):  # one field
            return self._finish(own(image=np.ascontiguousarray(sample))["image"])
        return self._with_followers(own, sample, kinds or {})

    def _with_followers(self, own: Any, sample: Sample, kinds: Mapping[str, Kind]) -> Sample:
        """Boxes, masks and keypoints follow; dropped boxes are dropped with all that is said of them."""
        found = on_pixels_of(sample, kinds)
        self.check_takes(found)
        masks = [name for name, kind in found.items() if kind == "mask"]
        has_boxes = self._label_field is not None and BOXES in sample
        has_points = self._takes_points and KEYPOINTS in sample
        given: dict[str, Any] = {"image": np.ascontiguousarray(sample[IMAGE])}
        if masks:
            given["masks"] = [np.ascontiguousarray(sample[name]) for name in masks]
        if has_boxes:  # rows are carried instead of classes: whatever else is said of a box goes with it
            boxes = np.asarray(sample[BOXES], np.float32).reshape(-1, 4)
            given |= {"bboxes": boxes.tolist(), str(self._label_field): list(range(len(boxes)))}
        if has_points:
            given["keypoints"] = np.asarray(sample[KEYPOINTS], np.float32).reshape(-1, 2)
        made = own(**given)
        out = {**sample, IMAGE: self._finish(made["image"])}
        out |= {name: np.asarray(mask) for name, mask in zip(masks, made.get("masks", ()), strict=True)}
        if has_points:
            out[KEYPOINTS] = np.asarray(made["keypoints"], np.float32).reshape(-1, 2)
        return {**out, **self._kept_boxes(sample, made)} if has_boxes else out

    def _kept_boxes(self, sample: Sample, made: Mapping[str, Any]) -> Sample:
        rows = np.asarray(made[str(self._label_field)], np.int64).reshape(-1)
        count = len(np.asarray(sample[BOXES]).reshape(-1, 4))
        beside = {name: np.asarray(value) for name, value in sample.items() if name.startswith("box_")}
        kept: Sample = {name: value[rows] for name, value in beside.items() if len(value) == count}
        boxes: NDArray[np.float32] = np.asarray(made["bboxes"], np.float32).reshape(-1, 4)
        return {**kept, BOXES: boxes}


def _label_field(pipeline: Any) -> str | None:
    """The name under which a pipeline takes the classes of boxes; None where it takes no boxes."""
    boxes = getattr(pipeline, "processors", {}).get("bboxes")
    if boxes is None:
        return None
    if boxes.params.format != "pascal_voc":
        raise OptionError(
            f"bbox_params has the format {boxes.params.format!r}; boxes here are 'pascal_voc' (x1 y1 x2 y2)."
        )
    names = list(boxes.params.label_fields or ())
    if len(names) != 1:
        raise OptionError(f"bbox_params has label_fields={names}; it needs one, such as ['category_ids'].")
    return str(names[0])


def _takes_points(pipeline: Any) -> bool:
    points = getattr(pipeline, "processors", {}).get("keypoints")
    if points is None:
        return False
    if points.params.format != "xy":
        raise OptionError(f"keypoint_params has the format {points.params.format!r}; keypoints here are 'xy'.")
    return True
