"""The last step of a sample in a worker: its row as a format stores it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.codecs.headers import Header, read_header
from penstock.codecs.images import decode_image, encode_image
from penstock.storage.writing.preparing import KEPT_WHEN_RESIZED, Row

# What nearly every program opens; other kinds become PNG.
KEPT_KINDS = ("jpeg", "png", "webp", "bmp")

ENDINGS = {"jpeg": "jpg", "png": "png", "webp": "webp", "bmp": "bmp", "gif": "gif"}


@dataclass(frozen=True)
class Rendering:
    """Makes the bytes of an image such that others read the same pixels, then lets the format have the row.

    With no kind to keep the bytes are pixels, and stay.
    Images that EXIF turns are written upright: labels belong to the upright image, and most readers ignore EXIF.
    """

    kept_kinds: tuple[str, ...] = KEPT_KINDS
    quality: int = 95
    swaps_colours: bool = False
    surround: Callable[[Row], tuple[bytes, bytes]] | None = None
    frame: Callable[[Sequence[Row]], None] | None = None
    check: Callable[[Row], None] | None = None

    def __call__(self, row: Row) -> Row:
        if self.check is not None:
            self.check(row)
        if row.payload and self.kept_kinds:
            header = row.header or read_header(row.payload)
            if not self._is_readable(header):
                row.payload, row.header = self._readable(row.payload, header), None
        if self.surround is not None:
            row.before, row.behind = self.surround(row)
        return row

    def _is_readable(self, header: Header) -> bool:
        return header.kind in self.kept_kinds and header.orientation == 1 and not self.swaps_colours

    def _readable(self, data: bytes | memoryview, header: Header) -> bytes:
        pixels = decode_image(data)
        if self.swaps_colours:
            pixels = np.ascontiguousarray(pixels[:, :, ::-1])
        return encode_image(pixels, self._codec(header), self.quality)

    def _codec(self, header: Header) -> str:
        return header.kind if header.kind in self.kept_kinds and header.kind in KEPT_WHEN_RESIZED else "png"
