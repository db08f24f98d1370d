"""What packets tell of frames that do not come: behind the end of a cut-off file, and where decoders say nothing."""

from __future__ import annotations

from typing import Any

from penstock.codecs.video import Opened

# These containers store packets in decoding order without saying when each is shown.
WITHOUT_PRESENTATION_TIMES = frozenset({"avi", "h264", "hevc", "m4v", "mpegvideo"})

# Their decoders pass over damage without a word. Each packet is a frame, so one that does not come is damaged.
_SILENT = frozenset({"hevc", "mpeg4"})
# Frames that a camera left out are packets of MPEG-4 without a picture.
_WITHOUT_PICTURE_BYTES = 8
# VP8 stores pictures that others are made of and that are never shown; this bit of the first byte is set in the others.
_VP8_SHOWN = 0x10


class PacketEnd:
    """What the last packets tell of the end.

    Fewer packets than announced frames are no proof: videos may be trimmed, and cameras leave frames out. A file that
    was cut off is also over before the time that it announces.
    """

    def __init__(self, opened: Opened) -> None:
        self._stream = opened.stream
        self._is_reordered = bool(opened.stream.codec_context.has_b_frames)
        self._is_untimed = has_no_presentation_times(opened)
        self._count = 0
        self._first_decoded: int | None = None
        self._last_decoded: int | None = None
        self._last_shown: int | None = None

    def take(self, packet: Any) -> None:
        self._count += 1
        if packet.dts is not None:
            self._first_decoded = packet.dts if self._first_decoded is None else self._first_decoded
            self._last_decoded = packet.dts
        if packet.pts is not None:
            self._last_shown = packet.pts if self._last_shown is None else max(self._last_shown, packet.pts)

    @property
    def missing(self) -> int:
        """How many frames are announced behind the last packet; 0 where that is not certain."""
        missing = self._stream.frames - self._count
        return missing if missing > 0 and self._ends_early() else 0

    @property
    def sure_until(self) -> int | None:
        """The presentation time behind which frames may lack one between them, because its packet is missing."""
        return self._last_decoded if self.missing and self._is_reordered else None

    def _ends_early(self) -> bool:
        if self._is_untimed:
            if self._is_reordered or self._first_decoded is None or self._last_decoded is None:
                return False
            return round(self._frames(self._last_decoded - self._first_decoded)) + 1 == self._count
        if self._stream.duration is None or self._last_shown is None:
            return False
        begin = self._stream.start_time or 0
        # One frame is what a whole file has from when its last one is shown.
        return self._frames(begin + self._stream.duration - self._last_shown) > 1.5

    def _frames(self, units: int) -> float:
        """How many frames a time has room for, given in the file's own units."""
        return float(units * self._stream.time_base * (self._stream.average_rate or 0))


def must_show(codec: str) -> bool:
    """Whether a frame must come of each packet that may show one, so that it is damaged where none comes."""
    return codec in _SILENT


def may_show(packet: Any, codec: str) -> bool:
    """Whether a packet holds a frame that is shown."""
    if codec == "vp8":
        return bool(bytes(packet)[0] & _VP8_SHOWN)
    return packet.pts is not None and not (codec == "mpeg4" and packet.size <= _WITHOUT_PICTURE_BYTES)


def has_no_presentation_times(opened: Opened) -> bool:
    return not WITHOUT_PRESENTATION_TIMES.isdisjoint(opened.container.format.name.split(","))
