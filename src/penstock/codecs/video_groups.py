"""Groups of pictures that decode on their own: how one long video is decoded by all cores.

packets in the order of the file ─► groups, each from a key frame to the next ─► decoders, one for each thread

Nothing is looked for by seeking: one thread reads the file in order and hands whole groups to the decoders, so the
frames are those of one pass from the start. A group begins only where nothing behind looks back:

| codec                   | a group may begin at                                                         |
|-------------------------|------------------------------------------------------------------------------|
| H.264, HEVC             | an IDR picture; other key frames may be looked past                          |
| MPEG-4, VP8/9, AV1, MJPEG | a key frame                                                                |
| all                     | only if all packets before it are shown before it, and all behind it after it |
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import Any

from penstock.codecs.video import Frame, Opened, pyav

# Key frames that are closer than this share a group: each group costs a decoder some 10 ms to begin with.
LEAST_PACKETS = 24
_KEY_FRAMES_ARE_STARTS = frozenset({"mpeg4", "vp8", "vp9", "av1", "mjpeg"})
# NAL unit types of IDR pictures, and how a type is read from the first byte of a unit: (shift, mask).
_IDR_TYPES = {"h264": (frozenset({5}), 0, 0x1F), "hevc": (frozenset({19, 20}), 1, 0x3F)}
# Slices, remarks, delimiters and filling of H.264: with no more than these, a packet says nothing that lasts.
_PASSING_TYPES = frozenset({1, 5, 6, 9, 12})
# Versions of x264 before this one had faults that FFmpeg goes along with once it knows the version.
_X264_VERSION, _FAULTLESS_X264 = re.compile(rb"x264 - core (\d+)"), 151


def codec_of(stream: Any) -> str:
    name: str = stream.codec_context.codec.canonical_name
    return name


def may_be_cut(codec: str) -> bool:
    """Whether it is known where decoding can begin in this codec."""
    return codec in _KEY_FRAMES_ARE_STARTS or codec in _IDR_TYPES


class Starts:
    """Tells of the packets of one stream where decoding can begin."""

    def __init__(self, stream: Any) -> None:
        self._codec = codec_of(stream)
        self._length_bytes = _length_bytes(self._codec, bytes(stream.codec_context.extradata or b""))

    def __call__(self, packet: Any) -> bool:
        if not packet.is_keyframe:
            return False
        if self._codec not in _IDR_TYPES:
            return self._codec in _KEY_FRAMES_ARE_STARTS
        kinds, _, _ = _IDR_TYPES[self._codec]
        return not kinds.isdisjoint(self._unit_types(bytes(packet)))

    def time_of_first_frame(self, packets: list[Any]) -> int | None:
        """When the first frame of a group is shown; None where only decoding can tell."""
        first = packets[0]
        is_sure = self._codec in _IDR_TYPES and not first.is_discard and self(first)
        return first.pts if is_sure and first.pts == min(packet.pts for packet in packets) else None

    def says_what_lasts(self, packet: Any) -> bool:
        """Whether the first packet of a video may say what a decoder has to know of all others."""
        data = bytes(packet)
        if self._codec != "h264" or not _PASSING_TYPES.issuperset(self._unit_types(data)):
            return True
        version = _X264_VERSION.search(data)
        return version is not None and int(version[1]) < _FAULTLESS_X264

    def _unit_types(self, data: bytes) -> Iterator[int]:
        """The types of all NAL units of a packet."""
        _, shift, mask = _IDR_TYPES[self._codec]
        return (first >> shift & mask for first in self._first_bytes(data))

    def _first_bytes(self, data: bytes) -> Iterator[int]:
        """The first byte of every NAL unit of a packet."""
        if not self._length_bytes:
            yield from (data[match.end()] for match in re.finditer(rb"\x00\x00\x01(?=.)", data, re.DOTALL))
            return
        place = 0
        while place + self._length_bytes < len(data):
            yield data[place + self._length_bytes]
            place += self._length_bytes + int.from_bytes(data[place : place + self._length_bytes], "big")


def _length_bytes(codec: str, header: bytes) -> int:
    """How many bytes say the length of a NAL unit; 0 where units are told apart by start codes."""
    place = {"h264": 4, "hevc": 21}.get(codec)
    if place is None or len(header) <= place or header[:3] in (b"\0\0\1", b"\0\0\0"):
        return 0
    return (header[place] & 3) + 1


class GroupLimits:
    """Where groups end, told while packets go by; it holds no packets, only a few numbers."""

    def __init__(self, least: int = LEAST_PACKETS) -> None:
        self._least = least
        self._held, self._held_latest = 0, 0  # a group that waits: does what follows it need it?
        self._count, self._first, self._earliest, self._latest = 0, 0, 0, 0  # since the last start

    def take(self, shown_at: int, *, is_start: bool) -> int:
        """Note one packet; gives the number of packets of the oldest group if that is now complete, else 0."""
        complete = self._settle() if is_start and self._count else 0
        if not self._count:
            self._first = self._earliest = self._latest = shown_at
        self._count += 1
        self._earliest, self._latest = min(self._earliest, shown_at), max(self._latest, shown_at)
        return complete

    def finish(self) -> list[int]:
        """The sizes of the groups that are left."""
        left = [self._settle(), self._held] if self._count else [self._held]
        self._held = 0
        return [size for size in left if size]

    def _settle(self) -> int:
        looks_back = self._earliest < self._first or (self._held > 0 and self._first <= self._held_latest)
        joins = self._held > 0 and (looks_back or self._held < self._least)
        complete = 0 if joins else self._held
        self._held_latest = max(self._held_latest, self._latest) if joins else self._latest
        self._held = self._held + self._count if joins else self._count
        self._count = 0
        return complete


def grouped(packets: Iterable[Any], starts: Starts) -> Iterator[list[Any]]:
    """Packets with presentation times as lists that decode on their own."""
    limits, waiting = GroupLimits(), deque[Any]()
    for packet in packets:
        size = limits.take(packet.pts, is_start=starts(packet))
        if size:
            yield [waiting.popleft() for _ in range(size)]
        waiting.append(packet)
    for size in limits.finish():
        yield [waiting.popleft() for _ in range(size)]


class GroupDecoder:
    """A decoder that is given whole groups, in any order, by one thread at a time.

    It is all that stays of an open file: that is closed, because FFmpeg holds a table of all frames with it (in MP4
    some 60 bytes for each), and the decoder needs none of it.
    """

    def __init__(self, opened: Opened) -> None:
        self._decoder = opened.stream.codec_context
        opened.container.close()
        self._damage: type[Exception] = pyav().error.FFmpegError
        self.failed: list[int] = []  # presentation times of the last group's packets that do not decode

    def pass_over(self, packet: Any) -> None:
        """Decode a packet only for what it says about those behind it."""
        for _ in self.frames([packet]):
            pass

    def frames(self, packets: Iterable[Any]) -> Generator[Frame]:
        """The frames of a group in the order in which they are shown.

        Frames filled with guesses count as failed, and so do those that are stored behind a failed one and shown before
        it: they are made with its help.
        """
        self.failed = []
        leaning: set[int] = set()
        try:
            for packet in chain(packets, [None]):
                if packet is not None and any(time > packet.pts for time in self.failed):
                    leaning.add(packet.pts)
                for frame in self._decoded(packet):
                    if frame.is_corrupt or frame.pts in leaning:
                        self.failed.append(frame.pts)
                    else:
                        yield frame
        finally:  # also where nobody takes the rest
            self._decoder.flush_buffers()

    def _decoded(self, packet: Any) -> list[Frame]:
        try:
            decoded: list[Frame] = self._decoder.decode(packet)
        except self._damage:
            self.failed += [] if packet is None else [packet.pts]
            return []
        return decoded
