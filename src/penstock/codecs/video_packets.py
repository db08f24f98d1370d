"""Packets of a video, read and not decoded: what can be known of it, and what they tell of lost frames."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from penstock.codecs.video import Opened, open_video, pyav
from penstock.codecs.video_groups import GroupLimits, Starts, codec_of, may_be_cut

# What packets tell of frames that do not come: behind the end of a cut-off file, and where decoders say nothing.


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


# Some thousand packets are a few megabytes; cameras leave 12 to 300.
LONGEST_GROUP = 2000
# Two minutes of a camera. Of longer videos the second reading costs nothing beside decoding, and memory must not grow.
MOST_KEPT_PACKETS = 4096
MOST_KEPT_BYTES = 32 << 20


class Packets(NamedTuple):
    """What can be known of a video without decoding it."""

    packet_count: int
    rate: float  # frames per second as the container gives it; 0 when it does not
    has_presentation_times: bool  # else frames are as far apart as the rate says
    time_base: Fraction  # seconds of one unit of the presentation times
    announced: int  # frames that the container claims; an estimate
    longest_group: int = 0  # packets that must be decoded one after another; 0 where that is not known
    missing: int = 0  # frames at the end that the container announces, and that the file is cut off before
    sure_until: int | None = None  # the presentation time behind which one of them may be missing between others
    streams: str = ""  # which of several video streams this is, in words
    size: tuple[int, int] = (0, 0)  # width and height that the stream names; frames in the middle may have others


class ReadVideo(NamedTuple):
    """A video that was read to its end and is still open; its decoder has not begun."""

    facts: Packets
    opened: Opened
    packets: list[Any] | None  # None where there are too many to be kept
    is_cut_off: bool  # the end of the file cannot be read


def scan_packets(path: Path) -> Packets:
    """Read the packets of a video without decoding them, holding none of them."""
    opened = open_video(path, parallel=False)
    with opened.container:
        scan = _Scan(opened)
        for packet in PacketReader(opened):
            scan.take(packet)
        return _facts(opened, scan)


def read_video(path: Path) -> ReadVideo:
    """The same, and what decoding needs, so that a short file is opened and read once; the caller closes it."""
    opened = open_video(path, parallel=False)
    scan, kept, reader = _Scan(opened), _Kept(), PacketReader(opened)
    for packet in reader:
        scan.take(packet)
        kept.take(packet)
    return ReadVideo(_facts(opened, scan), opened, kept.packets, reader.is_cut_off)


class PacketReader:
    """Packets in the order of the file; those before a damaged end are what there is."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self.is_cut_off = False

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from (packet for packet in self._opened.container.demux(self._opened.stream) if packet.size)
        except pyav().error.FFmpegError:
            self.is_cut_off = True


def _facts(opened: Opened, scan: _Scan) -> Packets:
    stream = opened.stream
    in_order = scan.in_order and not stream.codec_context.has_b_frames
    return Packets(
        packet_count=scan.count,
        rate=float(stream.average_rate or stream.guessed_rate or 0),
        has_presentation_times=not scan.untimed and (in_order or not has_no_presentation_times(opened)),
        time_base=stream.time_base,
        announced=stream.frames,
        longest_group=scan.longest_group(),
        missing=scan.end.missing,
        sure_until=scan.end.sure_until,
        streams=_stream_words(opened),
        size=(stream.width, stream.height),
    )


def _stream_words(opened: Opened) -> str:
    streams = [stream for stream in opened.container.streams.video if getattr(stream, "width", 0)]
    if len(streams) < 2:
        return ""
    others = ", ".join(f"{one.index} ({one.width}x{one.height})" for one in streams if one.index != opened.stream.index)
    own = f"{opened.stream.index} ({opened.stream.width}x{opened.stream.height})"
    return f"has {len(streams)} video streams; stream {own} is read and not {others}"


class _Kept:
    """Packets, as long as they are few."""

    def __init__(self) -> None:
        self.packets: list[Any] | None = []
        self._bytes = 0

    def take(self, packet: Any) -> None:
        if self.packets is None:
            return
        self.packets.append(packet)
        self._bytes += packet.size
        if len(self.packets) > MOST_KEPT_PACKETS or self._bytes > MOST_KEPT_BYTES:
            self.packets = None


class _Scan:
    """What is noted of packets while they go by."""

    def __init__(self, opened: Opened) -> None:
        stream = opened.stream
        self.end = PacketEnd(opened)
        self.count = 0
        self.untimed = False
        self.in_order = True
        self._last: int | None = None
        self._starts = Starts(stream)
        self._limits = GroupLimits() if may_be_cut(codec_of(stream)) else None
        self._longest = 0

    def take(self, packet: Any) -> None:
        self.end.take(packet)
        if packet.pts is None:
            self.untimed = True
        elif self._limits is not None:
            self._longest = max(self._longest, self._limits.take(packet.pts, is_start=self._starts(packet)))
        if packet.is_discard:
            return
        self.count += 1
        if packet.pts is not None:
            self.in_order &= self._last is None or self._last < packet.pts
            self._last = packet.pts

    def longest_group(self) -> int:
        return 0 if self._limits is None or self.untimed else max([self._longest, *self._limits.finish()])
