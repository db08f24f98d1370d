"""BMP: its size in every form of the header, and colours at other places than OpenCV takes them from."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_OLD_HEADER_BYTES = 12  # of OS/2 1.x: sizes of 16 bits
_BIT_FIELDS = (3, 6)
_MASKS_AT = 54  # behind a header of 40 bytes, and inside of longer ones
_USUAL_MASKS = (0xFF0000, 0xFF00, 0xFF)


class BmpHeader(NamedTuple):
    width: int
    height: int  # below 0: the first row is the top one
    bits: int
    compression: int
    start: int  # where the pixels begin


def bmp_header(data: bytes | bytearray | memoryview) -> BmpHeader:
    """Raises struct.error where the file is cut short before its header ends."""
    start, length = struct.unpack_from("<II", data, 10)
    if length == _OLD_HEADER_BYTES:
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
        return BmpHeader(width, height, bits, 0, start)
    width, height, _, bits, compression = struct.unpack_from("<iiHHI", data, 18)
    return BmpHeader(width, height, bits, compression, start)


def masked_pixels(data: bytes | bytearray | memoryview) -> NDArray[np.uint8] | None:
    """H×W×3 in the order BGR, if the pixels are words of 32 bits with unusual places of colours; else None."""
    header = bmp_header(data)
    if header.bits != 32 or header.compression not in _BIT_FIELDS:
        return None
    masks = struct.unpack_from("<III", data, _MASKS_AT)
    has_short_header = struct.unpack_from("<I", data, 14)[0] < 108  # OpenCV reads masks of longer ones alone
    if masks == _USUAL_MASKS and not has_short_header:
        return None
    height, width = abs(header.height), header.width
    if len(data) < header.start + 4 * width * height or width < 0:
        return None
    words = np.frombuffer(data, "<u4", width * height, header.start).reshape(height, width)
    pixels = np.stack([_channel(words, mask) for mask in reversed(masks)], axis=2)
    return pixels if header.height < 0 else np.ascontiguousarray(pixels[::-1])


def _channel(words: NDArray[np.uint32], mask: int) -> NDArray[np.uint8]:
    """One colour, from all the values that its bits can have to 0 … 255."""
    if not mask:
        return np.zeros(words.shape, np.uint8)
    shift = (mask & -mask).bit_length() - 1
    most = mask >> shift
    values = (words & np.uint32(mask)) >> np.uint32(shift)
    return ((values.astype(np.uint64) * 255 + most // 2) // most).astype(np.uint8)
