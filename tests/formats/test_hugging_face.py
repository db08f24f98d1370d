"""Hugging Face folders: what `datasets` wrote is read as `datasets` reads it, without it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from column_making import CLASSES, COUNT, hugging_face_dataset, picture, png
from penstock.formats.arrow.arrow_columns import ArrowColumn
from penstock.formats.columns.tables import Holds


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    hugging_face_dataset().save_to_disk(tmp_path / "saved", num_shards=2)
    return tmp_path / "saved"


def test_a_saved_dataset_is_what_datasets_reads(saved: Path) -> None:
    source, expected = ps.HuggingFace(saved), datasets.load_from_disk(saved)
    assert source.classes == CLASSES and len(source) == len(expected)
    for index in range(COUNT):
        sample, row = source[index], expected[index]
        np.testing.assert_array_equal(sample["image"], np.asarray(row["image"]))
        assert (sample["label"], sample["caption"], sample["score"]) == (row["label"], row["caption"], row["score"])
    assert source.gather("score", np.array([5, 1])).tolist() == [2.5, 0.5]


def test_reading_is_a_slice_of_the_file(saved: Path) -> None:
    data = ps.HuggingFace(saved).read(4).data
    assert isinstance(data, memoryview) and data.readonly and bytes(data) == png(4)


def test_the_parts_of_a_dict_are_splits(tmp_path: Path) -> None:
    parts = {"train": hugging_face_dataset(4), "validation": hugging_face_dataset(2)}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    source = ps.HuggingFace(tmp_path / "saved")
    assert source.column("split").tolist() == ["train"] * 4 + ["validation"] * 2
    assert len(set(source.column("key"))) == 6


def test_a_selection_that_was_saved_is_only_that(tmp_path: Path) -> None:
    hugging_face_dataset().select([4, 1]).save_to_disk(tmp_path / "saved")
    source = ps.HuggingFace(tmp_path / "saved")
    np.testing.assert_array_equal([source[0]["image"], source[1]["image"]], [picture(4), picture(1)])


@pytest.mark.parametrize("is_stream", [True, False])
def test_plain_arrow_files_of_both_formats_are_read(is_stream: bool, tmp_path: Path) -> None:
    table = pa.table({"image": [png(number) for number in range(5)], "label": ["a", "b", "a", "c", "b"]})
    new = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with new(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    source = ps.HuggingFace(tmp_path / "a.arrow")
    assert source.classes == ("a", "b", "c") and source.column("label").tolist() == [0, 1, 0, 2, 1]
    np.testing.assert_array_equal(source[3]["image"], picture(3))


def test_arrays_of_datasets_have_their_shape(tmp_path: Path) -> None:
    features = datasets.Features({"grid": datasets.Array2D((2, 3), "int16"), "label": datasets.Value("int64")})
    rows = {"grid": [np.full((2, 3), number).tolist() for number in range(3)], "label": [0, 1, 1]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "saved")
    source = ps.HuggingFace(tmp_path / "saved")
    assert source.schema["grid"] == ps.Field("grid", "array", "int16", (2, 3))
    assert source[2]["grid"].tolist() == [[2, 2, 2], [2, 2, 2]]


def test_boxes_have_the_names_of_their_classes(tmp_path: Path) -> None:
    inner = {
        "bbox": datasets.List(datasets.List(datasets.Value("float32"), length=4)),
        "category": datasets.List(datasets.ClassLabel(names=["oak", "elm"])),
    }
    features = datasets.Features({"image": datasets.Image(), "objects": inner})
    objects = [{"bbox": [[1, 1, 5, 6]], "category": [1]}, {"bbox": [], "category": []}]
    images = [{"bytes": png(number), "path": None} for number in range(2)]
    datasets.Dataset.from_dict({"image": images, "objects": objects}, features=features).save_to_disk(
        tmp_path / "saved"
    )
    source = ps.HuggingFace(tmp_path / "saved")
    assert source.classes == ("oak", "elm")
    assert source[0]["boxes"].tolist() == [[1, 1, 6, 7]] and source[0]["box_label"].tolist() == [1]
    packed = ps.pack(source, tmp_path / "a.pack", progress=False)
    assert packed[0]["boxes"].tolist() == [[1, 1, 6, 7]] and packed[1]["boxes"].shape == (0, 4)


def test_datasets_is_not_imported(saved: Path) -> None:
    code = f"import sys, penstock as ps; ps.HuggingFace({str(saved)!r})[0]; print('datasets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_missing_and_broken_files_are_named(saved: Path) -> None:
    file = saved / "data-00001-of-00002.arrow"
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises(ps.DataError, match=r"data-00001-of-00002\.arrow: it cannot be read as Arrow"):
        ps.HuggingFace(saved)
    file.unlink()
    with pytest.raises(ps.DataError, match=r"1 of its 2 files are missing, the first data-00001"):
        ps.HuggingFace(saved)


def test_an_old_selection_beside_the_data_is_refused(saved: Path) -> None:
    state = json.loads((saved / "state.json").read_text())
    (saved / "state.json").write_text(json.dumps({**state, "_indices_data_files": [{"filename": "indices.arrow"}]}))
    with pytest.raises(ps.DataError, match=r"flatten_indices\(\)"):
        ps.HuggingFace(saved)


def test_a_folder_without_arrow_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="neither dataset_dict.json nor state.json nor an .arrow file"):
        ps.HuggingFace(tmp_path)


def test_a_part_of_an_array_begins_where_it_begins() -> None:
    whole = pa.array([b"zero", b"one", None, b"three"])
    column = ArrowColumn([whole.slice(1, 1), whole.slice(3)], Holds("bytes"), "a.arrow")
    assert [bytes(column.value(row)) for row in range(2)] == [b"one", b"three"]
