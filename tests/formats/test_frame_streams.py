"""Every frame of a video in order, made by several threads: the same frames as one pass gives."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

import penstock as ps
from leftovers import assert_nothing_left, held, until
from penstock.codecs.video_groups import GroupLimits, Starts
from penstock.codecs.video_packets import scan_packets
from penstock.formats.videos.frame_memory import FrameMemory
from penstock.formats.videos.frame_streams import FrameBlock, FrameStream, StreamedVideo
from penstock.formats.videos.frame_supplies import Begin, MadeFrames, StoredVideo, Task
from penstock.formats.videos.framing import make_framing
from penstock.formats.videos.supplying import named_videos, supply_of
from video_making import (
    cut_off,
    damage_packets,
    number_shown,
    numbered_frame,
    turn_clockwise,
    with_index_first,
    write_video,
)

SIZE = "48x32"
FRAMING = make_framing(SIZE, "stretch", None)
X264 = "x264-params"
# (name, how it is written, whether it can be cut): what cameras and programs leave.
KINDS: dict[str, tuple[dict[str, Any], bool]] = {
    "closed.mp4": ({"options": {"g": "12", "bf": "0"}}, True),
    "b_frames.mp4": ({"options": {"g": "12", "bf": "3"}}, True),
    "b_frames.mkv": ({"options": {"g": "30", "bf": "2"}}, True),
    "open_gop.mp4": ({"options": {X264: "open-gop=1:keyint=12:min-keyint=12:bframes=3:b-adapt=0"}}, True),
    "intra_refresh.mp4": ({"options": {X264: "intra-refresh=1:keyint=15:bframes=0"}}, True),
    "variable.mp4": ({"milliseconds": [n * 40 + (n * n % 17) for n in range(80)], "options": {"g": "12"}}, True),
    "hevc.mkv": ({"codec": "libx265", "options": {"x265-params": "log-level=none:keyint=15"}}, True),
    "transport.ts": ({"options": {"g": "12", "bf": "2"}}, True),
    "vp9.webm": ({"codec": "libvpx-vp9", "options": {"g": "12", "deadline": "realtime", "cpu-used": "8"}}, True),
    "motion_jpeg.mkv": ({"codec": "mjpeg", "pixel_format": "yuvj420p"}, True),
    "mpeg4.mp4": ({"codec": "mpeg4", "options": {"g": "12", "bf": "2"}}, True),
    "b_frames.avi": ({"options": {"g": "12", "bf": "2"}}, False),
    "lossless.avi": ({"codec": "ffv1", "pixel_format": "bgr0"}, False),
    "one_frame.mp4": ({"count": 1}, True),
}


def whole(path: Path, begin: Begin | None = None, **options: Any) -> tuple[StreamedVideo, list[FrameBlock]]:
    (video,) = named_videos(path)
    for streamed in FrameStream([(supply_of(video, FRAMING), begin or Begin())], workers=2, **options):
        blocks = list(streamed.blocks())
    return streamed, blocks


def joined(blocks: list[FrameBlock]) -> tuple[np.ndarray, np.ndarray]:
    firsts = [block.first for block in blocks]
    assert firsts == list(blocks[0].first + np.cumsum([0, *(len(block.times) for block in blocks[:-1])]))
    return np.concatenate([block.times for block in blocks]), np.concatenate([block.pixels for block in blocks])


@pytest.mark.parametrize("name", KINDS)
def test_frames_and_times_are_those_that_packing_stores(tmp_path: Path, name: str) -> None:
    settings, is_cut = KINDS[name]
    path = write_video(tmp_path / name, **{"count": 80, **settings})
    samples = [part.decode(raw) for part in ps.Videos(path, size=SIZE).parts for raw in part.stream()]
    streamed, blocks = whole(path)
    times, pixels = joined(blocks)
    np.testing.assert_array_equal(pixels, np.stack([sample["image"] for sample in samples]))
    np.testing.assert_array_equal(times, [sample["time"] for sample in samples])
    assert [number_shown(frame) for frame in pixels] == list(range(len(samples)))
    assert streamed.frame_count == len(samples) and streamed.problems == []
    assert (scan_packets(path).longest_group > 0 and scan_packets(path).has_presentation_times) == is_cut


def test_a_short_video_is_opened_and_read_once(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 60, options={"g": "12"})
    supply = supply_of(named_videos(path)[0], FRAMING)
    assert supply.expected() == 60
    path.unlink()
    for video in FrameStream([supply], workers=1):
        _, pixels = joined(list(video.blocks()))
    assert [number_shown(frame) for frame in pixels] == list(range(60))


@pytest.mark.parametrize("name", ["b_frames.mp4", "transport.ts", "mpeg4.mp4"])
def test_packets_that_are_too_many_to_be_kept_are_read_again(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_video(tmp_path / name, **{"count": 80, **KINDS[name][0]})
    expected = joined(whole(path)[1])
    monkeypatch.setattr("penstock.codecs.video_packets.MOST_KEPT_PACKETS", 30)
    for one, other in zip(joined(whole(path)[1]), expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted by Linux")
@pytest.mark.parametrize(("most_kept", "allowed"), [(4096, 0), (30, 1)])
def test_decoders_keep_no_file_open(
    tmp_path: Path, most_kept: int, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every open MP4 FFmpeg holds a table of its frames: hours of video must have one of them, not four."""
    path = write_video(tmp_path / "a.mp4", 400, options={"g": "12"})
    monkeypatch.setattr("penstock.codecs.video_packets.MOST_KEPT_PACKETS", most_kept)
    counts = []
    for video in FrameStream([supply_of(named_videos(path)[0], FRAMING)], workers=3):
        for _ in video.blocks():
            counts.append(sum(os.path.realpath(link) == str(path) for link in Path("/proc/self/fd").iterdir()))
    # A decoder that is being made right now has the file open for a moment.
    assert min(counts[len(counts) // 2 :]) <= allowed and max(counts) <= allowed + 1


def test_only_a_first_packet_that_says_what_lasts_is_shown_to_every_decoder(tmp_path: Path) -> None:
    def lasts(name: str, change: tuple[bytes, bytes] = (b"", b"")) -> bool:
        with av.open(str(write_video(tmp_path / name, **{"count": 30, **KINDS[name][0]}))) as container:
            stream = container.streams.video[0]
            data = bytes(next(container.demux(stream)))
            packet = av.Packet(data.replace(*change) if change[0] else data)
            return Starts(stream).says_what_lasts(packet)

    with av.open(str(write_video(tmp_path / "new.mp4", 5))) as container:
        data = bytes(next(container.demux(video=0)))
    version = data[data.index(b"x264 - core ") :][:15]
    assert not lasts("closed.mp4")
    assert lasts("closed.mp4", (version, b"x264 - core 148"))
    assert lasts("transport.ts")  # with parameters of the decoder
    assert lasts("mpeg4.mp4")


def test_a_long_group_is_cut_nowhere_and_short_ones_are_joined(tmp_path: Path) -> None:
    lengths = {name: {"options": {"g": str(every), "bf": "0"}} for name, every in (("a", 250), ("b", 30), ("c", 1))}
    videos = {name: write_video(tmp_path / f"{name}.mp4", 90, **options) for name, options in lengths.items()}
    assert [scan_packets(videos[name]).longest_group for name in "abc"] == [90, 30, 24]


def test_pictures_that_look_back_keep_their_group_together() -> None:
    limits = GroupLimits(least=2)
    # The second key frame, shown at 4, is followed by a picture that is shown before it; the third is not.
    stamps = [(0, True), (1, False), (2, False), (4, True), (3, False), (5, False), (6, True), (7, False)]
    assert [limits.take(stamp, is_start=start) for stamp, start in stamps] == [0] * 8
    assert limits.finish() == [6, 2]


def test_turned_videos_stand_upright(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 30, options={"g": "12"})
    turn_clockwise(path)
    expected = [part.decode(raw)["image"] for part in ps.Videos(path, size=SIZE).parts for raw in part.stream()]
    np.testing.assert_array_equal(joined(whole(path)[1])[1], np.stack(expected))


@pytest.mark.parametrize("name", ["b_frames.mp4", "variable.mp4", "b_frames.avi"])
@pytest.mark.parametrize("start", [1, 24, 40, 79])
def test_a_video_is_taken_up_at_any_frame(tmp_path: Path, name: str, start: int) -> None:
    path = write_video(tmp_path / name, **{"count": 80, **KINDS[name][0]})
    times, pixels = joined(whole(path)[1])
    streamed, blocks = whole(path, Begin(start, times[:start]))
    assert blocks[0].first == start and streamed.frame_count == 80
    np.testing.assert_array_equal(joined(blocks)[1], pixels[start:])
    np.testing.assert_array_equal(joined(blocks)[0], times[start:])


def test_several_videos_come_in_their_order_and_a_bad_one_does_not_stop_the_others(tmp_path: Path) -> None:
    for number, name in enumerate(["a", "c", "d"]):
        write_video(tmp_path / f"{name}.mp4", 40 + number, options={"g": "12"})
    (tmp_path / "b.mp4").write_bytes(b"no video")
    found = []
    for video in FrameStream([supply_of(named, FRAMING) for named in named_videos(tmp_path)], workers=2):
        try:
            found.append((Path(video.file).stem, sum(len(block.times) for block in video.blocks())))
        except ps.DataError as error:
            assert "b.mp4: it cannot be opened as a video" in str(error)
    assert found == [("a", 40), ("c", 41), ("d", 42)]


def test_a_frame_damaged_in_the_middle_keeps_its_place_and_is_named(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 80, options={"g": "24", "bf": "0"})
    good = joined(whole(path)[1])
    damage_packets(path, [30, 31])
    streamed, blocks = whole(path)
    times, pixels = joined(blocks)
    np.testing.assert_array_equal(times, good[0])
    assert [number_shown(frame) for frame in pixels[:32]] == [*range(30), 29, 29]
    np.testing.assert_array_equal(pixels[48:], good[1][48:])  # from the next key frame on
    (problem,) = streamed.problems
    assert problem.row == 30 and "frames 30 to 31 do not decode" in problem.what and problem.warning


def test_a_damaged_first_frame_gets_the_pixels_of_the_next_good_one(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", 60, codec="mjpeg", pixel_format="yuvj420p")
    damage_packets(path, [0])
    streamed, blocks = whole(path)
    assert [number_shown(frame) for frame in joined(blocks)[1]] == [1, *range(1, 60)]
    assert streamed.problems[0].row == 0


def test_frames_that_are_damaged_at_the_end_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 80, options={"g": "24", "bf": "0"})
    damage_packets(path, range(70, 80))
    streamed, blocks = whole(path)
    assert len(joined(blocks)[0]) == 70 == streamed.frame_count
    assert "the last 10 frames do not decode" in streamed.problems[0].what


@pytest.mark.parametrize(
    ("behind", "words"),
    [
        (0, "its header announces 80: 20 missing at the end"),
        (30, "the last frame does not decode, and the file is cut off behind: 20 of 80 frames are missing"),
    ],
    ids=["between packets", "in a packet"],
)
def test_a_file_that_is_cut_off_gives_what_is_there_and_says_so(tmp_path: Path, behind: int, words: str) -> None:
    path = with_index_first(write_video(tmp_path / "long.mp4", 80, options={"g": "12", "bf": "0"}))
    cut_off(path, 60, behind)
    streamed, blocks = whole(path)
    assert [number_shown(frame) for frame in joined(blocks)[1]] == list(range(60))
    (problem,) = streamed.problems
    assert problem.warning and words in problem.what


def test_folders_of_frames_and_packs_are_streamed_too(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(40):
        cv2.imwrite(str(folder / f"{number:04d}.png"), numbered_frame(number)[:, :, ::-1])
    (folder / "0020.png").write_bytes(b"broken")
    streamed, blocks = whole(folder)
    assert [number_shown(frame) for frame in joined(blocks)[1]] == [*range(20), 19, *range(21, 40)]
    assert streamed.problems[0].row == 20
    for name in "ab":
        write_video(tmp_path / f"{name}.mp4", 40, options={"g": "12"})
    pack = ps.pack(ps.Videos([tmp_path / "a.mp4", tmp_path / "b.mp4"], size=SIZE), tmp_path / "p.pack", codec="raw")
    supplies = [StoredVideo(pack, np.arange(start, start + 40), "a", FRAMING) for start in (0, 40)]
    for video in FrameStream(supplies):
        times, pixels = joined(list(video.blocks()))
        assert [number_shown(frame) for frame in pixels] == list(range(40))
        np.testing.assert_allclose(times, np.arange(40) / 25)


def test_leaving_early_leaves_no_thread(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 200, options={"g": "24"})
    before = threading.active_count()
    for video in FrameStream([supply_of(named_videos(path)[0], FRAMING)] * 3, workers=2):
        next(video.blocks())
        break
    assert threading.active_count() == before


class Collecting:
    """A video during which garbage is collected, in the thread that hands out its tasks or in one that makes frames."""

    file = "collecting"

    def __init__(self, place: str) -> None:
        self._place = place
        self.dropped, self.collected = threading.Event(), threading.Event()

    def expected(self) -> int:
        return 2

    def tasks(self, begin: Begin, memory: FrameMemory) -> Iterator[Task]:
        yield Task(lambda: [MadeFrames(np.zeros(1), np.zeros((1, 2, 2, 3), np.uint8), {})], 0)
        if self._place == "worker":
            yield Task(self._collect, 0)
        else:
            self._collect()

    def _collect(self) -> list[MadeFrames]:
        self.dropped.wait()
        gc.collect()
        self.collected.set()
        return []

    def remarks(self, frame_count: int) -> list[ps.Problem]:
        return []

    def close(self) -> None:
        return


@pytest.mark.parametrize("place", ["worker", "puller"])
def test_a_stream_may_be_collected_as_garbage_by_one_of_its_own_threads(place: str, gc_off: None) -> None:
    before, supply = held(), Collecting(place)
    videos = iter(FrameStream([supply, supply], workers=2))
    assert len(next(next(videos).blocks()).times) == 1
    ring: list[Any] = [videos]
    ring.append(ring)
    del videos, ring
    supply.dropped.set()
    until(supply.collected.is_set, "a thread of the stream collected garbage")
    assert_nothing_left(before)


@pytest.fixture
def gc_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_memory_ahead_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_video(tmp_path / "a.mp4", 200, options={"g": "24"})
    expected = joined(whole(path)[1])[1]
    monkeypatch.setattr("penstock.formats.videos.frame_streams.AHEAD_BYTES", 1)  # then one group at a time
    np.testing.assert_array_equal(joined(whole(path)[1])[1], expected)


def test_memory_of_frames_is_used_again_only_when_nobody_holds_it() -> None:
    memory = FrameMemory()
    first = memory.take((4, 8, 8, 3))
    view = first[1:3]
    address = first.ctypes.data
    del first
    assert memory.take((4, 8, 8, 3)).ctypes.data != address
    del view
    assert memory.take((4, 8, 8, 3)).ctypes.data == address
    assert memory.take((2, 8, 8, 3)).shape == (2, 8, 8, 3)


def test_blocks_that_are_kept_stay_as_they_are(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 200, options={"g": "24"})
    (video,) = named_videos(path)
    kept = []
    for streamed in FrameStream([supply_of(video, FRAMING)] * 2, workers=2):
        for block in streamed.blocks():
            kept.append((block.pixels, block.pixels.copy()))
    assert all(np.array_equal(pixels, copy) for pixels, copy in kept)


def test_a_damaged_frame_keeps_its_place_where_a_video_is_cut_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.formats.videos.video_files.LONGEST_GROUP", 10)
    monkeypatch.setattr("penstock.codecs.decoding.LONGEST_GROUP", 10)
    path = write_video(tmp_path / "a.mp4", 60, options={"g": "12", "bf": "0"})
    damage_packets(path, [30])
    streamed, blocks = whole(path)
    shown = [number_shown(frame) for frame in joined(blocks)[1]]
    assert shown[:31] == [*range(30), 29] and shown[36:] == list(range(36, 60))
    (problem,) = streamed.problems
    assert "frame 30 does not decode" in problem.what


@pytest.mark.parametrize("packet", range(56, 64))
def test_no_frame_shifts_at_the_end_of_a_file_that_is_cut_off(tmp_path: Path, packet: int) -> None:
    path = with_index_first(write_video(tmp_path / "long.mp4", 80, options={"g": "12", "bf": "2"}))
    cut_off(path, packet)
    shown = [number_shown(frame) for frame in joined(whole(path)[1])[1]]
    assert shown == list(range(len(shown))) and packet - 3 < len(shown) <= packet
