"""What `info` says of a pack is what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import EveryKind, Pictures, Reels
from penstock.reporting.packs import counted, pack_facts, pack_text, readable_bytes
from picture_making import write_picture


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"  {name}"))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for number, (width, height) in enumerate([(40, 30), (20, 60), (30, 30)]):
        write_picture(tmp_path / "photos" / f"{number}.jpg", width, height)
    return tmp_path / "photos"


def test_widths_and_heights_are_told_apart(photos: Path, tmp_path: Path) -> None:
    facts = pack_facts(ps.pack(ps.Images(photos), tmp_path / "a.pack"))
    assert facts["sizes"] == {"width": [20, 40], "height": [30, 60], "same": False}
    assert "20 to 40 px wide, 30 to 60 px high, bytes as they were" in pack_text(facts)


def test_resized_images_are_not_called_bytes_as_they_were(photos: Path, tmp_path: Path) -> None:
    facts = pack_facts(ps.pack(ps.Images(photos), tmp_path / "a.pack", longest_side=30))
    assert "encoded again at quality 95 where the size changed" in line_of(pack_text(facts), "images")


def test_boxes_and_negatives_are_counted(tmp_path: Path) -> None:
    source = EveryKind(20)
    facts = pack_facts(ps.pack(source, tmp_path / "a.pack"))
    samples = [source.decode(ps.Raw(index, None)) for index in range(20)]
    empty = sum(len(sample["boxes"]) == 0 for sample in samples)
    assert facts["negatives"] == {"samples": empty, "share": empty / 20}
    assert facts["classes"] == {"cat": 10, "dog": 10}


def test_frames_without_labels_are_counted(tmp_path: Path) -> None:
    class PartlyLabelled(Reels):
        def __init__(self) -> None:
            super().__init__(10, 6)
            self.parts[1].annotations = unlabelled  # type: ignore[method-assign]

    def unlabelled(index: int) -> dict[str, Any]:
        return {"labels": np.full(2, -1, np.int8), "frame": np.int32(index), "key": f"x#{index}", "group": "x"}

    facts = pack_facts(ps.pack(PartlyLabelled(), tmp_path / "a.pack"))
    assert facts["unlabelled"] == 6 and facts["classes"] == {"rest": 5, "move": 5}
    assert "6 samples without a label (37.5%)" in pack_text(facts)


def test_only_five_skipped_samples_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    source = Pictures(20, broken=tuple(range(7)))
    facts = pack_facts(ps.pack(source, tmp_path / "a.pack", on_bad_sample="skip"))
    text = pack_text(facts)
    assert len(facts["skipped"]) == 7
    assert "7 samples:" in text and "pictures/4.png" in text and "pictures/5.png" not in text
    assert "… and 2 more; --json lists all" in text


def test_the_text_names_everything_a_reader_asks_first(tmp_path: Path) -> None:
    text = pack_text(pack_facts(ps.pack(Reels(30, 30), tmp_path / "mice.pack", seed=3)))
    assert text.startswith(f"{tmp_path}/mice.pack: 60 samples, ")
    assert line_of(text, "classes").split() == ["classes", "rest", "30,", "move", "30"]
    assert line_of(text, "images").split() == ["images", "32x24", "px,", "png"]
    assert "seed 3" in text and "from all images (60)" in text


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 KB"), (2.5e9, "2.5 GB"), (3e15, "3000.0 TB")]
)
def test_bytes_are_readable(count: float, words: str) -> None:
    assert readable_bytes(count) == words


def test_one_is_not_many() -> None:
    assert [counted(number, "shard") for number in (0, 1, 1200)] == ["0 shards", "1 shard", "1,200 shards"]
