"""What the first bytes of an image say: its kind, size and orientation.

The content decides, never the ending of the name: a GIF called .jpg is a GIF.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import tiff
from penstock.storage.plain_files import open_file

# BMP: its size in every form of the header, and colours at other places than OpenCV takes them from.


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


Buffer = bytes | bytearray | memoryview

# Enough for the header of nearly every file; the rest are mapped.
FIRST_BYTES = 65536


class Header(NamedTuple):
    """Width and height are those that a viewer shows, after the EXIF orientation."""

    kind: str
    width: int
    height: int
    orientation: int = 1
    channels: int = 3
    bits: int = 8
    is_progressive: bool = False  # a JPEG whose decoder holds all its coefficients


class UnreadableImage(ValueError):  # noqa: N818 - reads as what it is: "unreadable image: …"
    """Some bytes are not an image that can be read; the text is the short reason."""


def sniff(data: Buffer) -> str:
    """The kind of image that some bytes begin: jpeg, png, webp, tiff, bmp, gif, or empty when it is none."""
    start = bytes(data[:16])
    if start[:3] == b"\xff\xd8\xff":
        return "jpeg"
    if start[:8] == b"\x89PNG\r\n\x1a\n":
        return "png"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "webp"
    if start[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return "tiff"
    if start[:6] in (b"GIF87a", b"GIF89a"):
        return "gif"
    return "bmp" if start[:2] == b"BM" else ""


def read_header(data: Buffer) -> Header:
    """Parse the header of a whole encoded image, or raise UnreadableImage with the reason."""
    kind = sniff(data)
    if not kind:
        raise UnreadableImage(_not_an_image(data))
    try:
        header = _PARSERS[kind](data)
    except (struct.error, IndexError) as error:
        raise UnreadableImage(f"the {kind} header is cut short") from error
    if header.width < 1 or header.height < 1:
        raise UnreadableImage(f"the {kind} header says {header.width}×{header.height} px")
    return header


def cut_short(data: Buffer, kind: str) -> str:
    """Why the end of an encoded image is missing, as far as its structure tells; empty when it looks whole."""
    view = memoryview(data)
    if kind == "jpeg":
        if bytes(view[-2:]) == b"\xff\xd9":  # nearly always, and much faster than finding where the picture begins
            return ""
        return "" if _ends_with(view[_jpeg_frame(view)[0] :], b"\xff\xd9") else "the end of the JPEG is missing"
    if kind == "png":
        return "" if _ends_with(view, b"IEND") else "the end of the PNG is missing"
    if kind == "gif":
        return "" if bytes(view[-FIRST_BYTES:]).rstrip(b"\0").endswith(b"\x3b") else "the end of the GIF is missing"
    if kind == "webp":
        (size,) = struct.unpack_from("<I", view, 4)
        return "" if len(view) >= size + 8 else f"the WebP should have {size + 8:,} bytes and has {len(view):,}"
    if kind == "bmp":
        return _bmp_cut_short(view)
    needed = tiff.first_directory(view).end
    return "" if len(view) >= needed else f"the TIFF should have {needed:,} bytes and has {len(view):,}"


def read_file_header(path: Path) -> Header:
    """The header of a file, reading as little of it as will do; also checks cheaply that the end is there."""
    with open_file(path) as file:
        first = file.read(FIRST_BYTES)
        if len(first) < FIRST_BYTES:
            return _whole_header(first)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            return _whole_header(view)


def _whole_header(data: Buffer) -> Header:
    header = read_header(data)
    missing = cut_short(data, header.kind)
    if missing:
        raise UnreadableImage(missing)
    return header


def _ends_with(view: memoryview, mark: bytes) -> bool:
    """Whether an end mark is there. Cameras append data of their own, so the last 64 KiB are searched."""
    return mark in bytes(view[-2:]) or mark in bytes(view[-FIRST_BYTES:])


def _not_an_image(data: Buffer) -> str:
    if len(data) == 0:
        return "the file is empty"
    start = bytes(data[:12])
    if not any(start):
        return "the file begins with zeros, as an interrupted copy leaves it"
    if start[4:8] == b"ftyp":
        return "it is a HEIC/AVIF or video file; convert it to JPEG or PNG"
    if start[:1] == b"<" or start[:5] == b"%PDF-":
        return f"it is no image: it begins with {start.decode('latin-1')!r}"
    return "it is no JPEG, PNG, WebP, TIFF, BMP or GIF"


_SIZE_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE_MARKERS = frozenset({0xC2, 0xC6, 0xCA, 0xCE})


def _jpeg(data: Buffer) -> Header:
    position, orientation = _jpeg_frame(data)
    bits, height, width, channels = struct.unpack_from(">BHHB", data, position + 4)
    is_progressive = data[position + 1] in _PROGRESSIVE_MARKERS
    return _turned(Header("jpeg", width, height, orientation, channels, bits, is_progressive))


def _jpeg_frame(data: Buffer) -> tuple[int, int]:
    """Where the frame header stands, behind any embedded thumbnail, and the EXIF orientation before it."""
    position, orientation = 2, 1
    while True:
        while data[position] == 0xFF and data[position + 1] == 0xFF:
            position += 1
        if data[position] != 0xFF:
            raise UnreadableImage("the JPEG header is damaged")
        marker = data[position + 1]
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:
            position += 2
            continue
        if marker in (0xD9, 0xDA):
            raise UnreadableImage("the JPEG has no size")
        (length,) = struct.unpack_from(">H", data, position + 2)
        if marker == 0xE1 and bytes(data[position + 4 : position + 10]) == b"Exif\0\0":
            orientation = _exif_orientation(bytes(data[position + 10 : position + 2 + length]))
        elif marker in _SIZE_MARKERS:
            return position, orientation
        position += 2 + length


def _turned(header: Header) -> Header:
    """Orientations 5 to 8 lie on their side."""
    if header.orientation >= 5:
        return header._replace(width=header.height, height=header.width)
    return header


def _exif_orientation(tiff: bytes) -> int:
    """The orientation tag of an EXIF block; a damaged block means upright, as viewers do."""
    if tiff[:4] not in (b"II*\0", b"MM\0*"):
        return 1
    order = "<" if tiff[:2] == b"II" else ">"
    try:
        (start,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, start)
        for entry in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind, _, value = struct.unpack_from(order + "HHIH", tiff, entry)
            if tag == 0x0112 and kind == 3:
                return int(value) if 1 <= value <= 8 else 1
    except struct.error:
        return 1
    return 1


_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}


def _png(data: Buffer) -> Header:
    if bytes(data[12:16]) != b"IHDR":
        raise UnreadableImage("the PNG header is damaged")
    width, height, bits, colour = struct.unpack_from(">IIBB", data, 16)
    return _turned(Header("png", width, height, _png_orientation(data), _PNG_CHANNELS.get(colour, 3), max(bits, 8)))


def _png_orientation(data: Buffer) -> int:
    """The eXIf chunk, if one comes before the pixels."""
    position = 8
    while position + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        name = bytes(data[position + 4 : position + 8])
        if name == b"eXIf":
            return _exif_orientation(bytes(data[position + 8 : position + 8 + length]))
        if name in (b"IDAT", b"IEND"):
            return 1
        position += 12 + length
    return 1


def _gif(data: Buffer) -> Header:
    width, height = struct.unpack_from("<HH", data, 6)
    return Header("gif", width, height)


def _bmp(data: Buffer) -> Header:
    found = bmp_header(data)
    return Header("bmp", found.width, abs(found.height), 1, 4 if found.bits == 32 else 3)


def _bmp_cut_short(view: memoryview) -> str:
    width, height, bits, compression, start = bmp_header(view)
    if compression not in (0, 3):
        return ""
    needed = start + (width * bits + 31) // 32 * 4 * abs(height)
    return "" if len(view) >= needed else f"the BMP should have {needed:,} bytes and has {len(view):,}"


def _webp(data: Buffer) -> Header:
    form = bytes(data[12:16])
    if form == b"VP8X":
        flags = data[20]
        width = 1 + int.from_bytes(bytes(data[24:27]), "little")
        height = 1 + int.from_bytes(bytes(data[27:30]), "little")
        orientation = _webp_orientation(data) if flags & 0x08 else 1
        return _turned(Header("webp", width, height, orientation, 4 if flags & 0x10 else 3))
    if form == b"VP8L":
        bits = int.from_bytes(bytes(data[21:25]), "little")
        return Header("webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF), 1, 4 if bits >> 28 & 1 else 3)
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return Header("webp", width & 0x3FFF, height & 0x3FFF)
    raise UnreadableImage("the WebP header is damaged")


def _webp_orientation(data: Buffer) -> int:
    position = 12
    while position + 8 <= len(data):
        (length,) = struct.unpack_from("<I", data, position + 4)
        if bytes(data[position : position + 4]) == b"EXIF":
            block = bytes(data[position + 8 : position + 8 + length])
            return _exif_orientation(block.removeprefix(b"Exif\0\0"))
        position += 8 + length + (length & 1)
    return 1


def _tiff(data: Buffer) -> Header:
    found = tiff.first_directory(data)
    if not found.width or not found.height:
        raise UnreadableImage("the TIFF has no size")
    return _turned(Header("tiff", found.width, found.height, found.orientation, found.channels, found.bits))


_PARSERS: dict[str, Callable[[Buffer], Header]] = {
    "jpeg": _jpeg,
    "png": _png,
    "gif": _gif,
    "bmp": _bmp,
    "webp": _webp,
    "tiff": _tiff,
}
