"""Where the chroma of a video lies, found by asking swscale, which knows the frame's tags that PyAV does not show.

A small frame with the tags of the video and ramps for chroma is made RGB by swscale and by the kernel, for each place
where chroma may lie. Where they agree, the kernel may take over: nothing about the file is then read in another way.
"""

from __future__ import annotations

import numpy as np

from penstock.codecs.kernel.reducing import Pixels, Siting, sitings
from penstock.codecs.video import Frame, frame_to_rgb
from penstock.geometry import Window

_SIDE, _OTHER_SIDE, _SMALL_SIDE = 32, 48, 24
_GREY = 120
# A quarter of a value of chroma moves the ramps by some three levels.
_MOST_LEVELS_APART = 2


def siting_of(frame: Frame) -> Siting | None:
    """Where the kernel must think chroma in order to agree with swscale; None where it does not, or is not built."""
    places = sitings(frame.format.name)
    if not places:
        return None
    ramps = _ramps(frame)
    window, size = Window(0, 0, ramps.width, ramps.height), (_SMALL_SIDE, _SMALL_SIDE)
    expected = frame_to_rgb(ramps, window, size)
    apart = [_levels_apart(frame_to_rgb(ramps, window, size, siting=place), expected) for place in places]
    best = int(np.argmin(apart))
    return places[best] if apart[best] <= _MOST_LEVELS_APART else None


def _ramps(frame: Frame) -> Frame:
    """A small frame with the tags of another: grey, with blue chroma that grows across and red that grows down."""
    from av.video.reformatter import VideoReformatter

    side = _OTHER_SIDE if (frame.width, frame.height) == (_SIDE, _SIDE) else _SIDE  # else it would be the frame itself
    small = VideoReformatter().reformat(frame, side, side, frame.format.name, threads=1)
    for number, plane in enumerate(small.planes):
        values = np.full((plane.height, plane.line_size), _GREY, np.uint8)
        if number == 1:
            values[:, : plane.width] = _ramp(plane.width)
        elif number == 2:
            values[:, : plane.width] = _ramp(plane.height)[:, None]
        plane.update(values.tobytes())
    return small


def _ramp(count: int) -> Pixels:
    """Values that no matrix brings out of the range together with grey."""
    return np.linspace(88, 168, count).round().astype(np.uint8)


def _levels_apart(pixels: Pixels, others: Pixels) -> float:
    return float(np.abs(pixels.astype(np.int16) - others).max())
