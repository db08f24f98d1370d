"""What a source gives is stored as it is, or refused with the name of the sample; it is never changed in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from made_sources import pixels
from penstock.packing.layout import BATCH_BYTES_LIMIT


class One:
    """A source of three samples with one odd field."""

    def __init__(self, field: ps.Field, value: Any, classes: tuple[str, ...] = ("a", "b")) -> None:
        self.schema = ps.Schema((ps.Field("image", "image"), field), classes)
        self.value = value

    def __len__(self) -> int:
        return 3

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, None)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        sample = {"image": pixels(raw.index)}
        return sample if self.value is None else {**sample, self.schema.fields[1].name: self.value}


REFUSED = [
    (ps.Field("m", "mask"), np.full((24, 32), 767, np.int32), "a mask is H×W of bool, uint8 or uint16"),
    (ps.Field("m", "mask"), np.zeros((24, 32), np.float32), "a mask is H×W"),
    (ps.Field("m", "mask"), np.zeros((24, 32, 3), np.uint8), "a mask is H×W"),
    (ps.Field("second", "image"), np.zeros((4, 4, 3), np.float32), "an image is H×W×3 uint8"),
    (ps.Field("n", "number", "uint8"), 300, "do not fit into uint8"),
    (ps.Field("n", "number", "uint8"), -1, "do not fit into uint8"),
    (ps.Field("n", "number", "float32"), 1e300, "do not fit into float32"),
    (ps.Field("n", "number", "int32"), np.zeros(2, np.int32), "one number is expected"),
    (ps.Field("a", "array", "uint8", (2,)), [0.7, 300.0], "do not fit into uint8"),
    (ps.Field("a", "array", "uint8", (2,)), np.zeros(3, np.uint8), r"the schema says shape \(2,\)"),
    (ps.Field("c", "class"), 7, "class 7 is not one of the 2 classes"),
    (ps.Field("c", "class"), 1.7, "do not fit into int64"),
    (ps.Field("c", "class"), "cat", "are not int64"),
    (ps.Field("boxes", "boxes"), np.zeros((4, 5)), "boxes have shape n×4"),
    (ps.Field("t", "text"), 3, "a text is expected and this is int"),
    (ps.Field("t", "text"), None, "field 't' is missing"),
]


@pytest.mark.parametrize(("field", "value", "reason"), REFUSED)
def test_what_does_not_fit_is_refused_with_the_name_of_the_sample(
    tmp_path: Path, field: ps.Field, value: Any, reason: str
) -> None:
    with pytest.raises(ps.HopError, match=f"sample 0: decode failed: .*{reason}"):
        ps.pack(One(field, value), tmp_path / "one.pack")
    with pytest.raises(ps.PackError, match="there is nothing to pack: 3 samples were skipped.*" + reason):
        ps.pack(One(field, value), tmp_path / "one.pack", on_bad_sample="skip")


ACCEPTED = [
    (ps.Field("m", "mask"), np.full((24, 32), 767, np.uint16), np.uint16),
    (ps.Field("m", "mask"), np.eye(24, 32, dtype=bool), np.bool_),
    (ps.Field("n", "number", "float32"), 0.1, np.float32),
    (ps.Field("n", "number", "int16"), np.int64(-5), np.int16),
    (ps.Field("a", "array", "float32", (2,)), [1.5, float("nan")], np.float32),
    (ps.Field("a", "array", "uint8", (None,)), [], np.uint8),
    (ps.Field("c", "class"), -1, np.int64),
    (ps.Field("boxes", "boxes"), [], np.float32),
    (ps.Field("t", "text"), "mit\ud800Ersatz", None),
]


@pytest.mark.parametrize(("field", "value", "dtype"), ACCEPTED)
def test_what_fits_keeps_its_value(tmp_path: Path, field: ps.Field, value: Any, dtype: Any) -> None:
    found = ps.pack(One(field, value), tmp_path / "one.pack")[1][field.name]
    if dtype is None:
        assert found == "mit\\ud800Ersatz"
        return
    assert np.asarray(found).dtype == dtype
    wanted = np.asarray(value, dtype).reshape(np.shape(found))
    assert np.array_equal(found, wanted, equal_nan=np.dtype(dtype).kind == "f")


def test_a_field_that_holds_nothing_or_cannot_be_stored_is_refused() -> None:
    with pytest.raises(ps.OptionError, match="holds nothing"):
        ps.Field("n", "array", "int8", (0, 3))
    with pytest.raises(ps.OptionError, match="is not a number type"):
        ps.Field("n", "number", "complex64")


def test_record_batches_stay_small_whatever_field_is_large(tmp_path: Path) -> None:
    class Heavy(One):
        def __len__(self) -> int:
            return 60

    source = Heavy(ps.Field("a", "array", "float32", (None,)), np.zeros(1 << 18, np.float32))
    pack = ps.pack(source, tmp_path / "one.pack", shard_mb=20)
    assert len(pack.manifest.shards) == 3
    for shard in pack.manifest.shards:
        with pa.memory_map(str(pack.path / shard.file)) as mapped:
            reader = pa.ipc.open_file(mapped)
            sizes = [reader.get_batch(number).nbytes for number in range(reader.num_record_batches)]
        assert max(sizes) <= BATCH_BYTES_LIMIT


def test_pixels_of_turned_sizes_are_not_mixed_in_raw_rows(tmp_path: Path) -> None:
    class Turned(One):
        def decode(self, raw: ps.Raw) -> dict[str, Any]:
            return {"image": pixels(1, 32, 24) if raw.index else pixels(1, 24, 32), "t": "x"}

    with pytest.raises(ps.OptionError, match="1 has 32x24 px and the first had 24x32"):
        ps.pack(Turned(ps.Field("t", "text"), "x"), tmp_path / "one.pack", codec="raw")


def test_a_class_is_found_by_its_kind_and_not_by_its_name(tmp_path: Path) -> None:
    from penstock.reporting.packs import pack_facts

    pack = ps.pack(One(ps.Field("species", "class"), 1), tmp_path / "one.pack")
    assert pack_facts(pack)["classes"] == {"a": 0, "b": 3}
    assert pack.column("species").tolist() == [1, 1, 1]
    number = ps.pack(One(ps.Field("label", "number", "int64"), 9), tmp_path / "two.pack")
    assert number.column("label").tolist() == [9, 9, 9]


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match=r"list is not a source: it needs schema, len"):
        ps.pack([1, 2, 3], tmp_path / "one.pack")  # type: ignore[arg-type]


def test_a_source_that_cannot_be_pickled_is_refused_before_processes_start(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match=r"cannot be pickled.*executor thread"):
        ps.pack(One(ps.Field("t", "text"), lambda: 1), tmp_path / "one.pack", executor="process")


OPEN = {
    "labels as whole numbers": (ps.Field("odd", "labels"), np.array([1, 0, -1])),
    "labels as small numbers": (ps.Field("odd", "labels"), np.array([1, 0], np.int8)),
    "labels as truth values": (ps.Field("odd", "labels"), np.array([True, False])),
    "labels as float32": (ps.Field("odd", "labels", shape=(2,)), np.array([0.25, 0.5], np.float32)),
    "a whole number": (ps.Field("odd", "number"), np.int32(7)),
    "a number of Python": (ps.Field("odd", "number"), 7),
    "a float": (ps.Field("odd", "number"), 0.5),
    "a mask of truth values": (ps.Field("odd", "mask"), np.eye(4, dtype=bool)),
    "a mask of 16 bits": (ps.Field("odd", "mask"), np.eye(4, dtype=np.uint16) * 999),
}


@pytest.mark.parametrize("which", OPEN)
def test_a_field_without_a_type_keeps_that_of_its_source(which: str, tmp_path: Path) -> None:
    field, value = OPEN[which]
    pack = ps.pack(One(field, value), tmp_path / "one.pack", progress=False)
    for index in range(3):
        found = np.asarray(pack[index]["odd"])
        assert found.dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(found, value)
    assert np.asarray(ps.pack(pack, tmp_path / "two.pack", progress=False)[0]["odd"]).dtype == np.asarray(value).dtype


def test_a_later_sample_of_another_type_is_refused(tmp_path: Path) -> None:
    class Changing(One):
        def decode(self, raw: ps.Raw) -> dict[str, Any]:
            return super().decode(raw) | ({"odd": 0.5} if raw.index == 2 else {})

    with pytest.raises(ps.PenstockError, match="values of type float64 do not fit into int64 without change"):
        ps.pack(Changing(ps.Field("odd", "number"), 7), tmp_path / "one.pack", progress=False)


def test_an_export_keeps_the_type_too(tmp_path: Path) -> None:
    source = One(ps.Field("odd", "labels", shape=(2,)), np.array([1, 0]))
    ps.export(source, tmp_path / "out", to="numpy", progress=False)
    (file,) = (tmp_path / "out").rglob("odd*.npy")
    assert np.load(file).dtype == np.int64
