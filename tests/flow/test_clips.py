"""Clips stay inside of their video, also where one group holds several."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import penstock as ps
from penstock.flow.making.clips import group_numbers
from penstock.samples import Subset
from video_making import write_video


def test_clips_never_reach_from_one_video_of_an_animal_into_the_next(tmp_path: Path) -> None:
    for name in ("m1_a", "m1_b", "m2_a"):
        write_video(tmp_path / f"{name}.mp4", 6, codec="mpeg4")
    videos = ps.Videos(tmp_path, size="32x32", group_from="{animal}_*")
    pack = ps.pack(videos, tmp_path / "mice.pack", split="train", progress=False)
    assert set(pack.column("group")) == {"m1", "m2"}
    for source in (videos, pack, Subset(pack, np.arange(len(pack)))):
        assert group_numbers(source).tolist() == [0] * 6 + [1] * 6 + [2] * 6

    first = ps.Flow(pack).clips(frames=5, edge="drop").batch(100)
    (batch,) = first.epoch(0)
    assert len(batch["index"]) == 3 * 2
    (repeated,) = ps.Flow(pack).clips(frames=3).batch(100).epoch(0)
    np.testing.assert_array_equal(repeated["image"][5, 2], repeated["image"][5, 1])  # the last frame of the first video
