"""Which part of a picture is kept and how it is brought to the target size: crop, fit, size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.resizing import resized
from penstock.errors import OptionError, one_of
from penstock.geometry import Window, parse_size

FITS = ("stretch", "pad", "crop")

# DeepEthogram's own size, and what most pretrained networks expect.
DEFAULT_SIZE = "224x224"

Pixels = NDArray[np.uint8]


class Placement(NamedTuple):
    """For pictures of one size: this window, scaled to this size, put here on a black canvas."""

    window: Window
    scaled: tuple[int, int]
    corner: tuple[int, int]
    canvas: tuple[int, int]


@dataclass(frozen=True)
class Framing:
    """A region of interest first, then stretch, pad or crop to the size; None keeps the size.

    stretch   the whole region, its proportions changed        (as DeepEthogram does)
    pad       the whole region, its proportions kept, with black bars on both sides
    crop      the middle of the region that has the proportions of the target
    """

    size: tuple[int, int] | None
    fit: str
    crop: Window | None

    def placement(self, width: int, height: int) -> Placement:
        """What to do with a picture of this size; raises ValueError where the crop lies outside."""
        region = self.crop or Window(0, 0, width, height)
        if region.x + region.width > width or region.y + region.height > height:
            raise ValueError(f"the crop {_words(region)} lies outside its frames of {width}×{height} px")
        if self.size is None:
            size = (region.width, region.height)
            return Placement(region, size, (0, 0), size)
        if self.fit == "crop":
            region = _middle(region, self.size)
        scaled = _inside(region, self.size) if self.fit == "pad" else self.size
        corner = ((self.size[0] - scaled[0]) // 2, (self.size[1] - scaled[1]) // 2)
        return Placement(region, scaled, corner, self.size)


def make_framing(size: str | tuple[int, int] | None, fit: str, crop: object) -> Framing:
    """Check the options at the door."""
    one_of("fit", fit, FITS)
    return Framing(None if size is None else parse_size(size), fit, _parse_crop(crop))


def _parse_crop(crop: object) -> Window | None:
    if crop is None:
        return None
    values = crop.split(",") if isinstance(crop, str) else crop
    try:
        x, y, width, height = (int(value) for value in values)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise OptionError(f"crop={crop!r} is not x,y,width,height in whole pixels, such as 40,0,560,480.") from error
    if x < 0 or y < 0 or width < 1 or height < 1:
        raise OptionError(f"crop={crop!r} must begin inside the frame and be at least 1 pixel wide and high.")
    return Window(x, y, width, height)


def _words(window: Window) -> str:
    return ",".join(str(value) for value in window)


def _middle(region: Window, size: tuple[int, int]) -> Window:
    """The largest window in the middle of a region with the proportions of a size."""
    width = min(region.width, max(1, round(region.height * size[0] / size[1])))
    height = min(region.height, max(1, round(region.width * size[1] / size[0])))
    return Window(region.x + (region.width - width) // 2, region.y + (region.height - height) // 2, width, height)


def _inside(region: Window, size: tuple[int, int]) -> tuple[int, int]:
    """The largest size with the proportions of a region that fits into a size."""
    factor = min(size[0] / region.width, size[1] / region.height)
    return max(1, round(region.width * factor)), max(1, round(region.height * factor))


def framed_pixels(pixels: Pixels, framing: Framing) -> Pixels:
    """Apply a framing to decoded RGB."""
    place = framing.placement(pixels.shape[1], pixels.shape[0])
    x, y, width, height = place.window
    scaled = resized(pixels[y : y + height, x : x + width], *place.scaled)
    return on_canvas(np.ascontiguousarray(scaled), place)


def on_canvas(scaled: Pixels, place: Placement) -> Pixels:
    """Put scaled pixels where they belong; they are the canvas themselves unless padded."""
    if place.scaled == place.canvas:
        return scaled
    canvas = np.zeros((place.canvas[1], place.canvas[0], 3), np.uint8)
    x, y = place.corner
    canvas[y : y + scaled.shape[0], x : x + scaled.shape[1]] = scaled
    return canvas
