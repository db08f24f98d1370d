"""Decoders that pass over a damaged packet without a word: no later frame may take its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.formats.videos.frame_streams import FrameStream
from penstock.formats.videos.framing import make_framing
from penstock.formats.videos.supplying import named_videos, supply_of
from video_making import damage_packets, number_shown, write_video

FRAMES, FROM, UNTIL = 80, 15, 60
KINDS: dict[str, dict[str, Any]] = {
    "hevc": {"codec": "libx265", "options": {"x265-params": "log-level=none:keyint=30:bframes=3"}},
    "mpeg4": {"codec": "mpeg4", "options": {"g": "12", "bf": "2"}},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damaged", [20, 24, 29])
def test_packing_names_the_frame(tmp_path: Path, kind: str, damaged: int) -> None:
    path = write_video(tmp_path / "a.mp4", FRAMES, **KINDS[kind])
    damage_packets(path, [damaged])
    (part,) = ps.Videos(path).parts
    shown = []
    with pytest.raises(ps.DataError, match=r"frame \d+ does not decode"):
        for raw in part.stream():
            shown.append(number_shown(part.decode(raw)["image"]))
    assert FROM < len(shown) <= damaged + 2 and shown == list(range(len(shown)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damaged", [20, 24, 29])
def test_prediction_keeps_the_place(tmp_path: Path, kind: str, damaged: int) -> None:
    path = write_video(tmp_path / "a.mp4", FRAMES, **KINDS[kind])
    damage_packets(path, [damaged])
    for video in FrameStream([supply_of(named_videos(path)[0], make_framing(None, "stretch", None))], workers=2):
        pixels = np.concatenate([block.pixels for block in video.blocks()])
    shown = [number_shown(frame) for frame in pixels]
    assert len(shown) == FRAMES and video.problems
    assert shown[:FROM] == list(range(FROM)) and shown[UNTIL:] == list(range(UNTIL, FRAMES))


@pytest.mark.parametrize("kind", KINDS)
def test_good_videos_have_all_of_their_frames(tmp_path: Path, kind: str) -> None:
    (part,) = ps.Videos(write_video(tmp_path / "a.mp4", FRAMES, **KINDS[kind])).parts
    assert [number_shown(part.decode(raw)["image"]) for raw in part.stream()] == list(range(FRAMES))
