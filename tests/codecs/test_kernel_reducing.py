"""Frames made small by the kernel, beside swscale and beside floating point."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import av.filter
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from penstock.codecs import kernel
from penstock.codecs.kernel.reducing import Look, Siting, reduction_of
from penstock.codecs.siting import siting_of
from penstock.codecs.video import frame_to_rgb, open_video
from penstock.geometry import Window
from video_making import turn_clockwise, write_video

BT709, UNSPECIFIED, BT601, SMPTE170M, BT2020 = 1, 2, 5, 6, 9
FORMATS = ["yuv420p", "yuv422p", "yuv444p", "yuvj420p"]
CENTRE, LEFT = Siting(0, 0), Siting(1, 0)

pytestmark = pytest.mark.skipif(kernel.native_extension() is None, reason="the kernel is not built here")


def scene(
    size: tuple[int, int] = (128, 96), *, format_name: str = "yuv420p", matrix: int = BT601, value_range: int = 1
) -> av.VideoFrame:
    """Patches of colour with soft edges."""
    rng = np.random.default_rng(0)
    frame = av.VideoFrame(*size, format_name)
    for plane in frame.planes:
        patches = cv2.resize(rng.integers(40, 216, (6, 6), np.uint8), (plane.width, plane.height))
        lines = np.zeros((plane.height, plane.line_size), np.uint8)
        lines[:, : plane.width] = patches
        plane.update(lines.tobytes())
    frame.colorspace, frame.color_range = matrix, value_range
    return frame


def values_of(plane: Any) -> NDArray[np.float64]:
    lines = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    return lines[: plane.height, : plane.width].astype(np.float64)


def whole(frame: av.VideoFrame) -> Window:
    return Window(0, 0, frame.width, frame.height)


def levels_apart(frame: av.VideoFrame, window: Window, size: tuple[int, int], siting: Siting | None) -> NDArray[Any]:
    by_kernel = frame_to_rgb(frame, window, size, siting=siting).astype(np.float64)
    return by_kernel - frame_to_rgb(frame, window, size)


def is_reduced(frame: av.VideoFrame, window: Window, size: tuple[int, int]) -> bool:
    look = Look(frame.format.name, frame.colorspace, frame.color_range)
    return reduction_of(look, CENTRE, window, size) is not None


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("size", [(64, 96), (100, 50), (127, 95), (13, 7), (1, 1)])
def test_pixels_are_within_two_levels_of_swscale_and_not_biased(format_name: str, size: tuple[int, int]) -> None:
    for matrix, value_range in itertools.product([BT709, UNSPECIFIED, BT601, SMPTE170M, BT2020], [0, 1, 2]):
        frame = scene(format_name=format_name, matrix=matrix, value_range=value_range)
        assert siting_of(frame) == CENTRE
        apart = levels_apart(frame, whole(frame), size, CENTRE)
        assert np.abs(apart).max() <= 2
        assert np.abs(apart.mean()) <= (0.05 if apart.size > 300 else 1)


def test_a_window_is_within_two_levels_of_swscale() -> None:
    frame, window = scene(), Window(20, 10, 90, 64)
    assert is_reduced(frame, window, (48, 48))
    assert np.abs(levels_apart(frame, window, (48, 48), CENTRE)).max() <= 2


def decoded_patches(path: Path, parameters: str) -> av.VideoFrame:
    """Coloured patches, through H.264."""
    patches = np.random.default_rng(0).integers(0, 255, (12, 12, 3), np.uint8)
    pixels = cv2.resize(patches, (192, 192), interpolation=cv2.INTER_CUBIC)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"crf": "5", "x264-params": parameters})
        stream.width, stream.height, stream.pix_fmt = 192, 192, "yuv420p"
        container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return first_frame(path)


def first_frame(path: Path) -> av.VideoFrame:
    container, _ = open_video(path, parallel=False)
    with container:
        return next(container.decode(video=0))


@pytest.mark.parametrize(("chroma_place", "siting"), [(0, LEFT), (1, CENTRE), (2, Siting(1, 1)), (4, Siting(1, -1))])
def test_chroma_of_a_video_is_taken_from_where_it_lies(tmp_path: Path, chroma_place: int, siting: Siting) -> None:
    frame = decoded_patches(tmp_path / "a.mp4", f"chromaloc={chroma_place}")
    assert siting_of(frame) == siting
    apart = levels_apart(frame, whole(frame), (80, 72), siting)
    assert np.abs(apart).max() <= 2
    assert 10 * np.log10(255**2 / np.mean(apart**2)) > 60
    elsewhere = Siting(1 - siting.across, siting.down)
    assert np.abs(levels_apart(frame, whole(frame), (80, 72), elsewhere)).max() > 5


def test_luma_is_the_mean_of_what_a_pixel_covers() -> None:
    frame = scene((96, 64), format_name="yuvj420p", value_range=2)
    for plane in frame.planes[1:]:
        plane.update(bytes([128]) * plane.buffer_size)
    grey = frame_to_rgb(frame, whole(frame), (32, 16), siting=CENTRE)
    expected = values_of(frame.planes[0]).reshape(16, 4, 32, 3).mean(axis=(1, 3))
    assert np.abs(grey - expected[:, :, None]).max() <= 0.51


@pytest.mark.parametrize("size", [(96, 64), (97, 64), (192, 128), (48, 65)])
def test_what_does_not_shrink_is_left_to_swscale(size: tuple[int, int]) -> None:
    frame = scene((96, 64))
    assert not is_reduced(frame, whole(frame), size)
    assert not np.any(levels_apart(frame, whole(frame), size, CENTRE))


@pytest.mark.parametrize("window", [Window(1, 0, 90, 64), Window(0, 3, 90, 60), Window(0, 0, 91, 64)])
def test_windows_that_cut_through_chroma_are_left_to_swscale(window: Window) -> None:
    assert not is_reduced(scene((96, 64)), window, (32, 32))
    assert is_reduced(scene((96, 64), format_name="yuv444p"), window, (32, 32))


@pytest.mark.parametrize("format_name", ["yuv420p10le", "gray", "nv12", "rgb24"])
def test_other_formats_are_left_to_swscale(format_name: str) -> None:
    assert siting_of(av.VideoFrame(64, 48, format_name)) is None


def test_without_the_kernel_swscale_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "native_extension", lambda: None)
    assert siting_of(scene()) is None


def test_turned_frames_are_left_to_swscale(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 1, size=(96, 64))
    turn_clockwise(path)
    frame = first_frame(path)
    assert frame.rotation
    assert not np.any(levels_apart(frame, Window(0, 0, 64, 96), (32, 48), CENTRE))


def test_lines_that_are_stored_upwards_are_left_to_swscale() -> None:
    graph = av.filter.Graph()
    ends = graph.add_buffer(width=96, height=64, format=scene().format, time_base=Fraction(1, 25))
    flip, leave = graph.add("vflip"), graph.add("buffersink")
    ends.link_to(flip)
    flip.link_to(leave)
    graph.configure()
    graph.push(scene((96, 64)))
    frame = graph.pull()
    assert frame.planes[0].line_size < 0
    assert not np.any(levels_apart(frame, whole(frame), (32, 32), CENTRE))


def test_a_frame_as_small_as_the_trial_stays_as_it_is() -> None:
    frame = scene((32, 32))
    before = bytes(frame.planes[1])
    assert siting_of(frame) == CENTRE
    assert bytes(frame.planes[1]) == before


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"lines": (8, 32, 32)}, "out of a plane"),
        ({"window": (0, 0, 64, 50)}, "out of a plane"),
        ({"window": (1, 0, 62, 48)}, "value of chroma"),
        ({"size": (65, 16)}, "grows"),
        ({"size": (0, 16)}, "from 1 to"),
        ({"chroma": (3, 1, 0, 0)}, "chroma"),
        ({"matrix": (16, 9539, 1 << 20, 0, 0, 0)}, "matrix"),
        ({"out": np.empty((16, 15, 3), np.uint8)}, "out has not the size"),
    ],
)
def test_the_kernel_refuses_what_does_not_fit(changes: dict[str, Any], problem: str) -> None:
    native: Any = kernel.native_extension()
    given: dict[str, Any] = {
        "planes": (bytes(64 * 48), bytes(32 * 24), bytes(32 * 24)),
        "lines": (64, 32, 32),
        "window": (0, 0, 64, 48),
        "chroma": (1, 1, 0, 0),
        "matrix": (16, 9539, 13075, -3209, -6660, 16525),
        "size": (16, 16),
        "out": np.empty((16, 16, 3), np.uint8),
    }
    native.planes_to_rgb(*given.values())
    with pytest.raises(ValueError, match=problem):
        native.planes_to_rgb(*{**given, **changes}.values())
