"""From what is given as data to training and validation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.codecs.images import encode_image
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
    with pytest.raises(ps.OptionError, match="no split 'train'; there are all"):
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
    with pytest.raises(ps.OptionError, match="train is None"):
        split((None, Shades(5)))


def test_validation_may_be_left_out() -> None:
    assert split(Shades(50), val=None).val is None


def boxes_table(folder: Path, name: str, images: list[str]) -> str:
    for image in images:
        (folder / image).write_bytes(encode_image(np.full((20, 20, 3), 99, np.uint8), "png"))
    rows = "".join(f"{image},1,2,9,9,Tree\n" for image in images)
    (folder / name).write_text("image_path,xmin,ymin,xmax,ymax,label\n" + rows)
    return str(folder / name)


def test_a_path_as_validation_is_other_data(tmp_path: Path) -> None:
    first = boxes_table(tmp_path, "tr.csv", ["a.png", "b.png"])
    second = boxes_table(tmp_path, "va.csv", ["c.png"])
    found = split(first, val=second)
    assert found.val is not None and (len(found.train), len(found.val)) == (2, 1)
    assert found.how == f"validation from {second}" and found.remarks == ()


def test_a_file_in_training_and_validation_is_named(tmp_path: Path) -> None:
    first = boxes_table(tmp_path, "tr.csv", ["a.png", "b.png"])
    second = boxes_table(tmp_path, "va.csv", ["b.png"])
    (remark,) = split(first, val=second).remarks
    assert "1 file in both training and validation, such as b.png" in remark
    assert split((ps.Boxes(first), ps.Boxes(second))).remarks == (remark,)


def test_validation_is_a_split_or_other_data_not_both(tmp_path: Path) -> None:
    second = boxes_table(tmp_path, "va.csv", ["c.png"])
    pack = ps.pack(Shades(50), tmp_path / "shades.pack", progress=False)
    with pytest.raises(ps.OptionError, match="the data have the splits train, val"):
        split(pack, val=second)
    with pytest.raises(ps.OptionError, match=r"data.split='train=0.5,val=0.5' names a split too"):
        split(Shades(50), val=second, split="train=0.5,val=0.5")
    with pytest.raises(ps.OptionError, match=r"va2\.csv'.* no such file .*Did you mean .*va\.csv'"):
        split(second, val=str(tmp_path / "va2.csv"))


def test_a_split_that_is_also_a_folder_stays_a_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "val").mkdir()
    (tmp_path / "others").mkdir()
    assert split(Shades(50)).how.startswith("by group")
    with pytest.raises(ps.OptionError, match=r"no split 'others'.*write data.val=./others"):
        split(Shades(50), val="others")


def test_one_image_is_trained_on_and_that_nothing_validates_is_said(tmp_path: Path) -> None:
    found = split(boxes_table(tmp_path, "one.csv", ["a.png"]))
    assert found.val is None and len(found.train) == 1
    assert "no sample is left for validation" in found.remarks[0] and "data.val=none" in found.remarks[0]


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
