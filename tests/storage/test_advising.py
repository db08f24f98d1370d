"""Cold data: the system is asked for bytes before they are needed, and told which are no longer."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from made_sources import Pictures
from penstock.storage.mapped import PAGE, stretches

COUNT = 400


def big_pack(folder: Path) -> ps.Pack:
    return ps.pack(_Large(COUNT), folder / "cold.pack", codec="raw")


class _Large(Pictures):
    """Images of several pages each."""

    encoded_images = False
    default_codec = "raw"

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, None)

    def decode(self, raw: ps.Raw) -> dict[str, object]:
        return {"image": np.full((96, 128, 3), raw.index % 256, np.uint8), **self.annotations(raw.index)}


def drop_from_memory(pack: ps.Pack) -> None:
    for shard in pack.path.glob("shard-*"):
        handle = os.open(shard, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


@pytest.fixture
def cold(tmp_path: Path) -> ps.Pack:
    big_pack(tmp_path)
    pack = ps.open(tmp_path / "cold.pack")
    drop_from_memory(pack)
    pack = ps.open(pack.path)
    if pack.resident_share(np.arange(COUNT)) > 0.5:
        pytest.skip("this file system keeps its files in memory")
    return pack


def test_what_is_asked_for_comes_into_memory(cold: ps.Pack) -> None:
    wanted = np.arange(100, 300)
    asked = cold.will_need(wanted)
    assert asked >= 200 * 96 * 128 * 3
    while cold.resident_share(wanted) < 1:  # the test's time limit ends this if nothing is read
        pass


def test_what_was_read_is_in_memory_and_can_be_given_back(cold: ps.Pack) -> None:
    assert (cold[7]["image"] == 7).all()
    cold.give_back(np.arange(COUNT))
    assert (cold[7]["image"] == 7).all()
    assert (cold[8]["image"] == 8).all()


def test_a_flow_asks_for_cold_data_and_gives_the_same_batches(cold: ps.Pack) -> None:
    plan = ps.Flow(cold, seed=1, workers=2).shuffle().batch(16)
    first = [batch["image"].copy() for batch in plan.epoch(0)]
    again = [batch["image"].copy() for batch in plan.epoch(0)]
    assert all((left == right).all() for left, right in zip(first, again, strict=True))


@given(st.lists(st.tuples(st.integers(0, 20 * PAGE), st.integers(0, 3 * PAGE)), max_size=20), st.booleans())
def test_stretches_are_whole_pages_that_cover_what_was_asked(pieces: list[tuple[int, int]], inner: bool) -> None:
    starts = np.array([start for start, _ in pieces], np.int64)
    lengths = np.array([length for _, length in pieces], np.int64)
    pages = stretches(starts, lengths, inner=inner)
    assert (pages % PAGE == 0).all() and (pages[:, 0] < pages[:, 1]).all()
    assert (pages[1:, 0] > pages[:-1, 1]).all()
    covered = {page for start, end in pages.tolist() for page in range(start, end, PAGE)}
    if inner:
        whole = {p for s, n in pieces for p in range(-(-s // PAGE) * PAGE, (s + n) // PAGE * PAGE, PAGE)}
        assert covered == whole
    else:
        touched = {p for s, n in pieces if n for p in range(s // PAGE * PAGE, -(-(s + n) // PAGE) * PAGE, PAGE)}
        assert covered == touched
