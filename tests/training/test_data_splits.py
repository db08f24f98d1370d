"""From what is given as data to training and validation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.training.data_splits import TrainingData, training_data
from penstock.training.options import DataOptions
from training.tiny_task import Shades


def split(data: Any, **options: Any) -> TrainingData:
    return training_data(data, DataOptions(**options))


def numbers(source: Any) -> list[int]:
    return [int(source.annotations(index)["key"].split("_")[1]) for index in range(len(source))]


def test_a_source_is_split_as_a_pack_of_it_would_be(tmp_path: Path) -> None:
    pack = ps.pack(Shades(50), tmp_path / "shades.pack", seed=4, split="train=0.6,val=0.4", progress=False)
    ours = split(Shades(50), split="train=0.6,val=0.4", split_seed=4)
    assert numbers(ours.train) == numbers(pack.split("train")) and numbers(ours.val) == numbers(pack.split("val"))
    theirs = split(str(tmp_path / "shades.pack"))
    assert numbers(theirs.train) == numbers(ours.train) and numbers(theirs.val) == numbers(ours.val)


def test_a_pack_may_be_split_anew(tmp_path: Path) -> None:
    pack = ps.pack(Shades(50), tmp_path / "shades.pack", split="all", progress=False)
    with pytest.raises(ps.RecipeError, match="no split 'train'; there are all"):
        split(pack)
    assert len(split(pack, split="train=0.5,val=0.5").train) == 24  # 12 of each class
    assert len(split(pack, train="all").train) == 50


def test_two_packs_are_a_pair_by_path(tmp_path: Path) -> None:
    paths = [tmp_path / "first.pack", tmp_path / "second.pack"]
    for count, path in zip((20, 10), paths, strict=True):
        ps.pack(Shades(count), path, progress=False)
    found = split((str(paths[0]), paths[1]))
    assert found.val is not None and (len(found.train), len(found.val)) == (20, 10)


def test_a_pair_may_have_no_validation_but_must_have_training() -> None:
    assert split((Shades(5), None)).val is None
    with pytest.raises(ps.RecipeError, match="train is None"):
        split((None, Shades(5)))


def test_validation_may_be_left_out() -> None:
    assert split(Shades(50), val=None).val is None


class Films(Shades):
    """Two films of 20 and 30 frames, and a short one."""

    lengths = (20, 30, 6)

    def __init__(self) -> None:
        super().__init__(sum(self.lengths))

    @property
    def parts(self) -> tuple[Any, ...]:
        return tuple(
            SimpleNamespace(
                key=f"film_{number}", group=f"film_{number}", split=None, expected=length, label_counts={0: length},
                origin=None, stream=None, decode=None, annotations=None,
            )
            for number, length in enumerate(self.lengths)
        )  # fmt: skip


def test_the_parts_of_a_streamed_source_stay_whole() -> None:
    found = split(Films())
    assert found.val is not None
    films = np.repeat(range(3), Films.lengths)
    train, val = set(films[numbers(found.train)]), set(films[numbers(found.val)])
    assert train | val == {0, 1, 2} and not train & val
