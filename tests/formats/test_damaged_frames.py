"""A frame that does not decode keeps its place: check, pack and prediction name the same, and no other one moves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from commands import run_here
from penstock.formats.videos.frame_streams import FrameStream
from penstock.formats.videos.framing import make_framing
from penstock.formats.videos.supplying import named_videos, supply_of
from video_making import damage_packets, number_shown, write_video

FRAMES = 80
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "h264": ("mp4", {"codec": "libx264", "options": {"g": "30", "bf": "2"}}),
    "h264 without B-frames": ("mkv", {"codec": "libx264", "options": {"g": "30", "bf": "0"}}),
    "mpeg4": ("mp4", {"codec": "mpeg4", "options": {"g": "12", "bf": "2"}}),
    "hevc": ("mp4", {"codec": "libx265", "options": {"x265-params": "log-level=none:keyint=30:bframes=3"}}),
    "vp9": ("webm", {"codec": "libvpx-vp9", "options": {"g": "30", "deadline": "realtime", "cpu-used": "8"}}),
    "vp8": ("webm", {"codec": "libvpx", "options": {"g": "30", "auto-alt-ref": "1", "lag-in-frames": "10"}}),
}
# Behind the next key frame everything is as it was.
DAMAGE = {(0,): 30, (20,): 30, (29, 30): 60, (45,): 60}


def damaged_video(folder: Path, kind: str, packets: tuple[int, ...]) -> Path:
    ending, options = KINDS[kind]
    path = write_video(folder / f"a.{ending}", FRAMES, **options)
    damage_packets(path, packets)
    return path


def streamed(path: Path) -> tuple[dict[int, int], set[int]]:
    """Which number each frame shows, and the frames that do not decode."""
    (part,) = ps.Videos(path, size=None).parts
    shown, lost = {}, set()
    for raw in part.stream():
        try:
            shown[raw.index] = number_shown(part.decode(raw)["image"])
        except ps.DataError as error:
            assert error.problems[0].row == raw.index and error.problems[0].unreadable
            lost.add(raw.index)
    return shown, lost


def named(texts: list[str]) -> set[int]:
    """The frames that some messages name."""
    runs = [re.match(r"frames? (\d+)(?: to (\d+))? do", text) for text in texts]
    return {number for run in runs if run for number in range(int(run[1]), int(run[2] or run[1]) + 1)}


@pytest.mark.parametrize("packets", DAMAGE)
@pytest.mark.parametrize("kind", KINDS)
def test_frames_after_damage_keep_their_numbers_and_all_verbs_name_the_same(
    tmp_path: Path, kind: str, packets: tuple[int, ...]
) -> None:
    path = damaged_video(tmp_path, kind, packets)
    good = DAMAGE[packets]
    shown, lost = streamed(path)
    assert lost and sorted({*shown, *lost}) == list(range(FRAMES))
    assert max(lost) < good and {number: shown[number] for number in range(good, FRAMES)} == {
        number: number for number in range(good, FRAMES)
    }
    first = min(lost) if min(lost) < 3 else max(0, min(lost) - 5)
    assert all(shown[number] == number for number in range(first) if number in shown)
    videos = ps.Videos(path, size=None)
    assert named([problem.what for problem in videos.damage()]) == lost
    assert len(videos) == FRAMES
    for video in FrameStream([supply_of(named_videos(path)[0], make_framing(None, "stretch", None))], workers=2):
        pixels = np.concatenate([block.pixels for block in video.blocks()])
    assert len(pixels) == FRAMES and named([problem.what for problem in video.problems]) == lost
    assert [number_shown(frame) for frame in pixels[good:]] == list(range(good, FRAMES))


@pytest.mark.parametrize("kind", ["h264", "mpeg4", "hevc", "vp9"])
def test_a_frame_after_damage_is_the_same_by_number_and_in_order(tmp_path: Path, kind: str) -> None:
    path = damaged_video(tmp_path, kind, (20,))
    _, lost = streamed(path)
    videos = ps.Videos(path, size=None)
    (part,) = videos.parts
    for raw in part.stream():
        if raw.index in lost:
            with pytest.raises(ps.DataError, match=f"frame {raw.index} does not decode"):
                videos.read(raw.index)
        elif raw.index % 7 == 0:
            np.testing.assert_array_equal(videos[raw.index]["image"], part.decode(raw)["image"])


@pytest.mark.parametrize("kind", ["h264", "hevc", "vp9"])
def test_packing_leaves_out_the_damaged_frames_alone_and_keeps_labels_with_theirs(tmp_path: Path, kind: str) -> None:
    path = damaged_video(tmp_path, kind, (20,))
    _, lost = streamed(path)
    labels = tmp_path / "a.csv"
    labels.write_text("\n".join(["groom", *(str(number % 2) for number in range(FRAMES))]) + "\n")
    source = ps.Videos(path, labels=labels, size="64x64")
    with pytest.raises(ps.PenstockError, match=f"frame {min(lost)} does not decode"):
        ps.pack(source, tmp_path / "whole.pack")
    packed = ps.pack(source, tmp_path / "a.pack", on_bad_sample="skip", split="all")
    kept = packed.column("frame")
    assert sorted({*kept.tolist(), *lost}) == list(range(FRAMES)) and len(kept) == FRAMES - len(lost)
    np.testing.assert_array_equal(packed.column("labels")[:, 1], kept % 2)


def test_the_command_names_damaged_frames_and_what_may_show_remains(tmp_path: Path) -> None:
    path = damaged_video(tmp_path, "h264 without B-frames", (20,))
    said = run_here("check", "videos", path)
    assert said.exit_code == 1 and "frame 20: frame 20 does not decode" in said.out.replace("a.mkv frame", "frame")
    assert "Frames 21 to 29, up to the next key frame, may show remains" in said.out
    assert "--on-bad-sample skip" in said.out
