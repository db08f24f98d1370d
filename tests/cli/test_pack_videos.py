"""What `penstock pack videos` says before it packs."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

import penstock as ps
from commands import run_here
from penstock.packing.advice import better_codec
from penstock.packing.estimating import Estimate
from video_making import numbered_frame, write_video


def test_a_crop_outside_the_frame_is_what_is_said_first(tmp_path: Path) -> None:
    video = write_video(tmp_path / "a.mp4", 5)
    said = run_here("pack", "videos", video, "--crop", "0,0,5000,10", "-o", tmp_path / "a.pack")
    assert said.exit_code == 3 and "no frame can be decoded" not in said.err
    assert "the crop 0,0,5000,10 lies outside" in said.err.splitlines()[0]


def test_a_size_that_networks_do_not_take_is_warned_about_with_the_nearest(tmp_path: Path) -> None:
    video = write_video(tmp_path / "a.mp4", 5)
    said = run_here("pack", "videos", video, "--size", "225x100", "-o", tmp_path / "a.pack")
    assert said.exit_code == 0 and "multiples of 32" in said.err and "--size 224x96" in said.err
    said = run_here("pack", "videos", video, "--size", "64x32", "-o", tmp_path / "b.pack")
    assert said.exit_code == 0 and "multiples of 32" not in said.err


def test_a_codec_without_loss_that_is_smaller_is_said() -> None:
    jpeg, png = Estimate("jpeg", "64x64", 200, 1, "some"), Estimate("png", "64x64", 100, 1, "none")
    assert better_codec([jpeg, png], "jpeg") == "png is smaller than jpeg here (50%) and loses nothing: codec='png'"
    assert better_codec([jpeg, png], "png") == ""
    assert better_codec([jpeg, Estimate("png", "64x64", 300, 1, "none")], "jpeg") == ""
    slow = Estimate("png", "64x64", 100, 0.5, "none")
    assert "and is read 0.5 × as fast: codec='png'" in better_codec([jpeg, slow], "jpeg")


def test_python_is_warned_before_packing_in_its_own_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = tmp_path / "plain.mp4"
    with av.open(str(plain), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for _ in range(5):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((64, 64, 3), 90, np.uint8))))
        container.mux(stream.encode(None))
    ps.pack(ps.Videos([plain], size="225x100"), tmp_path / "a.pack")
    said = capsys.readouterr().err
    assert "multiples of 32" in said and "size='224x96' is the nearest" in said
    assert "png is smaller than jpeg here" in said and "codec='png'" in said
    ps.pack(ps.Videos([plain], size="225x100"), tmp_path / "b.pack", progress=False)
    ps.pack(ps.Videos([plain], size="64x32"), tmp_path / "c.pack", codec="png")
    assert "multiples" not in capsys.readouterr().err
    said_by_command = run_here("pack", "videos", plain, "--size", "225x100", "-o", tmp_path / "d.pack")
    assert said_by_command.err.count("multiples of 32") == 1 and "--codec png" in said_by_command.err


def test_which_of_several_streams_is_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "two.mkv"
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("mpeg4", rate=25) for _ in range(2)]
        for stream, width in zip(streams, (64, 32), strict=True):
            stream.width, stream.height, stream.pix_fmt = width, 64, "yuv420p"
        for number in range(5):
            for stream in streams:
                pixels = np.ascontiguousarray(numbered_frame(number)[:64, : stream.width])
                container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, "rgb24")))
        for stream in streams:
            container.mux(stream.encode(None))
    (warning,) = ps.Videos(path).problems()
    assert warning.warning and "has 2 video streams; stream" in warning.what and "32x64" in warning.what
