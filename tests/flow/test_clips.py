"""Clips stay inside of their video, also where one group holds several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import penstock as ps
from penstock.flow.making.clips import number_videos
from penstock.samples import Subset
from penstock.tasks.labelled import labelled
from video_making import damage_packets, number_shown, write_video


def test_clips_never_reach_from_one_video_of_an_animal_into_the_next(tmp_path: Path) -> None:
    for name in ("m1_a", "m1_b", "m2_a"):
        write_video(tmp_path / f"{name}.mp4", 6, codec="mpeg4")
    videos = ps.Videos(tmp_path, size="32x32", group_from="{animal}_*")
    pack = ps.pack(videos, tmp_path / "mice.pack", split="train", progress=False)
    assert set(pack.column("group")) == {"m1", "m2"}
    for source in (videos, pack, Subset(pack, np.arange(len(pack)))):
        assert number_videos(source).tolist() == [0] * 6 + [1] * 6 + [2] * 6

    first = ps.Flow(pack).clips(frames=5, edge="drop").batch(100)
    (batch,) = first.epoch(0)
    assert len(batch["index"]) == 3 * 2
    (repeated,) = ps.Flow(pack).clips(frames=3).batch(100).epoch(0)
    np.testing.assert_array_equal(repeated["image"][5, 2], repeated["image"][5, 1])  # the last frame of the first video


@pytest.mark.parametrize("kind", ["numbers in the schema", "a view of image and label"])
def test_a_clip_keeps_its_time_over_frames_that_were_left_out(tmp_path: Path, kind: str) -> None:
    path = write_video(tmp_path / "a.mp4", 12, options={"g": "1"})
    damage_packets(path, [4, 5])
    pd.DataFrame({"odd": np.arange(12) % 2}).to_csv(tmp_path / "a.csv")
    videos = ps.Videos(path, labels=tmp_path / "a.csv", size=None)
    pack = ps.pack(videos, tmp_path / "a.pack", split="train", on_bad_sample="skip", codec="raw", progress=False)
    kept = [0, 1, 2, 3, 6, 7, 8, 9, 10, 11]
    assert pack.column("frame").tolist() == kept
    source = pack if kind == "numbers in the schema" else labelled(pack, "image", "labels", pack.classes)

    def shown(flow: ps.Flow) -> list[list[int]]:
        (batch,) = flow.batch(100).epoch(0)
        return [[number_shown(image) for image in clip] for clip in batch["image"]]

    repeated = shown(ps.Flow(source).clips(frames=3))
    assert repeated[:6] == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 3], [3, 6, 7], [6, 7, 8]]
    assert len(repeated) == len(kept)
    whole = shown(ps.Flow(source).clips(frames=3, edge="drop"))
    assert whole == [[0, 1, 2], [1, 2, 3], [6, 7, 8], [7, 8, 9], [8, 9, 10], [9, 10, 11]]
    every_other = Subset(source, np.array([0, 2, 5, 7]))  # frames 0, 2, 7, 9: neighbours are 2 apart
    assert shown(ps.Flow(every_other).clips(frames=2, label="first")) == [[0, 2], [2, 2], [7, 9], [9, 9]]
