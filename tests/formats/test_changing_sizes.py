"""Videos whose frames change their size in the middle, or have another one than the header says."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

import penstock as ps
from penstock.formats.videos.frame_streams import FrameStream
from penstock.formats.videos.framing import make_framing
from penstock.formats.videos.supplying import named_videos, supply_of
from video_making import number_shown, write_video

SIZES = ((192, 128), (96, 64), (192, 128))
COUNT = 20  # frames of each size
NUMBERS = [*range(COUNT)] * len(SIZES)


def join_videos(target: Path, codec: str) -> Path:
    """One stream of several sizes: the packets of several files one after another, as cameras write them."""
    number, out, stream = 0, av.open(str(target), "w"), None
    options = {"bf": "0", "g": "5", "x264-params": "repeat-headers=1"} if codec == "libx264" else {}
    pixels = "yuv420p" if codec == "libx264" else "yuvj420p"
    for place, size in enumerate(SIZES):
        made = target.with_name(f"part{place}.{'h264' if codec == 'libx264' else 'avi'}")
        write_video(made, COUNT, codec=codec, size=size, options=options, pixel_format=pixels)
        with av.open(str(made)) as part:
            stream = stream or out.add_stream_from_template(part.streams.video[0])
            for packet in part.demux(part.streams.video[0]):
                if not packet.size:
                    continue
                copy = av.Packet(bytes(packet))
                copy.stream, copy.is_keyframe = stream, packet.is_keyframe
                copy.pts = copy.dts = number
                copy.duration, copy.time_base = 1, Fraction(1, 25)
                out.mux(copy)
                number += 1
        made.unlink()
    out.close()
    return target


@pytest.fixture(scope="module", params=["h264.mkv", "h264.ts", "mjpeg.avi"])
def video(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    codec = "libx264" if request.param.startswith("h264") else "mjpeg"
    return join_videos(tmp_path_factory.mktemp("sizes") / request.param, codec)


def test_frames_of_any_size_come_to_the_wanted_one(video: Path, tmp_path: Path) -> None:
    source = ps.Videos([video], size=(64, 64))
    assert [number_shown(np.asarray(source[index]["image"])) for index in range(len(source))] == NUMBERS
    pack = ps.pack(source, tmp_path / "one.pack", progress=False)
    assert [number_shown(np.asarray(pack[index]["image"])) for index in range(len(pack))] == NUMBERS
    supply = supply_of(named_videos(video)[0], make_framing((64, 64), "stretch", None))
    shown = [
        number_shown(image)
        for one in FrameStream([supply], workers=2)
        for block in one.blocks()
        for image in block.pixels
    ]
    assert shown == NUMBERS


def test_a_change_of_size_is_told_by_check(video: Path) -> None:
    found = [problem for problem in ps.check(ps.Videos([video])).problems if "px" in problem.what]
    assert [(one.row, one.warning) for one in found] == [(COUNT, True), (2 * COUNT, True)]
    assert "from frame 20 on it has 96×64 px, and 192×128 before" in found[0].what


def test_a_crop_is_refused_for_frames_of_another_size(video: Path, tmp_path: Path) -> None:
    source = ps.Videos([video], size=(32, 32), crop=(0, 0, 64, 64))
    assert source[COUNT - 1] and source[2 * COUNT]
    with pytest.raises(
        ps.PenstockError, match=r"has 96×64 px, and the crop 0,0,64,64 is meant for frames of 192×128 px"
    ):
        source[COUNT]
    with pytest.raises(ps.PenstockError, match="the crop 0,0,64,64 is meant for"):
        ps.pack(source, tmp_path / "one.pack", progress=False)
    supply = supply_of(named_videos(video)[0], make_framing((32, 32), "stretch", (0, 0, 64, 64)))
    with pytest.raises(ps.PenstockError, match="the crop 0,0,64,64 is meant for"):
        for one in FrameStream([supply], workers=1):
            list(one.blocks())


def test_a_false_size_in_the_header_changes_no_frame(tmp_path: Path) -> None:
    path = write_video(tmp_path / "plain.mp4", 10, size=(192, 128))
    content = bytearray(path.read_bytes())
    place = content.index(b"avc1", content.index(b"stsd")) + 28
    for width, height in ((64, 32), (960, 640)):
        content[place : place + 4] = struct.pack(">HH", width, height)
        path.write_bytes(content)
        source = ps.Videos([path], size=(64, 64))
        assert [number_shown(np.asarray(source[index]["image"])) for index in range(10)] == [*range(10)]
