"""Arrow and Parquet files whose numbers lead out of the file, or that say things no writer would say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from column_making import hugging_face_dataset, png
from penstock.storage import free_memory


def write_arrow(path: Path, columns: dict[str, pa.Array], metadata: dict[str, str] | None = None) -> Path:
    table = pa.table(columns).replace_schema_metadata(metadata)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


def with_offsets(kind: pa.DataType, offsets: list[int], values: Any) -> pa.Array:
    """An array whose offsets nobody checked."""
    data = pa.py_buffer(values) if isinstance(values, bytes) else None
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32).tobytes())]
    if data is not None:
        return pa.Array.from_buffers(kind, len(offsets) - 1, [*buffers, data])
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers, children=[values])


def read_all(source: Any) -> None:
    for index in range(len(source)):
        source[index]


WILD = {
    "bytes": lambda: with_offsets(pa.binary(), [0, 1 << 30, 12], b"x" * 12),
    "bytes, backwards": lambda: with_offsets(pa.binary(), [0, 12, 4], b"x" * 12),
    "text": lambda: with_offsets(pa.string(), [0, 1 << 30, 12], b"x" * 12),
    "list": lambda: with_offsets(pa.list_(pa.int64()), [0, 1 << 28, 2], pa.array([1, 2], pa.int64())),
    "dictionary": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 1 << 20], pa.int32()), pa.array(["a", "b"]), safe=False
    ),
}


@pytest.mark.parametrize("kind", WILD)
def test_offsets_that_lead_out_of_an_arrow_file_are_refused(kind: str, tmp_path: Path) -> None:
    column = WILD[kind]()
    path = write_arrow(tmp_path / "a.arrow", {"value": column, "number": pa.array([1, 2])})
    with pytest.raises(ps.PenstockError, match=r"is damaged|no column|cannot be read|no image"):
        read_all(ps.HuggingFace(path))


def test_two_columns_of_one_name_are_named(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array([1]), pa.array([2])], schema=schema))
    with pytest.raises(ps.DataError, match="two columns are called 'a'"):
        ps.HuggingFace(tmp_path / "a.arrow")


@pytest.mark.parametrize("noted", [7, ["x", "y"], [-1, 2], [1 << 62, 1 << 62], {"a": 1}])
def test_shapes_that_a_dataset_notes_wrongly_change_nothing(noted: Any, tmp_path: Path) -> None:
    features = {"info": {"features": {"pixel": {"shape": noted, "names": 5, "_type": "Array2D"}}}}
    column = pa.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], pa.list_(pa.list_(pa.int64())))
    path = write_arrow(tmp_path / "a.arrow", {"pixel": column}, {"huggingface": json.dumps(features)})
    source = ps.HuggingFace(path, fields={"pixel": "pixel"})
    try:
        assert np.asarray(source[1]["pixel"]).tolist() == [[5, 6], [7, 8]]
    except ps.PenstockError:
        assert noted == [1 << 62, 1 << 62]


def test_a_number_that_is_missing_in_a_list_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"value": [[1, 2], [3, None]]}), tmp_path / "a.parquet")
    source = ps.Parquet(tmp_path / "a.parquet")
    assert source[0]["value"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="a number is missing"):
        source.decode(source.read(1))


@pytest.mark.parametrize("entry", ["x.arrow", [], 5, {"filename": 3}, {}])
def test_a_saved_dataset_that_lists_no_files_is_named(entry: Any, tmp_path: Path) -> None:
    hugging_face_dataset().save_to_disk(tmp_path / "d")
    state = json.loads((tmp_path / "d" / "state.json").read_text())
    (tmp_path / "d" / "state.json").write_text(json.dumps({**state, "_data_files": [entry]}))
    with pytest.raises(ps.DataError, match=r"state.json.*_data_files does not name files"):
        ps.open(tmp_path / "d")


@pytest.mark.parametrize("listed", [5, "train", {"train": 1}])
def test_splits_that_are_not_a_list_are_named(listed: Any, tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": listed}))
    with pytest.raises(ps.DataError, match="splits is not a list"):
        ps.open(tmp_path)


def parquet(path: Path) -> bytes:
    table = pa.table({"photo": pa.array([png(number) for number in range(4)]), "label": list("abab")})
    pq.write_table(table, path, row_group_size=2)
    return path.read_bytes()


def test_names_in_parquet_that_are_not_utf8_are_an_error_of_the_file(tmp_path: Path) -> None:
    data = parquet(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").write_bytes(data.replace(b"photo", b"\xff\xfeoto"))
    with pytest.raises(ps.DataError, match="cannot be read as Parquet"):
        ps.open(tmp_path / "a.parquet")


def test_row_counts_of_parquet_that_do_not_add_up_are_an_error_of_the_file(tmp_path: Path) -> None:
    """In the footer, counts are zigzag numbers: 2 is 0x04, 4 is 0x08, and 0x01 is −1."""
    data = parquet(tmp_path / "a.parquet")
    refused = 0
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    counts = [at for at in range(footer, len(data) - 8) if data[at] in (0x04, 0x08)]  # zigzag 2 and 4
    for at in counts:
        (tmp_path / "a.parquet").write_bytes(data[:at] + b"\x01" + data[at + 1 :])
        try:
            read_all(ps.open(tmp_path / "a.parquet"))
        except (ps.PenstockError, ValueError):  # ValueError: the short reason of one sample
            refused += 1
    assert refused > 5


def test_a_list_in_a_cell_of_a_table_of_boxes_is_a_named_problem(tmp_path: Path) -> None:
    columns = {name: [[1.0, 2.0]] for name in ("xmin", "ymin", "xmax", "ymax")}
    pq.write_table(pa.table({"image_path": [["a.png", "b.png"]], "label": [["a"]], **columns}), tmp_path / "a.parquet")
    with pytest.raises(ps.DataError):
        ps.pack(ps.Boxes(tmp_path / "a.parquet"), tmp_path / "o.pack")


BIG = b"x" * (4 << 20)


def test_a_value_that_repeats_in_parquet_does_not_fill_the_memory(tmp_path: Path) -> None:
    """4 MB that 4,000 rows point to: 16 GB from a file of a few kilobytes."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), pa.array([png(0) + BIG]))
    pq.write_table(pa.table({"photo": column}), tmp_path / "a.parquet", compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 20_000
    with pytest.raises(ps.DataError, match="more than 500 times"):
        ps.Parquet(tmp_path / "a.parquet", image="photo")[0]


def test_a_value_that_repeats_in_arrow_does_not_fill_the_memory(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), pa.array([png(0) + BIG]))
    path = write_arrow(tmp_path / "a.arrow", {"photo": column})
    with pytest.raises(ps.DataError, match="more than 500 times"):
        ps.HuggingFace(path)


