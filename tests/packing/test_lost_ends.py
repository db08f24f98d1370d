"""Videos whose end is lost, with labels that were made for the whole of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import penstock as ps
from video_making import (
    HEIGHT,
    WIDTH,
    cut_off,
    damage_packets,
    number_shown,
    numbered_frame,
    with_index_first,
    write_video,
)

COUNT = 40


def write_labels(path: Path, rows: int = COUNT) -> None:
    """Groom is in every third frame."""
    path.write_text("groom\n" + "".join(f"{int(number % 3 == 0)}\n" for number in range(rows)))


def opened(path: Path, rows: int = COUNT) -> ps.Videos:
    write_labels(path.with_suffix(".csv"), rows)
    return ps.Videos(path, labels=path.with_suffix(".csv"), size="96x64")


def with_damaged_end(tmp_path: Path) -> Path:
    path = write_video(tmp_path / "a.mp4", COUNT, options={"g": "12", "bf": "0"})
    damage_packets(path, [37, 38, 39])
    return path


def check_pack(pack: ps.Pack, frames: int) -> None:
    """Every frame before the end, each with its own label, and the rest counted."""
    assert pack.column("frame").tolist() == list(range(frames))
    for sample in pack:
        assert number_shown(sample["image"]) == sample["frame"]
        assert sample["labels"][1] == (sample["frame"] % 3 == 0)
    (left_out,) = pack.manifest.skipped
    assert left_out["count"] == COUNT - frames
    assert left_out["sample"] == f"a#{frames} to #{COUNT - 1}"


@pytest.mark.parametrize("rows", [38, COUNT])
def test_labels_of_the_whole_video_fit_one_with_a_damaged_end(tmp_path: Path, rows: int) -> None:
    source = opened(with_damaged_end(tmp_path), rows)
    (error,) = [problem for problem in source.problems() + source.damage() if not problem.warning]
    assert error.what == "decodes 37 of 40 frames; the label rows from frame 37 on have no picture"
    assert error.unreadable and error.row == 37 and error.file.endswith("a.mp4")
    with pytest.raises(ps.DataError, match=r"a\.mp4 frame 37: decodes 37 of 40.*on_bad_sample='skip'"):
        ps.pack(source, tmp_path / "one.pack")
    check_pack(ps.pack(source, tmp_path / "one.pack", on_bad_sample="skip", overwrite=True), 37)


@pytest.mark.parametrize(("rows", "words"), [(41, "4 too many"), (36, "1 too few")])
def test_other_numbers_of_rows_stay_an_error(tmp_path: Path, rows: int, words: str) -> None:
    with pytest.raises(ps.DataError, match=words):
        ps.pack(opened(with_damaged_end(tmp_path), rows), tmp_path / "one.pack", on_bad_sample="skip")


@pytest.mark.parametrize("behind", [0, 30], ids=["between packets", "in a packet"])
@pytest.mark.parametrize("packet", range(24, 31))
@pytest.mark.parametrize(
    ("ending", "options"),
    [("mp4", {"bf": "0"}), ("mp4", {"bf": "2"}), ("mp4", {"bf": "3", "b-pyramid": "normal"}), ("avi", {"bf": "0"})],
)
def test_labels_of_the_whole_video_fit_one_that_is_cut_off(
    tmp_path: Path, ending: str, options: dict[str, str], packet: int, behind: int
) -> None:
    path = write_video(tmp_path / f"a.{ending}", COUNT, options={"g": "12", **options})
    if ending == "mp4":
        path = with_index_first(path).rename(path)
    cut_off(path, packet, behind)
    source = opened(path)
    (error,) = [problem for problem in source.problems() if not problem.warning]
    assert error.unreadable and "of 40 frames; the label rows" in error.what
    pack = ps.pack(source, tmp_path / "one.pack", on_bad_sample="skip", codec="png")
    assert packet - 4 <= len(pack) <= packet + 1  # a small packet may be whole
    check_pack(pack, len(pack))


def test_frames_that_a_camera_left_out_are_not_taken_for_a_lost_end(tmp_path: Path) -> None:
    """The container announces 40 frames, and two in the middle are empty: rows of all 40 would shift."""
    path = tmp_path / "a.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuvj420p"
        for number in range(COUNT):
            frame = av.VideoFrame.from_ndarray(numbered_frame(number)).reformat(format="yuvj420p")
            frame.pts = number
            if number not in (20, 21):
                container.mux(stream.encode(frame))
    with av.open(str(path)) as container:
        assert container.streams.video[0].frames == COUNT
    with pytest.raises(ps.DataError, match="40 label rows for the 38 frames of a: 2 too many"):
        ps.pack(opened(path), tmp_path / "one.pack", on_bad_sample="skip")


@pytest.mark.parametrize(
    "events",
    [
        "start_frame,stop_frame,behaviour\n3,6,groom\n38,39,rear",
        "start_s,stop_s,behaviour\n0.12,0.24,groom\n1.52,1.53,rear",
    ],
    ids=["frames", "seconds"],
)
def test_an_event_in_the_lost_end_is_not_put_on_the_last_frame(tmp_path: Path, events: str) -> None:
    path = with_damaged_end(tmp_path)
    path.with_suffix(".csv").write_text(events + "\n")
    source: Any = ps.Videos(path, labels=path.with_suffix(".csv"), size="96x64")
    with pytest.raises(ps.DataError, match="decodes 37 of 40 frames; the events from frame 37 on have no picture"):
        ps.pack(source, tmp_path / "one.pack")
    pack = ps.pack(source, tmp_path / "one.pack", on_bad_sample="skip", overwrite=True)
    expected = np.array([[0, 1, 0] if 3 <= frame < 6 else [1, 0, 0] for frame in range(37)])
    np.testing.assert_array_equal([sample["labels"] for sample in pack], expected)
    np.testing.assert_array_equal(source.column("labels"), expected)
    np.testing.assert_array_equal([source[index]["labels"] for index in range(37)], expected)
    assert pack.manifest.skipped[0]["count"] == 3


@pytest.mark.parametrize("start", [0, 35, 36, 37])
def test_a_stream_that_goes_on_near_the_end_says_the_same(tmp_path: Path, start: int) -> None:
    path = with_damaged_end(tmp_path)
    path.with_suffix(".csv").write_text("start_s,stop_s,behaviour\n1.52,1.53,rear\n")
    (part,) = ps.Videos(path, labels=path.with_suffix(".csv")).parts
    given = []
    with pytest.raises(ps.DataError, match="decodes 37 of 40 frames"):
        for raw in part.stream(start):
            given.append(raw.index)
    assert given == list(range(start, 37))
