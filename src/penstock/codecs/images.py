"""Encoded image ↔ H×W×3 uint8 RGB.

| stored as      | becomes                                                              |
|----------------|----------------------------------------------------------------------|
| grey           | three equal channels                                                 |
| palette        | the colours of the palette                                           |
| alpha          | the colours under it; the alpha channel is left out                  |
| CMYK           | RGB by the plain formula, without a colour profile                   |
| 16 bits        | scaled from 0…65535 to 0…255, rounded; never wrapped                 |
| float          | an error: a scale must be given, which `Rasters` takes               |
| EXIF turned    | turned upright                                                       |
| animated       | the first frame                                                      |
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.decoding_room import ROOM, is_direct
from penstock.codecs.headers import Buffer, Header, UnreadableImage, masked_pixels, read_header
from penstock.codecs.opencv import opencv
from penstock.codecs.png import first_frame, is_animated
from penstock.codecs.tiff import without_orientation
from penstock.errors import OptionError

Pixels = NDArray[np.uint8]
CODECS = ("jpeg", "png", "webp", "raw")

MOST_PX, MOST_SIDE_PX = 1 << 30, 1 << 20
ROWS = 64  # of an image that are scaled at once
# 95: differences are below what a person sees, at about a third of the size of PNG.
DEFAULT_QUALITY = 95


def decode_image(data: Buffer, *, at_least: tuple[int, int] | None = None, fast: bool = False) -> Pixels:
    """Decode to RGB, upright. `at_least` (width, height) allows a JPEG to come out smaller, but not below that.

    `fast` allows an approximation: the fast integer transform of libjpeg, where simplejpeg decodes.
    """
    header = read_header(data)
    if reason := undecodable(header):
        raise UnreadableImage(reason)
    ROOM.enter(header, at_least)
    if header.kind == "jpeg" and header.channels in (1, 3) and header.bits == 8:
        pixels = _decode_jpeg(data, header, at_least, fast)
    elif is_direct(header):
        pixels = _decode_any(data, header, direct=True)  # without a copy in between: large images need the memory
    else:
        pixels = _rgb(_decode_any(data, header))
    return upright(pixels, header.orientation)


def decode_mask(data: Buffer) -> NDArray[Any]:
    """Decode an H×W image of whole numbers, upright, without touching its values."""
    header = read_header(data)
    ROOM.enter(header)
    pixels = _decode_any(data, header, unchanged=True)
    if pixels.ndim != 2:
        raise UnreadableImage("the mask is not an image with one channel")
    return upright(pixels, header.orientation)


def _decode_jpeg(data: Buffer, header: Header, at_least: tuple[int, int] | None, fast: bool) -> Pixels:
    import simplejpeg

    width, height = at_least or (0, 0)
    if header.orientation >= 5:
        width, height = height, width
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(data, "RGB", fastdct=fast, min_width=width, min_height=height)
    except ValueError as error:
        # simplejpeg refuses a few legal subsamplings and is strict about damage; OpenCV decides which it was.
        if "subsampling" not in str(error).lower() and "determine" not in str(error).lower():
            raise UnreadableImage(str(error)) from error
        pixels = _rgb(_decode_any(data, header))
    return pixels


def undecodable(header: Header) -> str:
    """Why an image of this size is not decoded as a whole; empty where it is. OpenCV has the same limits."""
    if header.kind == "jpeg" or (header.width * header.height <= MOST_PX and max(header[1:3]) <= MOST_SIDE_PX):
        return ""
    limit = f"{MOST_SIDE_PX:,} along a side" if max(header[1:3]) > MOST_SIDE_PX else f"{MOST_PX:,} in all"
    return f"its header says {header.width:,}×{header.height:,} px, and images have at most {limit}"


def _decode_any(data: Buffer, header: Header, *, unchanged: bool = False, direct: bool = False) -> NDArray[Any]:
    """The pixels as OpenCV gives them: BGR order (RGB if `direct`), any depth, not turned."""
    cv2 = opencv()

    flags = cv2.IMREAD_UNCHANGED
    # CMYK becomes BGR, but not when it is asked for unchanged; nor do the colours of old BMPs.
    if header.kind in ("jpeg", "bmp") and not unchanged:
        flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    if direct:
        flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION
    if reason := undecodable(header):
        raise UnreadableImage(reason)
    if header.kind == "bmp" and (masked := masked_pixels(data)) is not None:
        return masked
    try:
        pixels = cv2.imdecode(np.frombuffer(_still(data, header), np.uint8), flags)
    except (cv2.error, MemoryError) as error:  # its own words name files of its sources
        raise UnreadableImage(f"the {header.kind.upper()} data cannot be decoded") from error
    if pixels is None:
        raise UnreadableImage(f"the {header.kind.upper()} data cannot be decoded")
    out: NDArray[Any] = pixels
    return out


def _still(data: Buffer, header: Header) -> Buffer:
    """The bytes such that OpenCV gives the first frame, and does not turn it: it turns TIFFs whatever it is told."""
    if header.kind == "tiff" and header.orientation != 1:
        return without_orientation(data)
    return first_frame(data) if header.kind == "png" and is_animated(data) else data


def _rgb(pixels: NDArray[Any]) -> Pixels:
    cv2 = opencv()

    eight = _eight_bits(pixels)
    if eight.ndim == 2 or eight.shape[2] == 1:
        return np.repeat(eight.reshape(*eight.shape[:2], 1), 3, axis=2)
    if eight.shape[2] == 2:
        return np.repeat(eight[:, :, :1], 3, axis=2)
    code = cv2.COLOR_BGRA2RGB if eight.shape[2] == 4 else cv2.COLOR_BGR2RGB
    out: Pixels = cv2.cvtColor(eight, code)
    return out


def _eight_bits(pixels: NDArray[Any]) -> Pixels:
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype == np.uint16:
        out = np.empty(pixels.shape, np.uint8)
        for row in range(0, len(pixels), ROWS):  # in between, a pixel takes several times its size
            out[row : row + ROWS] = (pixels[row : row + ROWS].astype(np.uint32) * 255 + 32767) // 65535
        return out
    if pixels.dtype == np.bool_:
        return pixels.astype(np.uint8) * np.uint8(255)
    raise UnreadableImage(f"its pixels are {pixels.dtype}; use rasters with a scale, which says how they become 0…255")


def upright(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Turn pixels as the EXIF orientation asks."""
    if orientation == 1:
        return pixels
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def encode_image(pixels: Pixels, codec: str, quality: int = DEFAULT_QUALITY) -> bytes:
    """Encode RGB (or, for png and raw, a mask); the bytes depend on nothing but the arguments."""
    if codec == "raw":
        return pixels.tobytes()
    if codec == "jpeg":
        import simplejpeg

        encoded: bytes = simplejpeg.encode_jpeg(np.ascontiguousarray(pixels), quality=quality, colorsubsampling="420")
        return encoded
    if codec in ("png", "webp"):
        return _encode_opencv(pixels, codec, quality)
    raise OptionError(f"codec {codec!r} is not one of {', '.join(CODECS)}.")


def _encode_opencv(pixels: NDArray[Any], codec: str, quality: int) -> bytes:
    cv2 = opencv()

    # Level 1: at most a tenth larger than level 6 on photographs, five times as fast.
    options = [cv2.IMWRITE_PNG_COMPRESSION, 1] if codec == "png" else [cv2.IMWRITE_WEBP_QUALITY, quality]
    if pixels.ndim == 3:
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
    done, encoded = cv2.imencode(f".{codec}", pixels, options)
    if not done:
        raise UnreadableImage(f"{pixels.shape[1]}×{pixels.shape[0]} px cannot be encoded as {codec}")
    return bytes(encoded)
