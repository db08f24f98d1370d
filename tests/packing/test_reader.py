"""A pack is a Source: mapped, zero-copy, safe in threads and processes, and open to other programs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pytest

import penstock as ps
from made_sources import EveryKind, Pictures, Reels, same_sample
from penstock.packing import shards


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> ps.Pack:
    return ps.pack(EveryKind(80), tmp_path_factory.mktemp("packs") / "all.pack")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> ps.Pack:
    return ps.pack(Pictures(60, "jpeg"), tmp_path_factory.mktemp("packs") / "pictures.pack")


def test_reading_is_a_view_of_the_mapped_file(pictures: ps.Pack) -> None:
    first, again = pictures.read(7).data, pictures.read(7).data
    assert isinstance(first, memoryview) and first.readonly
    assert np.frombuffer(first, np.uint8).ctypes.data == np.frombuffer(again, np.uint8).ctypes.data


def test_no_descriptor_stays_open(pictures: ps.Pack) -> None:
    fresh = ps.open(pictures.path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    fresh[3]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_eight_threads_read_the_same_as_one(pack: ps.Pack) -> None:
    source = EveryKind(80)
    fresh = ps.open(pack.path)
    with ThreadPoolExecutor(8) as pool:
        samples = list(pool.map(fresh.__getitem__, list(range(80)) * 4))
    assert all(same_sample(samples[number], source.decode(source.read(number % 80))) for number in range(320))


class Told(EveryKind):
    """Whatever an annotation may be but arrays, beside images of 40 KB."""

    schema = ps.Schema(
        tuple(field for field in EveryKind.schema.fields if field.kind not in ("array", "mask")),
        EveryKind.schema.classes,
    )

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        sample = super().decode(raw)
        kept = {field.name: sample[field.name] for field in self.schema.fields}
        return {**kept, "image": np.random.default_rng(raw.index).integers(0, 256, (120, 120, 3)).astype(np.uint8)}


def test_annotations_of_many_are_those_of_each_whatever_batch_they_are_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "BATCH_BYTES", 200_000)
    pack = ps.pack(Told(60), tmp_path / "told.pack", split="train=0.5,val=0.5", shard_mb=1)
    assert len(pack.manifest.shards) > 1
    order = np.random.default_rng(3).permutation(60)
    for index, values in zip(order.tolist(), pack.annotations_many(order), strict=True):
        assert list(values) == list(pack.annotations(index))
        assert {name: type(value) for name, value in values.items()} == {
            name: type(value) for name, value in pack.annotations(index).items()
        }
        assert same_sample(values, pack.annotations(index))
    assert pack.annotations_many(order[:0]) == []


def test_many_are_not_read_at_once_where_each_is_checked(pictures: ps.Pack) -> None:
    def memory(size: int) -> memoryview:
        raise AssertionError("what is mapped needs no memory")

    assert ps.Pack(pictures.path, verify=True).read_many(range(3), memory) == [None] * 3
    together = [read.raw for read in pictures.read_many([5, 2], memory) if read is not None]
    assert together == [pictures.read(5), pictures.read(2)]


def test_a_pack_is_pickled_as_its_path(pack: ps.Pack) -> None:
    pack[0]
    content = pickle.dumps(pack)
    assert len(content) < 1000
    assert same_sample(pickle.loads(content)[5], pack[5])


def test_a_pickled_pack_works_in_another_process(pack: ps.Pack) -> None:
    code = f"import pickle; print(pickle.loads({pickle.dumps(pack)!r})[5]['caption'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "número 5", done.stderr


def test_negative_numbers_count_from_the_end_and_others_are_refused(pack: ps.Pack) -> None:
    assert pack[-1]["caption"] == "número 79"
    with pytest.raises(IndexError, match="sample 80 does not exist: there are 80 samples"):
        pack[80]


def test_columns_are_read_without_decoding(pack: ps.Pack) -> None:
    assert pack.column("label").tolist() == [number % 2 for number in range(80)]
    assert pack.column("caption")[3] == "número 3"
    assert pack.column("vector").shape == (80, 4)
    with pytest.raises(ps.OptionError, match="another length in every sample"):
        pack.column("boxes")
    with pytest.raises(KeyError, match="Did you mean 'caption'"):
        pack.column("captoin")


def test_a_split_is_a_source(pack: ps.Pack) -> None:
    train, val = pack.split("train"), pack.split("val")
    assert len(train) + len(val) == 80 and train.classes == ("cat", "dog")
    names = {train[index]["caption"] for index in range(len(train))}
    assert names.isdisjoint({val[index]["caption"] for index in range(len(val))})
    assert train.column("label").tolist() == [train[index]["label"] for index in range(len(train))]


def test_verify_on_read_accepts_what_is_whole(pack: ps.Pack) -> None:
    careful = ps.open(pack.path, verify=True)
    assert all(same_sample(careful[index], pack[index]) for index in range(0, 80, 7))


def test_frames_of_a_group_of_pictures_come_in_any_order(tmp_path: Path) -> None:
    reels = Reels(30, 25, size=(64, 48))
    smooth = ps.pack(Smooth(30, 25, size=(64, 48)), tmp_path / "smooth.pack", codec="h264", shard_mb=1)
    for index in (54, 0, 11, 12, 29, 30, 31, 53, 5):
        sample, original = smooth[index], Smooth(30, 25, size=(64, 48))
        wanted = original.decode(original.read(index))
        assert sample["frame"] == wanted["frame"] and sample["key"] == wanted["key"]
        assert np.abs(sample["image"].astype(int) - wanted["image"]).mean() < 4
    assert len(smooth) == len(reels)
    smooth.verify()


class Smooth(Reels):
    """Frames that a video codec keeps well: brightness tells the frame."""

    def __init__(self, *lengths: int, size: tuple[int, int]) -> None:
        super().__init__(*lengths, size=size)
        for part in self.parts:
            part.stream = self._streaming(part.frames, size)  # type: ignore[method-assign]

    @staticmethod
    def _streaming(frames: int, size: tuple[int, int]):  # type: ignore[no-untyped-def]
        def stream(start: int = 0):  # type: ignore[no-untyped-def]
            for frame in range(start, frames):
                yield ps.Raw(frame, np.full((size[1], size[0], 3), 20 + 6 * frame, np.uint8))

        return stream


def test_concat_joins_packs_and_their_classes(tmp_path: Path) -> None:
    class Others(Pictures):
        schema = ps.Schema(Pictures.schema.fields, ("b", "z", "a"))

    first = ps.pack(Pictures(10), tmp_path / "first.pack")
    second = ps.pack(Others(10), tmp_path / "second.pack")
    both = ps.concat([first, second])
    assert both.classes == ("a", "b", "c", "z") and len(both) == 20
    names = [both.classes[both[index]["label"]] for index in range(20)]
    assert names == [["a", "b", "c"][i % 3] for i in range(10)] + [["b", "z", "a"][i % 3] for i in range(10)]
    assert both.column("label").tolist() == [both[index]["label"] for index in range(20)]
    assert len(ps.pack(both, tmp_path / "both.pack")) == 20


def test_concat_refuses_other_fields(pack: ps.Pack, pictures: ps.Pack) -> None:
    with pytest.raises(ps.OptionError, match="source 1 has other fields than source 0"):
        ps.concat([pack, pictures])


# Other programs open the same files.


def test_pyarrow_opens_a_shard(pack: ps.Pack) -> None:
    with pa.memory_map(str(pack.path / "shard-00000.arrow")) as file:
        table = pa.ipc.open_file(file).read_all()
    assert table.num_rows == 80 and table["caption"][3].as_py() == "número 3"
    assert np.allclose(table["boxes"][3].as_py(), pack[3]["boxes"])


def test_polars_opens_a_shard(pack: ps.Pack) -> None:
    frame = polars.read_ipc(pack.path / "shard-00000.arrow")
    assert frame["label"].to_list() == pack.column("label").tolist()
    assert frame["image"][4] == bytes(pack.read(4).data)


def test_duckdb_queries_a_table_of_it(pack: ps.Pack) -> None:
    shards = pack.table()  # duckdb finds it by its name
    assert shards.num_rows == 80
    found = duckdb.sql("select label, count(*) as n from shards group by label order by label").fetchall()
    assert found == [(0, 40), (1, 40)]


def test_hugging_face_opens_it_both_ways(pictures: ps.Pack, tmp_path: Path) -> None:
    import datasets

    dataset = pictures.to_hf()
    assert len(dataset) == 60 and dataset[7]["label"] == 7 % 3
    assert np.array_equal(np.asarray(dataset[7]["image"]), pictures[7]["image"])
    files = str(pictures.path / "shard-*.arrow")
    loaded = datasets.load_dataset("arrow", data_files=files, split="train", cache_dir=str(tmp_path))
    assert loaded["key"][7] == "pictures/7.jpeg"


def test_a_part_of_a_pack_is_packed_with_its_bytes_kept(pictures: ps.Pack, tmp_path: Path) -> None:
    for number, source in enumerate((pictures.split("train"), ps.concat([pictures, pictures]))):
        again = ps.pack(source, tmp_path / f"{number}.pack")
        assert again.manifest.codec == "kept"
        assert bytes(again.read(3).data) == bytes(source.read(3).data)


def test_groups_stay_whole_when_a_pack_and_raw_data_are_joined(tmp_path: Path) -> None:
    first = ps.pack(Pictures(40, group_size=4), tmp_path / "first.pack")
    both = ps.pack(ps.concat([first, Pictures(40, group_size=4)]), tmp_path / "both.pack")
    splits, groups = both.column("split"), both.column("group")
    assert all(len(set(splits[groups == group])) == 1 for group in np.unique(groups))


def test_own_sources_without_columns_can_be_cut_and_joined(tmp_path: Path) -> None:
    assert len(ps.pack(ps.Subset(EveryKind(20), range(5)), tmp_path / "few.pack")) == 5
    assert len(ps.pack(ps.concat([EveryKind(4), EveryKind(3)]), tmp_path / "both.pack")) == 7


def test_verify_on_read_finds_an_index_that_points_elsewhere(tmp_path: Path) -> None:
    pack = ps.pack(Pictures(10), tmp_path / "one.pack")
    careful = ps.open(pack.path, verify=True)
    for name in ("offset", "length"):
        column = careful.columns[name].copy()
        column[1] = column[2]
        careful.columns[name] = column
    careful._offset, careful._length = careful.columns["offset"].data, careful.columns["length"].data
    with pytest.raises(ps.PackError, match="index.arrow is damaged: sample 1 is not where"):
        careful[1]
    assert careful[3]["key"] == "pictures/3.png"
