"""Splits keep groups whole, follow the fractions, and always come to an end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from made_sources import Pictures, Reels
from penstock.packing.splits import GAP, assign_splits, cut_in_order

FRACTIONS = {"train": 0.8, "val": 0.2}


def assign(
    counts: list[int], labels: np.ndarray | None = None, fractions: dict[str, float] = FRACTIONS, seed: int = 0
) -> np.ndarray:
    groups = [f"group {number}" for number in range(len(counts))]
    table = np.zeros((len(counts), 0), np.int64) if labels is None else labels
    return assign_splits(groups, np.array(counts, np.int64), table, fractions, seed)


@given(
    counts=st.lists(st.integers(1, 50), min_size=2, max_size=60),
    classes=st.integers(0, 5),
    shares=st.sampled_from([{"train": 0.8, "val": 0.2}, {"train": 0.6, "val": 0.2, "test": 0.2}, {"a": 0.5, "b": 0.5}]),
    seed=st.integers(0, 10),
)
@settings(max_examples=200, deadline=None)
def test_every_group_gets_a_split_and_no_split_is_empty(
    counts: list[int], classes: int, shares: dict[str, float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, (len(counts), classes))
    codes = assign(counts, labels, shares, seed)
    assert codes.shape == (len(counts),) and codes.min() >= 0 and codes.max() < len(shares)
    assert len(set(codes.tolist())) == min(len(shares), len(counts))
    assert np.array_equal(codes, assign(counts, labels, shares, seed))


def test_another_seed_gives_another_split() -> None:
    assert not np.array_equal(assign([1] * 50, seed=0), assign([1] * 50, seed=1))


def test_every_class_is_cut_by_the_fractions() -> None:
    classes = np.repeat([0, 1, 2], [500, 50, 10])
    codes = assign([1] * len(classes), np.eye(3, dtype=np.int64)[classes])
    assert [(codes[classes == number] == 1).sum() for number in range(3)] == [100, 10, 2]


def test_a_rare_behaviour_is_on_both_sides_when_two_videos_have_it() -> None:
    labels = np.array([[100, 0]] * 18 + [[90, 5], [80, 9]])
    for seed in range(20):
        codes = assign([100] * 20, labels, seed=seed)
        assert sorted(codes[18:].tolist()) == [0, 1]
        assert 1 <= (codes == 1).sum() <= 6


def test_a_class_in_one_video_only_ends_in_one_split_without_looping() -> None:
    codes = assign([100] * 4, np.array([[100, 0]] * 3 + [[90, 10]]))
    assert (codes == 1).sum() == 1


def test_split_keeps_a_group_whole(tmp_path: Path) -> None:
    pack = ps.pack(Pictures(60, group_size=7), tmp_path / "one.pack")
    splits = pack.column("split")
    for group in np.unique(pack.column("group")):
        assert len(set(splits[pack.column("group") == group])) == 1
    assert pack.splits["train"] + pack.splits["val"] == 60 and pack.splits["val"] > 0


def test_split_keeps_a_video_whole(tmp_path: Path) -> None:
    pack = ps.pack(Reels(40, 30, 20, 10), tmp_path / "one.pack")
    splits = pack.column("split")
    assert all(len(set(splits[pack.column("group") == group])) == 1 for group in np.unique(pack.column("group")))


def test_one_video_is_split_in_time_with_a_gap(tmp_path: Path) -> None:
    pack = ps.pack(Reels(300), tmp_path / "one.pack")
    splits = pack.column("split").tolist()
    changes = [name for name, before in zip(splits, ["", *splits], strict=False) if name != before]
    assert changes == ["train", GAP, "val"]
    assert pack.splits[GAP] == 24 and pack.splits["train"] + pack.splits["val"] == 276
    assert "cut in its own order" in pack.manifest.notes["split"]


def test_a_video_too_short_to_divide_stays_whole_and_says_so(tmp_path: Path) -> None:
    pack = ps.pack(Reels(10), tmp_path / "one.pack")
    assert pack.splits == {"train": 10, "val": 0}
    assert "too short to divide" in pack.manifest.notes["split"]


@given(st.integers(1, 5000), st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_blocks_leave_the_guard_between_them(expected: int, guard: int) -> None:
    blocks = cut_in_order(expected, FRACTIONS, lambda position: guard)
    if blocks is None:
        return
    codes = [blocks.code(position) for position in range(expected + 5)]
    assert codes.count(-1) == guard
    assert abs(codes.count(0) - 0.8 * expected) <= 0.25 * expected
    assert sorted(set(codes) - {-1}) == [0, 1]
    assert codes == [0] * codes.count(0) + [-1] * guard + [1] * codes.count(1)


def test_a_split_by_column_is_taken_over(tmp_path: Path) -> None:
    class Told(Pictures):
        def column(self, name: str) -> np.ndarray:
            if name == "split":
                return np.array(["test" if index % 4 == 0 else "train" for index in range(self.count)])
            return super().column(name)

    pack = ps.pack(Told(20), tmp_path / "own.pack")
    assert pack.splits == {"train": 15, "test": 5}
    halves = ps.pack(Told(20), tmp_path / "other.pack", split="train=0.5,val=0.5").splits
    assert list(halves) == ["train", "val"] and abs(halves["train"] - 10) <= 1
    assert ps.pack(Told(20), tmp_path / "all.pack", split="everything").splits == {"everything": 20}


def test_an_unknown_split_names_the_nearest(tmp_path: Path) -> None:
    pack = ps.pack(Pictures(20), tmp_path / "one.pack")
    with pytest.raises(ps.OptionError, match="there are train, val. Did you mean 'train'"):
        pack.split("trian")


def test_a_column_of_another_name_holds_the_split(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.png").write_bytes(Pictures().read(number).data)
    rows = [f"{number}.png,{'a' if number % 2 else 'b'},{'test' if number < 2 else 'train'}" for number in range(6)]
    (tmp_path / "table.csv").write_text("\n".join(["path,label,fold", *rows]) + "\n")
    source = ps.Images(tmp_path / "table.csv", split_from="fold")
    assert ps.pack(source, tmp_path / "one.pack").splits == {"train": 4, "test": 2}
    with pytest.raises(ps.DataError, match="no column 'folds'.*Did you mean 'fold'"):
        ps.Images(tmp_path / "table.csv", split_from="folds")