@pytest.mark.parametrize("kind", [ps.Parquet, ps.Boxes, ps.Images])
def test_rows_that_repeat_in_parquet_do_not_fill_the_memory(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal rows take no room in a file: a billion of them, with the usual limits, are these two million."""
    monkeypatch.setattr(free_memory, "SMALL_BYTES", 1 << 20)
    monkeypatch.setattr(free_memory, "LARGEST_RATIO", 100)
    names = ("image", "label", "xmin", "ymin", "xmax", "ymax")
    pq.write_table(pa.table([pa.array(np.zeros(2_000_000, np.int8))] * 6, names), tmp_path / "a.parquet")
    with pytest.raises(ps.DataError, match="more than 100 times"):
        kind(tmp_path / "a.parquet")[0]


def test_large_repeats_that_fit_are_read(tmp_path: Path) -> None:
    """More than the step of one read: the same value in every row, and all of them come."""
    value = png(0) + b"x" * (2 << 20)
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 100, pa.int32()), pa.array([value, png(1)]))
    pq.write_table(pa.table({"photo": column, "number": list(range(200))}), tmp_path / "a.parquet", compression=None)
    source = ps.Parquet(tmp_path / "a.parquet", image="photo")
    assert [bytes(source.read(index).data) == (png(1) if index % 2 else value) for index in range(200)] == [True] * 200
