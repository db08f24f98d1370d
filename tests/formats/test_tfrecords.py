from __future__ import annotations

import gzip
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from commands import run_here
from made_sources import pixels
from penstock.formats.tfrecord.examples import encode_example
from penstock.formats.tfrecord.framing import frame, masked_crc32c
from record_making import classified, detected, image_bytes, write_records


def ten(folder: Path) -> Path:
    return write_records(folder / "ten.tfrecord", [classified(number) for number in range(10)])


# Layouts


def test_classes_and_names_are_recognised(tmp_path: Path) -> None:
    source = ps.TFRecords(ten(tmp_path))
    assert source.classes == ("ash", "elm", "oak")
    assert source.column("label").tolist() == [number % 3 for number in range(10)]
    sample = source[4]
    assert (sample["key"], sample["label"]) == ("trees/4.png", 1)
    np.testing.assert_array_equal(sample["image"], pixels(4, 24, 16))


def test_boxes_come_back_in_pixels_exactly(tmp_path: Path) -> None:
    source = ps.TFRecords(write_records(tmp_path / "a.tfrecord", [detected(n, 641, 479) for n in (3, 0, 7)]))
    assert source.classes == ("crown", "snag")
    expected = [[box + 1, 2, box + 9.5, 20] for box in range(7)]
    np.testing.assert_array_equal(source[2]["boxes"], np.array(expected, np.float32))
    assert source[2]["box_label"].tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert source[1]["boxes"].shape == (0, 4)


def test_plain_names_are_recognised(tmp_path: Path) -> None:
    records = [{"image": image_bytes(number, codec="jpeg"), "label": number + 1} for number in range(3)]
    source = ps.TFRecords(write_records(tmp_path / "a.tfrecord", records))
    assert source.classes == ("0", "1", "2", "3")
    assert source.column("label").tolist() == [1, 2, 3]
    assert source[2]["key"] == "a.tfrecord#2"


def numbered(folder: Path, labels: list[int]) -> Path:
    return write_records(folder / "n.tfrecord", [{"image": image_bytes(1), "label": label} for label in labels])


def test_numbers_that_begin_with_one_fit_as_many_classes(tmp_path: Path) -> None:
    source = ps.TFRecords(numbered(tmp_path, [1, 3, 2]), classes="a,b,c")
    assert source.column("label").tolist() == [0, 2, 1]


def test_numbers_stay_as_they_are_where_they_can(tmp_path: Path) -> None:
    path = numbered(tmp_path, [1, 2, 1])
    assert ps.TFRecords(path, classes="a,b,c").column("label").tolist() == [1, 2, 1]
    assert ps.TFRecords(path, classes="a,b,c", first_class=1).column("label").tolist() == [0, 1, 0]


def test_a_number_that_is_no_class_is_a_problem(tmp_path: Path) -> None:
    source = ps.TFRecords(numbered(tmp_path, [0, 5, -1]), classes="a,b,c")
    assert source.column("label").tolist() == [0, -1, -1]
    assert ["class '5' occurs, and is none of a, b, c" in str(problem) for problem in source.problems()] == [True]
    assert not ps.check(source).ok


def test_a_label_that_is_an_identifier_is_not_a_million_classes(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match="1,000,000,000: that is no class"):
        ps.TFRecords(numbered(tmp_path, [0, 10**9]))


