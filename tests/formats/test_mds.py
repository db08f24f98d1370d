"""MDS shards, written byte by byte as their format says: values, compression, hashes, damage."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from column_making import COUNT, labels, mds_shard, picture, png, write_mds

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": lambda data: pa.compress(data, "zstd", asbytes=True),
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "br": lambda data: pa.compress(data, "brotli", asbytes=True),
    "snappy": lambda data: pa.compress(data, "snappy", asbytes=True),
}


def assert_samples(source: ps.MDS) -> None:
    assert len(source) == COUNT
    for index in range(COUNT):
        sample = source[index]
        np.testing.assert_array_equal(sample["image"], picture(index))
        assert (sample["label"], sample["name"], sample["age"]) == (labels()[index], f"näme {index}", index / 4)
        assert sample["vector"].tolist() == [index, -index, 7]
        assert sample["points"].tolist() == np.arange(2.0 * (index + 1)).reshape(-1, 2).tolist()


def test_every_value_is_read(tmp_path: Path) -> None:
    source = ps.MDS(write_mds(tmp_path / "mds"))
    assert_samples(source)
    assert bytes(source.read(5).data) == png(5) and source.encoded_images
    assert source.column("label").tolist() == labels().tolist()
    assert source.gather("vector", np.array([5, 0])).tolist() == [[5, -5, 7], [0, 0, 7]]
    assert source.shard_numbers(np.arange(COUNT)).tolist() == [0] * 4 + [1 << 32] * 2


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_compressed_shards_are_read(kind: str, tmp_path: Path) -> None:
    assert_samples(ps.MDS(write_mds(tmp_path / "mds", compress=COMPRESSIONS[kind], kind=kind), verify=True))


def test_an_unknown_compression_is_said(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="its compression 'lzma' is not read. Decompress the shards"):
        ps.MDS(write_mds(tmp_path / "mds", compress=bytes, kind="lzma"))


def test_folders_below_are_splits(tmp_path: Path) -> None:
    for split, count in (("train", 5), ("val", 2)):
        write_mds(tmp_path / split, count)
    source = ps.MDS(tmp_path)
    assert source.column("split").tolist() == ["train"] * 5 + ["val"] * 2
    assert source[5]["key"] == "val/shard.00000/0"


def test_a_changed_byte_is_found_by_check_and_by_verify(tmp_path: Path) -> None:
    folder = write_mds(tmp_path / "mds")
    shard = folder / "shard.00001.mds"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1  # in the last number of a vector
    shard.write_bytes(data)
    (problem,) = ps.check(ps.MDS(folder)).errors
    assert problem.file == str(shard) and "its sha1 is" in problem.what
    with pytest.raises(ps.DataError, match=r"shard\.00001\.mds: its sha1 is"):
        ps.MDS(folder, verify=True)


def edited(folder: Path, **changes: Any) -> Path:
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0].update(changes)
    (folder / "index.json").write_text(json.dumps(index))
    return folder


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (0, 9, "it says 9 samples, and index.json 4"),
        (8, 1 << 30, "its offsets lead outside"),
        (4, 0, "do not fill its bytes"),
    ],
)
def test_damaged_tables_of_offsets_are_named(place: int, value: int, words: str, tmp_path: Path) -> None:
    folder = write_mds(tmp_path / "mds")
    data = bytearray((folder / "shard.00000.mds").read_bytes())
    data[place : place + 4] = value.to_bytes(4, "little")
    (folder / "shard.00000.mds").write_bytes(data)
    with pytest.raises(ps.DataError, match=rf"shard\.00000\.mds: it is damaged: .*{words}"):
        ps.MDS(folder)


def test_a_size_that_reaches_outside_is_damage(tmp_path: Path) -> None:
    folder = write_mds(tmp_path / "mds")
    data = bytearray((folder / "shard.00000.mds").read_bytes())
    begin = int.from_bytes(data[4:8], "little")
    data[begin : begin + 4] = (1 << 31).to_bytes(4, "little")
    (folder / "shard.00000.mds").write_bytes(data)
    with pytest.raises(ps.DataError, match="the columns of sample 0 do not fill its bytes"):
        ps.MDS(folder)


def test_cut_and_missing_shards_are_named(tmp_path: Path) -> None:
    folder = write_mds(tmp_path / "mds")
    (folder / "shard.00000.mds").write_bytes(mds_shard(range(4))[:-10])
    with pytest.raises(ps.DataError, match=r"shard\.00000\.mds: it has [\d,]+ bytes and should have [\d,]+"):
        ps.MDS(folder)
    (folder / "shard.00000.mds").unlink()
    (folder / "shard.00001.mds").unlink()
    with pytest.raises(ps.DataError) as error:
        ps.MDS(folder)
    assert [Path(problem.file).name for problem in error.value.problems] == ["shard.00000.mds", "shard.00001.mds"]


def test_a_shard_outside_of_its_folder_is_refused(tmp_path: Path) -> None:
    folder = edited(write_mds(tmp_path / "mds"), raw_data={"basename": "../secret", "bytes": 3, "hashes": {}})
    with pytest.raises(ps.DataError, match="'../secret' leads out of the folder"):
        ps.MDS(folder)


def test_other_versions_and_other_indexes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="format 'mds' version 3 is not read"):
        ps.MDS(edited(write_mds(tmp_path / "one"), version=3))
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "index.json").write_text("[1, 2]")
    with pytest.raises(ps.DataError, match="it is not an index of MDS shards"):
        ps.MDS(tmp_path / "two")


def test_pickled_columns_are_left_out_and_never_read(tmp_path: Path) -> None:
    index = json.loads((write_mds(tmp_path / "mds") / "index.json").read_text())
    for shard in index["shards"]:
        shard["column_encodings"][3] = "pkl"
    (tmp_path / "mds" / "index.json").write_text(json.dumps(index))
    source = ps.MDS(tmp_path / "mds")
    assert "running code from the file" in source.left_out["name"] and "name" not in source.schema
