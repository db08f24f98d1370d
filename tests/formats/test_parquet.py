"""Parquet: images in columns, row groups that are decoded once, and broken files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from column_making import CLASSES, COUNT, hugging_face_dataset, labels, picture, png, write_parquet
from penstock.formats.arrow import parquet
from penstock.formats.columns.kept import Kept


def test_images_and_labels_are_found_by_what_they_hold(tmp_path: Path) -> None:
    source = ps.Parquet(write_parquet(tmp_path / "a.parquet"))
    assert source.taken == {"image": "photo", "label": "label", "score": "score"}
    assert source.encoded_images and source.classes == CLASSES
    for index in (5, 0, 3):
        assert bytes(source.read(index).data) == png(index)
        assert source[index]["label"] == labels()[index] and source[index]["score"] == index / 2
    assert source.shard_numbers(np.arange(COUNT)).tolist() == [0, 0, 1, 1, 2, 2]


def test_what_datasets_writes_is_read_with_its_names(tmp_path: Path) -> None:
    hugging_face_dataset().to_parquet(tmp_path / "train-00000-of-00001.parquet")
    source = ps.Parquet(tmp_path)
    assert source.classes == CLASSES
    assert source[4]["split"] == "train" and source[4]["caption"] == "picture 4 é"
    np.testing.assert_array_equal(source[4]["image"], picture(4))


@pytest.mark.parametrize("others", [("dog", "cat", "owl"), ("cat", "dog"), None])
def test_class_names_that_differ_between_files_are_refused(others: tuple[str, ...] | None, tmp_path: Path) -> None:
    """Class 0 is a cat in one file and a dog in the other: read as one source, half of the labels would be wrong."""
    first = hugging_face_dataset()
    kind = datasets.Value("int64") if others is None else datasets.ClassLabel(names=list(others))
    first.to_parquet(tmp_path / "a.parquet")
    first.select([0, 1]).cast_column("label", kind).to_parquet(tmp_path / "b.parquet")
    named = ", ".join(others or ["none"])
    message = rf"b\.parquet: column 'label' has the classes {named}, and cat, dog, owl in the first file"
    with pytest.raises(ps.DataError, match=message):
        ps.Parquet(tmp_path)
    joined = ps.concat([ps.Parquet(tmp_path / "a.parquet"), ps.Parquet(tmp_path / "b.parquet")])
    names = [joined.schema.classes[joined[index]["label"]] for index in (0, 1, COUNT, COUNT + 1)]
    assert names == ["cat", "dog", *(others or ("0", "1"))[:2]]


def test_boxes_come_as_corners(tmp_path: Path) -> None:
    objects = [{"bbox": [[1.0, 2.0, 3.0, 4.0]] * number, "category": [number] * number} for number in range(3)]
    pq.write_table(
        pa.table({"image": [png(number) for number in range(3)], "objects": objects}), tmp_path / "a.parquet"
    )
    source = ps.Parquet(tmp_path / "a.parquet")
    assert source[2]["boxes"].tolist() == [[1, 2, 4, 6]] * 2 and source[2]["box_label"].tolist() == [2, 2]
    assert source[0]["boxes"].shape == (0, 4)
    assert source.classes == ("0", "1", "2")
    same = ps.Parquet(tmp_path / "a.parquet", box_format="xyxy")
    assert same[1]["boxes"].tolist() == [[1, 2, 3, 4]]


def test_a_row_group_is_decoded_once_while_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ps.Parquet(write_parquet(tmp_path / "a.parquet"))
    decoded: list[int] = []
    original = parquet.ParquetRows._decoded

    def counted(self: Any, number: int, leaf: Any) -> Any:
        decoded.append(number)
        return original(self, number, leaf)

    monkeypatch.setattr(parquet.ParquetRows, "_decoded", counted)
    for index in (2, 3, 2, 5, 4, 3):
        source.read(index)
    assert decoded == [1, 2]


def test_no_more_is_kept_than_allowed_and_the_last_piece_always() -> None:
    kept: Kept[str] = Kept(100)
    made = []

    def get(name: str, size: int) -> str:
        def make() -> tuple[str, int]:
            made.append(name)
            return name, size

        return kept.get(name, make)

    assert [get(name, 40) for name in "abab"] == list("abab")
    assert made == ["a", "b"]
    get("c", 40)
    assert kept.bytes == 80
    get("large", 1000)
    assert kept.bytes == 1000
    get("large", 1000)
    get("b", 40)
    assert made == ["a", "b", "c", "large", "b"]


def test_a_window_shuffle_takes_group_after_group(tmp_path: Path) -> None:
    source = ps.Parquet(write_parquet(tmp_path / "a.parquet", 12, row_group_size=3))
    order = [index for batch in ps.Flow(source, seed=2).shuffle(window=1).batch(3) for index in batch["index"]]
    assert sorted(order) == list(range(12))
    assert all(len({index // 3 for index in order[start : start + 3]}) == 1 for start in range(0, 12, 3))


def test_large_row_groups_are_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ps.Parquet(write_parquet(tmp_path / "a.parquet"))
    assert source.problems() == []
    monkeypatch.setattr(parquet, "LARGE_GROUP_BYTES", 10)
    (problem,) = source.problems()
    assert problem.warning and "shuffle(window=…)" in problem.remedy


def test_rows_without_a_value(tmp_path: Path) -> None:
    table = pa.table(
        {
            "image": pa.array([png(0), None, png(2)], pa.binary()),
            "label": pa.array([1, None, 0], pa.int32()),
            "text": pa.array(["a", None, "c"]),
            "count": pa.array([1, None, 3]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    source = ps.Parquet(tmp_path / "a.parquet", fields={"text": "text"})
    assert source.column("label").tolist() == [1, -1, 0]
    with pytest.raises(ValueError, match="it has no bytes here"):
        source.read(1)
    with pytest.raises(ps.HopError, match=r"sample 1 .*a\.parquet, row 1: .*it has no bytes here"):
        list(ps.Flow(source, seed=1).map(ps.augment.Resize((4, 4))).batch(3))
    with pytest.raises(ps.HopError, match=r"sample 1 .*a\.parquet, row 1: read failed: it has no bytes here"):
        source[1]
    assert source.annotations(1)["text"] == ""


@pytest.mark.parametrize("kind", ["parquet", "parquet without statistics", "arrow"])
def test_nulls_that_are_read_as_something_are_counted_in_a_warning(tmp_path: Path, kind: str) -> None:
    table = pa.table(
        {
            "image": [png(number) for number in range(4)],
            "text": pa.array(["a", None, "", None]),
            "boxes": pa.array([[[1.0, 2.0, 3.0, 4.0]], [], None, []], pa.list_(pa.list_(pa.float32(), 4))),
            "key": pa.array(["first", None, "third", "fourth"]),
        }
    )
    file = tmp_path / ("a.arrow" if kind == "arrow" else "a.parquet")
    if kind == "arrow":
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(table, file, row_group_size=2, write_statistics="without" not in kind)
    source = ps.open(file)
    assert [(Path(one.file), one.what, one.warning) for one in source.problems()] == [
        (file, "column 'boxes' has 1 row without a value (null): read as no boxes", True),
        (file, "column 'text' has 2 rows without a value (null): read as an empty text", True),
        (file, "column 'key' has 1 row without a value (null): the number of the row is the key", True),
    ]
    assert [sample["text"] for sample in source] == ["a", "", "", ""]
    assert source.column("key").tolist() == ["first", "1", "third", "fourth"]


def test_a_null_array_is_an_error_that_names_file_and_row(tmp_path: Path) -> None:
    rows = pa.array([[1, 2], [3, 4], None], pa.list_(pa.int64()))
    pq.write_table(pa.table({"image": [png(number) for number in range(3)], "grid": rows}), tmp_path / "a.parquet")
    with pytest.raises(ps.DataError, match=r"a\.parquet: column 'grid' has rows without a value: 1"):
        ps.Parquet(tmp_path / "a.parquet", fields={"grid": "grid"})
    fixed = pa.array([[1, 2], [3, 4], None], pa.list_(pa.int64(), 2))
    pq.write_table(pa.table({"image": [png(number) for number in range(3)], "grid": fixed}), tmp_path / "b.parquet")
    source = ps.Parquet(tmp_path / "b.parquet")
    assert source[1]["grid"].tolist() == [3, 4]
    with pytest.raises(
        ps.HopError, match=r"b\.parquet, row 2: decode failed: column 'grid' has no value here \(null\)"
    ):
        source[2]


def test_whole_numbers_that_are_missing_leave_their_column_out(tmp_path: Path) -> None:
    counts, scores = pa.array([1, None, 3]), pa.array([1.5, None, 3.5])
    images = [png(number) for number in range(3)]
    pq.write_table(pa.table({"image": images, "count": counts, "score": scores}), tmp_path / "a.parquet")
    source = ps.Parquet(tmp_path / "a.parquet")
    assert source.left_out == {"count": "rows without a value: 1"}
    assert np.isnan(source[1]["score"]) and np.isnan(source.gather("score", np.arange(3))[1])
    with pytest.raises(ps.DataError, match="column 'count' has rows without a value: 1"):
        ps.Parquet(tmp_path / "a.parquet", fields={"number": "count"})


def test_lists_of_different_lengths_name_their_sample(tmp_path: Path) -> None:
    rows = pa.array([[[1, 2], [3, 4]], [[1, 2], [3]]], pa.list_(pa.list_(pa.int64())))
    pq.write_table(pa.table({"image": [png(0), png(1)], "grid": rows}), tmp_path / "a.parquet")
    with pytest.raises(ps.HopError, match=r"sample 1 in .*a\.parquet, row 1: decode failed"):
        list(ps.Flow(ps.Parquet(tmp_path / "a.parquet"), seed=1).batch(2, shapes="ragged"))


def test_broken_files_are_data_errors(tmp_path: Path) -> None:
    data = write_parquet(tmp_path / "a.parquet").read_bytes()
    for size in (0, 3, len(data) // 2, len(data) - 1):
        (tmp_path / "a.parquet").write_bytes(data[:size])
        with pytest.raises(ps.DataError, match=r"a\.parquet: it cannot be read as Parquet"):
            ps.Parquet(tmp_path / "a.parquet")


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    data = bytearray(write_parquet(tmp_path / "a.parquet", row_group_size=6).read_bytes())
    source = ps.Parquet(tmp_path / "a.parquet", image="photo")
    data[4:40] = bytes(36)
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(ps.DataError, match="column 'photo' of row group 0 cannot be read"):
        ps.Parquet(tmp_path / "a.parquet", image="photo")
    assert len(source) == COUNT


def test_nested_values_are_left_out_with_the_reason(tmp_path: Path) -> None:
    rows = pa.table({"image": [png(0)], "when": pa.array([0], pa.timestamp("s")), "words": [["a", "b"]]})
    pq.write_table(rows, tmp_path / "a.parquet")
    source = ps.Parquet(tmp_path / "a.parquet")
    assert set(source.left_out) == {"when", "words"} and "timestamp" in source.left_out["when"]


def test_a_file_whose_only_column_lacks_values_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"number": pa.array([1, None, 3])}), tmp_path / "a.parquet")
    with pytest.raises(ps.DataError, match=r"a.parquet: no column can be a field \(number: rows without a value: 1\)"):
        ps.Parquet(tmp_path / "a.parquet")


def test_a_warning_about_a_column_names_the_file(tmp_path: Path) -> None:
    table = pa.table({"photo": [png(0), png(1)], "when": pa.array([1, 2], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet")
    (problem,) = ps.Parquet(tmp_path / "a.parquet").problems()
    assert problem.file.endswith("a.parquet") and "column 'when' is not used" in problem.what


def test_pages_that_do_not_have_their_checksum_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"image": [png(number) for number in range(COUNT)], "score": [float(n) for n in range(COUNT)]})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    assert ps.Parquet(path)[3]["score"] == 3.0
    content = bytearray(path.read_bytes())
    place = content.index(np.arange(COUNT, dtype="<f8").tobytes())
    content[place + 3 * 8 + 6] ^= 1  # 3.0 becomes another number
    path.write_bytes(content)
    with pytest.raises(ps.DataError, match="column 'score' of row group 0 cannot be read .*CRC|checksum"):
        ps.Parquet(path)[3]