def test_classes_beside_the_files_count(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("fir\nash\nelm\noak\n")
    source = ps.TFRecords(ten(tmp_path))
    assert source.classes == ("fir", "ash", "elm", "oak")
    assert source.column("label")[:3].tolist() == [1, 2, 3]


def test_lists_of_classes_that_differ_between_folders_are_refused(tmp_path: Path) -> None:
    for folder, names in (("a", "fir\nash\n"), ("b", "ash\nfir\n"), ("c", None)):
        (tmp_path / folder).mkdir()
        numbered(tmp_path / folder, [0, 1])
        if names is not None:
            (tmp_path / folder / "classes.txt").write_text(names)
    pattern = str(tmp_path / "*" / "*.tfrecord")
    with pytest.raises(ps.DataError, match=r"b/classes\.txt: it lists ash, fir, and .*a/classes\.txt lists fir, ash"):
        ps.TFRecords(pattern)
    assert ps.TFRecords(pattern, classes="yew,box").classes == ("yew", "box")
    (tmp_path / "b" / "classes.txt").write_text("fir\nash\n")
    assert ps.TFRecords(pattern).classes == ("fir", "ash")


def test_names_without_numbers_are_sorted(tmp_path: Path) -> None:
    records = [{"image": image_bytes(1), "label": name} for name in ("oak", "ash", "oak")]
    source = ps.TFRecords(write_records(tmp_path / "a.tfrecord", records))
    assert source.classes == ("ash", "oak")
    assert source.column("label").tolist() == [1, 0, 1]


def test_fields_are_mapped(tmp_path: Path) -> None:
    records = [
        {
            "img_bytes": image_bytes(number),
            "y": number,
            "note": f"n°{number}",
            "height_m": 1.5 * number,
            "spectrum": np.arange(3 + number, dtype=np.float32),
            "depth_raw": np.full((2, 3), number, "<u2").tobytes(),
            "x1": [1.0], "y1": [2.0], "x2": [3.0], "y2": [4.5], "kind": ["bird"],
        }
        for number in range(2)
    ]  # fmt: skip
    source = ps.TFRecords(
        write_records(tmp_path / "a.tfrecord", records),
        fields={
            "image": "img_bytes",
            "label": "y",
            "note": "note",
            "height": "height_m",
            "spectrum": "spectrum",
            "depth": ps.Field("depth_raw", "array", "uint16", (2, 3)),
            "boxes": ("x1", "y1", "x2", "y2"),
            "box_label": "kind",
        },
        box_units="pixels",
    )
    sample = source[1]
    assert (sample["label"], sample["note"], sample["height"]) == (1, "n°1", 1.5)
    assert sample["spectrum"].tolist() == [0, 1, 2, 3]
    assert sample["depth"].tolist() == [[1] * 3] * 2
    assert sample["boxes"].tolist() == [[1, 2, 3, 4.5]]
    assert source.classes[sample["box_label"][0]] == "bird"


def test_plain_pixels_are_images(tmp_path: Path) -> None:
    records = [{"raw": pixels(number, 6, 5).tobytes(), "y": number} for number in range(4)]
    path = write_records(tmp_path / "a.tfrecord", records)
    fields = {"image": ps.Field("raw", "image", "uint8", (5, 6, 3)), "label": "y"}
    for check in (True, False):
        source = ps.TFRecords(path, fields=fields, check=check)
        assert source.stores_pixels
        batch = next(iter(ps.Flow(source, workers=0).batch(4)))
        np.testing.assert_array_equal(batch["image"], [pixels(number, 6, 5) for number in range(4)])


def test_a_feature_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(
        ps.OptionError, match=r"'image/encode': the first records have no such feature.*image/encoded'\?"
    ):
        ps.TFRecords(ten(tmp_path), fields={"image": "image/encode"})


def test_unknown_features_are_listed(tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.tfrecord", [{"foo": 1, "bar": b"\xff\xfe"}])
    with pytest.raises(ps.OptionError, match=r"bar \(1 of bytes\), foo \(1 int64\).*fields="):
        ps.TFRecords(path)


def test_groups_and_splits_are_known(tmp_path: Path) -> None:
    for split in ("train", "val"):
        records = [{**classified(number), "group": f"site{number % 2}"} for number in range(3)]
        write_records(tmp_path / f"{split}-00000.tfrecord", records)
    source = ps.TFRecords(tmp_path)
    assert source.column("split").tolist() == ["train"] * 3 + ["val"] * 3
    assert source.column("group").tolist() == ["site0", "site1", "site0"] * 2


# Files


def test_a_folder_a_pattern_and_a_list_are_the_same(tmp_path: Path) -> None:
    first = write_records(tmp_path / "x-00000-of-00002", [classified(number) for number in range(3)])
    second = write_records(tmp_path / "x-00001-of-00002", [classified(number) for number in range(3, 5)])
    (tmp_path / "README").write_text("no records")
    for paths in (tmp_path, str(tmp_path / "x-*"), [first, second]):
        assert ps.TFRecords(paths).column("key").tolist() == [f"trees/{number}.png" for number in range(5)]


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zz", zlib.compress)])
def test_compressed_files_read_like_plain_ones(tmp_path: Path, ending: str, pack: Any) -> None:
    plain = ten(tmp_path)
    path = tmp_path / f"ten.tfrecord.{ending}"
    path.write_bytes(pack(plain.read_bytes()))
    source, expected = ps.TFRecords(path), ps.TFRecords(plain)
    for index in range(10):
        np.testing.assert_array_equal(source[index]["image"], expected[index]["image"])
    assert source.origin(0).file == str(path)
    assert [sample["label"] for sample in ps.TFRecords.stream(path).open(0, 0)] == [n % 3 for n in range(10)]


def test_gzip_files_that_were_joined_are_one(tmp_path: Path) -> None:
    data = ten(tmp_path).read_bytes()
    path = tmp_path / "joined.tfrecord.gz"
    path.write_bytes(gzip.compress(data) + gzip.compress(data))
    assert len(ps.TFRecords(path)) == 20


def test_what_compresses_to_nearly_nothing_is_unpacked_whole(tmp_path: Path) -> None:
    records = [{"image": bytes(3_000_000), "label": 1}]
    data = write_records(tmp_path / "a", records).read_bytes()
    path = tmp_path / "a.tfrecord"
    path.write_bytes(gzip.compress(data))
    fields = {"image": ps.Field("image", "image", "uint8", (1000, 1000, 3))}
    assert ps.TFRecords(path, fields=fields)[0]["image"].sum() == 0


def test_without_a_cache_folder_the_index_is_made_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file" / "below"))
    source = ps.TFRecords(ten(tmp_path))
    assert len(pickle.loads(pickle.dumps(source))) == len(source) == 10


def test_an_index_is_kept_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_of_this_session: Path
) -> None:
    path = ten(tmp_path)
    first = ps.TFRecords(path)
    with monkeypatch.context() as patch:
        patch.setattr("penstock.formats.tfrecord.tfrecords.make_index", None)
        assert ps.TFRecords(path).column("key").tolist() == first.column("key").tolist()
    write_records(path, [classified(7)])
    assert ps.TFRecords(path).column("key").tolist() == ["trees/7.png"]


def test_a_broken_index_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    path = ten(tmp_path)
    assert len(ps.TFRecords(path)) == 10
    for file in (tmp_path / "cache").rglob("*.npy"):
        file.write_bytes(b"")
    assert len(ps.TFRecords(path)) == 10


def test_a_file_that_changes_is_not_read_as_the_old_one(tmp_path: Path) -> None:
    path = ten(tmp_path)
    sent = pickle.dumps(ps.TFRecords(path))
    write_records(path, [classified(1)])
    with pytest.raises(ps.DataError, match=r"ten.tfrecord: has changed since it was opened"):
        pickle.loads(sent)


# Bad input


def test_a_flipped_bit_in_a_record_is_told_with_file_record_and_byte(tmp_path: Path) -> None:
    path = ten(tmp_path)
    source = ps.TFRecords(path)
    start = int(source.columns["at.offset"][3])
    data = bytearray(path.read_bytes())
    data[start + 40] ^= 4
    path.write_bytes(data)
    damaged = ps.TFRecords(path)
    with pytest.raises(ps.HopError, match=rf"sample 3 .*ten.tfrecord record 3 at byte {start - 12:,}: its checksum"):
        damaged[3]
    assert damaged[4]["key"] == "trees/4.png"
    found = [problem for problem in ps.check(damaged, decode=True).problems if "checksum" in problem.what]
    assert [problem.file for problem in found] == [str(path)]


@pytest.mark.parametrize("checks_in_reading", [True, False])
def test_check_compares_every_record_with_its_checksum(tmp_path: Path, checks_in_reading: bool) -> None:
    path = ten(tmp_path)
    assert not [problem for problem in ps.check(path).problems if not problem.warning]
    starts = ps.TFRecords(path).columns["at.offset"][[3, 7]].tolist()
    data = bytearray(path.read_bytes())
    for start in starts:
        data[start + 40] ^= 4
    path.write_bytes(data)
    result = ps.check(ps.TFRecords(path, check=checks_in_reading))
    assert [problem.file for problem in result.errors] == [str(path)] * 2
    for number, start, problem in zip((3, 7), starts, result.errors, strict=True):
        assert f"record {number} at byte {start - 12:,}: its checksum does not match" in problem.what
    assert run_here("check", "data", path).exit_code == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_a_flow_names_or_substitutes_a_damaged_record(tmp_path: Path, workers: int) -> None:
    path = write_records(tmp_path / "a.tfrecord", [classified(3) for _ in range(6)])
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    source = ps.TFRecords(path)
    flow = ps.Flow(source, workers=workers).map(ps.augment.Resize(8)).batch(6)
    with pytest.raises(ps.HopError, match=r"sample 5 .*read failed: .*record 5 at byte"):
        next(iter(flow))
    kept = ps.Flow(source, workers=workers, on_bad_sample="substitute").map(ps.augment.Resize(8)).batch(6)
    assert 5 not in next(iter(kept))["index"]


def test_a_flipped_bit_in_a_length_is_told_with_file_record_and_byte(tmp_path: Path) -> None:
    path = ten(tmp_path)
    start = int(ps.TFRecords(path).columns["at.offset"][2]) - 12
    data = bytearray(path.read_bytes())
    data[start] ^= 1
    path.write_bytes(data)
    with pytest.raises(ps.DataError, match=rf"ten.tfrecord: record 2 at byte {start:,}: the checksum of a length"):
        ps.TFRecords(path)


def test_a_file_that_is_cut_is_told_and_all_of_them_at_once(tmp_path: Path) -> None:
    paths = [write_records(tmp_path / f"{n}.tfrecord", [classified(1), classified(2)]) for n in range(3)]
    for path in paths[1:]:
        path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ps.DataError, match="record 1 at byte") as caught:
        ps.TFRecords(paths)
    assert [problem.file for problem in caught.value.problems] == [str(path) for path in paths[1:]]


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    empty = tmp_path / "empty.tfrecord"
    empty.write_bytes(b"")
    for opened in (ps.TFRecords, ps.TFRecords.stream):
        with pytest.raises(ps.DataError, match=r"empty.tfrecord: is empty"):
            opened(empty)
    source = ps.TFRecords([empty, ten(tmp_path)])
    assert len(source) == 10
    assert [problem.warning for problem in source.problems()] == [True]


