"""Room for decoding: what decoders hold counts, large images wait for one another, and what cannot fit is refused.

Small images are not counted: an account of each would cost more than it saves.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.codecs.headers import Header, UnreadableImage

SMALL_BYTES = 4 << 20
SHARED = 0.5  # of the limit, for images that are decoded at once; one alone may take all of it
ALLOWED = 1.3  # of the limit, and a little more, for one image: beside it there is nothing large
ALLOWED_BYTES = 50 << 20
IN_FLOWS = "Give the flow more memory (memory=…), or make the images smaller first: penstock pack --size"


class Room:
    """Bytes that images take while their samples are made, in all threads of this process."""

    def __init__(self) -> None:
        self._held = 0
        self._changed = threading.Condition()
        self._thread = threading.local()

    @contextmanager
    def within(self, limit: int, remedy: str = IN_FLOWS) -> Iterator[None]:
        """What this thread decodes inside has to fit into so many bytes; `remedy` is for what never can."""
        before = self._limit, getattr(self._thread, "remedy", "")
        self._thread.limit, self._thread.remedy = limit, remedy
        try:
            yield
        finally:
            self._thread.limit, self._thread.remedy = before

    @contextmanager
    def sample(self) -> Iterator[None]:
        """What is decoded inside is held until the end: a sample keeps its pixels while steps change them."""
        before, depth = self._own, self._depth
        self._thread.depth = depth + 1
        try:
            yield
        finally:
            released, self._thread.own, self._thread.depth = self._own - before, before, depth
            if released:
                with self._changed:
                    self._held -= released
                    self._changed.notify_all()

    @property
    def is_counted(self) -> bool:
        """Whether this thread has a limit to keep to."""
        return self._limit is not None

    @property
    def _limit(self) -> int | None:
        limit: int | None = getattr(self._thread, "limit", None)
        return limit

    @property
    def _depth(self) -> int:
        depth: int = getattr(self._thread, "depth", 0)
        return depth

    @property
    def _own(self) -> int:
        own: int = getattr(self._thread, "own", 0)
        return own

    def enter(self, header: Header, at_least: tuple[int, int] | None = None) -> None:
        """Wait until an image can be decoded beside the others, or say that it never can."""
        limit, own = self._limit, self._own
        if limit is None:  # nobody counts
            return
        need = decoding_bytes(header, at_least)
        if need < SMALL_BYTES:  # not worth counting
            return
        if need > ALLOWED * limit + ALLOWED_BYTES:
            raise UnreadableImage(
                f"decoding {header.width:,}×{header.height:,} px ({header.kind.upper()}) takes about "
                f"{need / 2**20:,.0f} MB, and the memory budget is {limit / 2**20:,.0f} MB. {self._thread.remedy}"
            )
        if not self._depth:  # nobody would give it back
            return
        with self._changed:
            # Who holds an image already does not wait for others, who might wait for it.
            self._changed.wait_for(lambda: own or not self._held or self._held + need <= SHARED * limit)
            self._held += need
            self._thread.own = own + need


def decoding_bytes(header: Header, at_least: tuple[int, int] | None = None) -> int:
    """About what a decoder holds at its peak for an image, its result included; a JPEG may come out smaller."""
    pixels = header.width * header.height
    result = 3 * pixels * (1 if header.orientation == 1 else 2)
    if header.kind == "jpeg":
        # Two bytes for each coefficient, as many as without subsampling of colours: the most that it can be.
        held = 2 * pixels * header.channels if header.is_progressive else 0
        return int(result * _reduced(header, at_least) ** 2) + held
    if header.kind == "webp":
        return result + 4 * pixels  # it decodes to words of four bytes
    if is_direct(header):
        return result
    return result + pixels * header.channels * max(header.bits // 8, 1)


def may_be_large(pixels: int) -> bool:
    """Whether a JPEG of so many pixels may hold enough while it is decoded to be counted: a progressive one."""
    return 6 * pixels >= SMALL_BYTES


def _reduced(header: Header, at_least: tuple[int, int] | None) -> float:
    """The scale at which a JPEG is decoded that must not be smaller than this: eighths of its size."""
    if at_least is None:
        return 1.0
    wanted = max(at_least[0] / header.width, at_least[1] / header.height)
    return min(math.ceil(8 * wanted), 8) / 8


def is_direct(header: Header) -> bool:
    """Whether OpenCV can decode an image to RGB without a copy in between."""
    return header.kind in ("png", "webp") and header.channels == 3 and header.bits == 8


ROOM = Room()
