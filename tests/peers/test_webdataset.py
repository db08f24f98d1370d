"""Shards that the library webdataset writes, read by us in its order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import pixels

wds: Any = pytest.importorskip("webdataset", reason="webdataset is not installed; make test-peers has it")
pytestmark = pytest.mark.filterwarnings("ignore")  # of its own


def test_shards_of_the_library_are_read(tmp_path: Path) -> None:
    pattern = str(tmp_path / "train-%03d.tar")
    with wds.ShardWriter(pattern, maxcount=3) as writer:
        for number in range(8):
            facts = {"boxes": [[1, 2, 3, 4 + number]], "box_label": [0]}
            sample = {"png": pixels(number, 20, 16), "cls": number % 3, "json": facts, "depth.npy": np.full(2, number)}
            writer.write({"__key__": f"{number:04d}", **sample})
    source = ps.WebDataset(tmp_path)
    assert source.column("label").tolist() == [number % 3 for number in range(8)]
    for number in range(8):
        sample = source[number]
        np.testing.assert_array_equal(sample["image"], pixels(number, 20, 16))
        assert sample["boxes"].tolist() == [[1, 2, 3, 4 + number]]
        assert (sample["key"], sample["depth"].tolist(), sample["split"]) == (f"{number:04d}", [number] * 2, "train")
