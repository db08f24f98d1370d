"""Animated PNG: without its other frames, so that every decoder gives the first one."""

from __future__ import annotations

import struct

_OF_ANIMATION = (b"acTL", b"fcTL", b"fdAT")


def is_animated(data: bytes | bytearray | memoryview) -> bool:
    """Whether a PNG says, before its pixels, that there are more frames."""
    return any(name == b"acTL" for name, _, _ in _chunks(data, until=b"IDAT"))


def first_frame(data: bytes | bytearray | memoryview) -> bytes:
    """The same PNG without animation."""
    kept = [bytes(data[start:stop]) for name, start, stop in _chunks(data) if name not in _OF_ANIMATION]
    return bytes(data[:8]) + b"".join(kept)


def _chunks(data: bytes | bytearray | memoryview, until: bytes = b"") -> list[tuple[bytes, int, int]]:
    """Name, begin and end of every chunk that is there as a whole."""
    found, position = [], 8
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        name, end = bytes(data[position + 4 : position + 8]), position + 12 + length
        if name == until or end > len(data):
            break
        found.append((name, position, end))
        position = end
    return found