def test_compression_that_is_not_as_stated_is_told(tmp_path: Path) -> None:
    plain = ten(tmp_path)
    packed = tmp_path / "packed.tfrecord"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    with pytest.raises(ps.DataError, match="is compressed with gzip, and should not be"):
        ps.TFRecords(packed, compression="none")
    with pytest.raises(ps.DataError, match="is not compressed, and compression='zlib' was given"):
        ps.TFRecords(plain, compression="zlib")


def test_compressed_data_that_is_cut_or_damaged_is_told(tmp_path: Path) -> None:
    data = gzip.compress(ten(tmp_path).read_bytes())
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(data[:-200])
    with pytest.raises(ps.DataError, match="its gzip data ends too early, at byte"):
        ps.TFRecords(path)
    path.write_bytes(data[:100] + bytes(50) + data[150:])
    with pytest.raises(ps.DataError, match="its gzip data is damaged before byte"):
        ps.TFRecords(path)


def test_a_text_file_is_no_tfrecord(tmp_path: Path) -> None:
    path = tmp_path / "notes.tfrecord"
    path.write_text("these are only notes, nothing else")
    with pytest.raises(ps.DataError, match="is no TFRecord file, or its beginning is damaged"):
        ps.TFRecords(path)


def test_a_huge_length_is_told_without_using_memory(tmp_path: Path) -> None:
    head = struct.pack("<Q", 2**50)
    path = tmp_path / "huge.tfrecord"
    path.write_bytes(frame(encode_example(classified(1))) + head + struct.pack("<I", masked_crc32c(head)) + bytes(99))
    with pytest.raises(ps.DataError, match="a record of 1,125,899,906,842,624 bytes begins here, and 95 are left"):
        ps.TFRecords(path)
    with pytest.raises(ps.HopError, match="record 1 at byte .* and the file ends before its end"):
        list(ps.TFRecords.stream(path).open(0, 0))


