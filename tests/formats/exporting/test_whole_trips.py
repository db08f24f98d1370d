"""An export that `ps.open` reads again is the data that it was made from.

Compared sample by sample: splits and groups, classes in their order, the types and values of all fields.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from exporting_trips import bare_key
from made_sources import pixels

SPLITS = ("train", "val", "gap")
# Neither sorted nor all in use: both would be lost by a reader that takes its classes from the labels.
CLASSES = ("wolf", "cat", "ape", "never")
COUNT = 12


class Made:
    """Twelve samples in four groups, three splits, and fields of some kinds."""

    def __init__(self, fields: tuple[ps.Field, ...], classes: tuple[str, ...] = CLASSES) -> None:
        self.schema = ps.Schema(fields, classes)

    def __len__(self) -> int:
        return COUNT

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, None)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {field.name: _value(field, raw.index, self.schema) for field in self.schema.fields} | _place(
            raw.index, "frame" in self.schema
        )

    def column(self, name: str) -> np.ndarray[Any, Any]:
        if name not in ("key", "group", "split"):
            raise KeyError(name)
        return np.array([_place(index, "frame" in self.schema)[name] for index in range(COUNT)], object)


def _place(index: int, is_frame: bool) -> dict[str, str]:
    site = index // 3
    key = f"video{site}#{index % 3}" if is_frame else f"site{site}/n{index:02d}"
    group = f"animal{site % 3}" if is_frame else f"flight {site}"
    return {"key": key, "group": group, "split": SPLITS[site % 3]}


def _value(field: ps.Field, index: int, schema: ps.Schema) -> Any:
    rng = np.random.default_rng(index)
    count = index % 3
    if field.name == "frame":
        return np.int32(index % 3)
    if field.name == "time":
        return np.float64(index % 3 / 25)
    if field.kind == "image":
        return pixels(index)
    if field.kind == "mask":
        return rng.integers(0, 9, (24, 32)).astype(np.uint8)
    if field.kind == "class":
        return index % 3
    if field.kind == "boxes":
        corners = rng.integers(0, 10, (count, 2)).astype(np.float32)
        return np.concatenate([corners, corners + rng.integers(1, 9, (count, 2)) + np.float32(0.25)], axis=1)
    if field.name == "box_label":
        return rng.integers(0, 3, count)
    if field.kind == "text":
        return f"número {index}"
    shape = tuple(count if side is None else side for side in field.shape or ())
    low, high = (0, 2) if field.kind == "labels" else (0, 100)
    return rng.integers(low, high, shape).astype(field.dtype)[()]


IMAGE = ps.Field("image", "image")
KINDS: dict[str, tuple[ps.Field, ...]] = {
    "plain": (IMAGE,),
    "classes": (IMAGE, ps.Field("label", "class")),
    "boxes": (IMAGE, ps.Field("boxes", "boxes"), ps.Field("box_label", "labels", "int64")),
    "fields": (
        IMAGE,
        ps.Field("label", "class"),
        ps.Field("weight", "number", "float32"),
        ps.Field("age", "number", "int16"),
        ps.Field("caption", "text"),
        ps.Field("vector", "array", "int16", (4,)),
        ps.Field("flags", "labels", "int8", (3,)),
    ),
    "masks": (IMAGE, ps.Field("label", "class"), ps.Field("mask", "mask")),
    "all": (
        IMAGE,
        ps.Field("label", "class"),
        ps.Field("boxes", "boxes"),
        ps.Field("box_label", "labels", "int64"),
    ),
    "frames": (
        IMAGE,
        ps.Field("labels", "labels", "int8", (len(CLASSES),)),
        ps.Field("time", "number", "float64"),
        ps.Field("frame", "number", "int32"),
    ),
}
ANY_KIND = ("tfrecord", "hdf5", "directory", "webdataset", "numpy")
OF_BOXES = ("yolo", "coco", "voc", "csv")
# TFRecord has no numbers of 64 bits, and boxes are parts of the image; YOLO writes those in ten decimals.
ROUNDED = (("tfrecord", "boxes"), ("yolo", "boxes"), ("tfrecord", "number"))
TRIPS = [
    *((to, "auto", kind) for to in ANY_KIND for kind in KINDS),
    *((to, "auto", kind) for to in OF_BOXES for kind in ("boxes", "all")),
    *(("directory", "numbered", kind) for kind in ("classes", "boxes")),
    *(("numpy", "npz", kind) for kind in ("classes", "boxes", "frames")),
    ("hdf5", "deepethogram", "frames"),
]


@pytest.fixture(scope="module")
def pack_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ps.Pack]:
    folder, made = tmp_path_factory.mktemp("packs"), {}

    def pack(kind: str) -> ps.Pack:
        if kind not in made:
            classes = () if kind == "plain" else CLASSES
            made[kind] = ps.pack(Made(KINDS[kind], classes), folder / f"{kind}.pack", codec="png")
        return made[kind]

    return pack


def samples_of(source: ps.Source) -> dict[str, dict[str, Any]]:
    samples = [source.decode(source.read(index)) for index in range(len(source))]
    return {bare_key(sample["key"].replace("gap/", "")): sample for sample in samples}


@pytest.mark.parametrize(("to", "layout", "kind"), TRIPS)
def test_an_export_is_the_data_again(
    to: str, layout: str, kind: str, pack_of: Callable[[str], ps.Pack], tmp_path: Path
) -> None:
    pack = pack_of(kind)
    codec = {} if to == "numpy" else {"codec": "png"}  # frames of videos would become JPEG
    made = ps.export(pack, tmp_path / "out", to=to, layout=layout, **codec)
    again = ps.open(made.path)
    kept = [field for field in pack.schema.fields if field.name not in made.left_out]
    assert {field.name: (field.kind, field.dtype, field.shape) for field in again.schema.fields} == {
        field.name: (field.kind, field.dtype, field.shape) for field in kept
    }
    assert again.schema.classes == pack.schema.classes
    before, after = samples_of(pack), samples_of(again)
    assert before.keys() == after.keys()
    for key, sample in before.items():
        assert after[key]["group"] == sample["group"] and after[key]["split"] == sample["split"], key
        for field in kept:
            value, expected = after[key][field.name], sample[field.name]
            if field.kind == "text":
                assert value == expected
            elif (to, field.kind) in ROUNDED:
                np.testing.assert_allclose(value, expected, rtol=1e-7, atol=1e-5)
            else:
                np.testing.assert_array_equal(value, expected, err_msg=field.name)
                assert np.asarray(value).dtype == np.asarray(expected).dtype, field.name


@pytest.mark.parametrize("to", [*ANY_KIND, *OF_BOXES])
def test_a_training_from_an_export_has_the_same_splits_and_no_gap(
    to: str, pack_of: Callable[[str], ps.Pack], tmp_path: Path
) -> None:
    from penstock.training.data_splits import training_data
    from penstock.training.options import DataOptions

    made = ps.export(pack_of("boxes"), tmp_path / "out", to=to)
    both = [training_data(path, DataOptions()) for path in (pack_of("boxes").path, made.path)]
    for part in ("train", "val"):
        packed, exported = (samples_of(getattr(data, part)).keys() for data in both)
        assert packed == exported and len(packed) == 3 * {"train": 2, "val": 1}[part]


@pytest.mark.parametrize("to", ["tfrecord", "webdataset", "hdf5", "coco", "voc", "yolo"])
def test_splits_are_told_by_names_without_export_yaml(
    to: str, pack_of: Callable[[str], ps.Pack], tmp_path: Path
) -> None:
    pack = pack_of("boxes")
    made = ps.export(pack, tmp_path / "out", to=to)
    for name in ("export.yaml", "samples.csv"):
        (made.path / name).unlink(missing_ok=True)
    before, after = samples_of(pack), samples_of(ps.open(made.path))
    assert {key: sample["split"] for key, sample in after.items()} == {
        key: sample["split"] for key, sample in before.items()
    }
