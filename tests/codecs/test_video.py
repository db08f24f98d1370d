"""Frames of a decoder as RGB, and closed GOPs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from penstock.codecs.video import (
    UnreadableVideo,
    crf_of,
    decode_gop,
    encode_gop,
    frame_checksum,
    frame_to_rgb,
    open_video,
)
from penstock.errors import OptionError
from penstock.geometry import Window
from video_making import write_video

BT709, UNSPECIFIED, BT601 = 1, 2, 5
LIMITED, FULL = 1, 2


def flat_frame(
    yuv: tuple[int, int, int], *, size: tuple[int, int] = (64, 48), matrix: int = UNSPECIFIED, value_range: int = 0
) -> av.VideoFrame:
    frame = av.VideoFrame(*size, "yuv420p")
    for plane, value in zip(frame.planes, yuv, strict=True):
        plane.update(bytes([value]) * plane.buffer_size)
    frame.colorspace, frame.color_range = matrix, value_range
    return frame


def colour_of(frame: av.VideoFrame) -> list[int]:
    pixels = frame_to_rgb(frame, Window(0, 0, frame.width, frame.height), (16, 16))
    return [int(value) for value in pixels[8, 8]]


def psnr(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    difference = first.astype(np.float64) - second
    return float(10 * np.log10(255**2 / np.mean(difference**2)))


def smooth_scene(count: int, size: int = 128) -> list[NDArray[np.uint8]]:
    rows, columns = np.mgrid[0:size, 0:size]
    scenes = []
    for number in range(count):
        waves = [np.sin((rows + number) / 20), np.cos((columns - number) / 25), np.sin((rows + columns) / 40)]
        scenes.append(np.dstack([128 + 90 * wave for wave in waves]).astype(np.uint8))
    return scenes


@pytest.mark.parametrize(("yuv", "matrix"), [((81, 90, 240), BT601), ((63, 102, 240), BT709)], ids=["BT.601", "BT.709"])
def test_red_is_red_in_the_matrix_that_the_frame_names(yuv: tuple[int, int, int], matrix: int) -> None:
    assert np.abs(np.array(colour_of(flat_frame(yuv, matrix=matrix))) - [255, 0, 0]).max() <= 2


def test_a_frame_that_names_no_matrix_is_bt601_when_small_and_bt709_when_large() -> None:
    small, large = flat_frame((81, 90, 240)), flat_frame((63, 102, 240), size=(1280, 720))
    assert np.abs(np.array([colour_of(small), colour_of(large)]) - [255, 0, 0]).max() <= 2


def test_white_is_white_in_both_ranges() -> None:
    assert colour_of(flat_frame((235, 128, 128), value_range=LIMITED)) == [255, 255, 255]
    assert colour_of(flat_frame((235, 128, 128), value_range=FULL)) == [235, 235, 235]


def test_shrinking_is_close_to_the_area_filter_on_full_rgb(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 1, size=(320, 240), options={"crf": "10"})
    container, _ = open_video(path, parallel=False)
    with container:
        frame = next(container.decode(video=0))
    whole = frame_to_rgb(frame, Window(0, 0, 320, 240), (320, 240))
    small = frame_to_rgb(frame, Window(0, 0, 320, 240), (112, 112))
    assert psnr(small, cv2.resize(whole, (112, 112), interpolation=cv2.INTER_AREA)) > 40


@pytest.mark.parametrize("corner", [(40, 20), (41, 21)], ids=["even", "odd"])
def test_a_window_shows_the_same_as_cutting_the_whole(tmp_path: Path, corner: tuple[int, int]) -> None:
    path = write_video(tmp_path / "a.mp4", 1, options={"crf": "10"})
    container, _ = open_video(path, parallel=False)
    with container:
        frame = next(container.decode(video=0))
    x, y = corner
    whole = frame_to_rgb(frame, Window(0, 0, 96, 64), (96, 64))
    cut = frame_to_rgb(frame, Window(x, y, 31, 25), (31, 25))
    assert cut.shape == (25, 31, 3)
    assert psnr(cut[2:-2, 2:-2], whole[y : y + 25, x : x + 31][2:-2, 2:-2]) > 32


def test_eight_threads_convert_the_same_as_one(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 16)
    container, _ = open_video(path, parallel=True)
    with container:
        frames = list(container.decode(video=0))

    def convert(frame: av.VideoFrame) -> NDArray[np.uint8]:
        return frame_to_rgb(frame, Window(10, 5, 61, 41), (48, 48))

    alone = [convert(frame) for frame in frames]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(convert, frames * 8))
    assert all(np.array_equal(pixels, alone[number % 16]) for number, pixels in enumerate(together))


def test_a_checksum_sees_pixels_and_not_the_padding_of_lines() -> None:
    first, second = (flat_frame((81, 90, 240), size=(50, 48)) for _ in range(2))
    luma = np.frombuffer(second.planes[0], np.uint8).reshape(48, -1).copy()
    assert luma.shape[1] > 50
    luma[:, 50:] = 7
    second.planes[0].update(luma.tobytes())
    assert frame_checksum(first) == frame_checksum(second)
    luma[20, 49] += 1
    second.planes[0].update(luma.tobytes())
    assert frame_checksum(first) != frame_checksum(second)


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "empty"), (b"no video at all" * 99, "cannot be opened"), (None, "cannot be opened")]
)
def test_what_is_no_video_is_refused_with_its_reason(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "a.mp4"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableVideo, match=reason):
        open_video(path, parallel=False)


def test_a_file_with_sound_alone_is_not_a_video(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))
    with pytest.raises(UnreadableVideo, match="it is not a video \\(expected MP4"):
        open_video(path, parallel=False)


def test_a_gop_returns_nearly_the_same_colours() -> None:
    frames = smooth_scene(12)
    back = decode_gop(encode_gop(frames, 95), 12)
    assert min(psnr(one, other) for one, other in zip(frames, back, strict=True)) > 38
    assert abs(np.mean(np.stack(back).astype(float) - np.stack(frames))) < 0.5


def test_colours_of_a_gop_stay_in_their_place() -> None:
    """Chroma that moves by half a pixel on the way costs 5 dB at coloured edges."""
    patches = np.random.default_rng(0).integers(0, 255, (12, 12, 3), np.uint8)
    frame = cv2.resize(patches, (192, 192), interpolation=cv2.INTER_CUBIC)
    (back,) = decode_gop(encode_gop([frame], 100), 1)
    assert psnr(frame, back) > 41


def test_a_gop_is_closed_has_no_b_frames_and_no_text_about_its_encoder(tmp_path: Path) -> None:
    data = encode_gop(smooth_scene(12), 95)
    assert b"x264" not in data
    path = tmp_path / "gop.h264"
    path.write_bytes(data)
    with av.open(str(path)) as container:
        kinds = [frame.pict_type for frame in container.decode(video=0)]
    assert kinds == [av.video.frame.PictureType.I] + [av.video.frame.PictureType.P] * 11


def test_better_quality_takes_more_bytes() -> None:
    frames = smooth_scene(4)
    assert crf_of(95) == 18
    assert len(encode_gop(frames, 60)) < len(encode_gop(frames, 95)) < len(encode_gop(frames, 100))


def test_odd_sides_are_refused_with_the_nearest_even_size() -> None:
    with pytest.raises(OptionError, match="'226x130'"):
        encode_gop([np.zeros((129, 225, 3), np.uint8)], 95)


def test_a_gop_cut_short_is_an_error() -> None:
    data = encode_gop(smooth_scene(4), 95)
    with pytest.raises(UnreadableVideo):
        decode_gop(data[: len(data) // 3], 4)


def test_a_gop_has_the_same_bytes_however_many_threads_encode() -> None:
    rng = np.random.default_rng(0)
    ground = rng.integers(0, 200, (96, 96, 3), np.uint8)
    frames = [np.roll(ground, 3 * number, axis=1) + rng.integers(0, 40, ground.shape, np.uint8) for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        made = set(pool.map(lambda _: encode_gop(frames, 100), range(400)))
    assert len(made) == 1