def test_records_of_another_kind_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(b"\x0b\x0b\x0b"))
    with pytest.raises(ps.DataError, match="record at byte 0: .*not a tf.train.Example"):
        ps.TFRecords(path)


def test_boxes_and_classes_that_do_not_fit_together_are_told(tmp_path: Path) -> None:
    wrong = {**detected(2), "image/object/class/label": [1], "image/object/class/text": ["crown"]}
    source = ps.TFRecords(write_records(tmp_path / "a.tfrecord", [detected(1), wrong]))
    with pytest.raises(ps.HopError, match="record 1 at byte .*it has 2 boxes and 1 class of boxes"):
        source[1]


# Streams


def test_a_stream_gives_what_the_source_gives(tmp_path: Path) -> None:
    for number in range(2):
        write_records(tmp_path / f"{number}.tfrecord", [classified(number * 4 + n) for n in range(4)])
    source, stream = ps.TFRecords(tmp_path), ps.TFRecords.stream(tmp_path, classes="ash,elm,oak")
    assert (stream.schema, stream.parts, stream.length) == (source.schema, 2, None)
    found = [sample for part in range(2) for sample in stream.open(part, 0)]
    for index, sample in enumerate(found):
        assert sample["label"] == source[index]["label"]
        np.testing.assert_array_equal(sample["image"], source[index]["image"])


def test_a_stream_flows_with_interleave_and_shuffle(tmp_path: Path) -> None:
    for number in range(3):
        write_records(tmp_path / f"{number}.tfrecord", [classified(number * 4 + n) for n in range(4)])
    stream = ps.TFRecords.stream(tmp_path, classes="ash,elm,oak")
    flow = ps.Flow(stream, seed=3).interleave(2).shuffle(window=5).map(ps.augment.Resize(8)).batch(5)
    labels = np.concatenate([batch["label"] for batch in flow])
    assert sorted(labels.tolist()) == sorted(n % 3 for n in range(12))


def test_a_stream_without_classes_gives_what_the_file_has(tmp_path: Path) -> None:
    stream = ps.TFRecords.stream(numbered(tmp_path, [5, 9]))
    assert stream.schema["label"].kind == "number"
    assert [sample["label"] for sample in stream.open(0, 0)] == [5, 9]


def test_a_stream_names_the_record_that_is_damaged(tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.tfrecord", [classified(1), classified(2)])
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(ps.HopError, match=r"a.tfrecord record 1 at byte [\d,]+: read failed: its checksum"):
        ps.TFRecords.stream(path)
