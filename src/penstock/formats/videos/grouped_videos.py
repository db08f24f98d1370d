"""One video file cut into groups of pictures, which several threads decode at once."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from penstock.codecs.video import Frame, UnreadableVideo, open_video
from penstock.codecs.video_groups import GroupDecoder, Starts, codec_of, grouped
from penstock.codecs.video_packets import PacketReader, ReadVideo, may_show, must_show
from penstock.errors import Problem
from penstock.formats.videos.frame_memory import FrameMemory
from penstock.formats.videos.frame_supplies import Begin, MadeFrames, Task
from penstock.formats.videos.pictures import Pixels, unreadable
from penstock.formats.videos.video_files import VideoFile
from penstock.wording import counted

# Frames in one array; blocks that are handed over are parts of it.
PIECE_FRAMES = 64


class GroupedVideo:
    """A video whose packets say when they are shown, and where decoding can begin every now and then."""

    def __init__(self, footage: VideoFile, read: ReadVideo) -> None:
        self._footage, self._kept, self._is_cut_off = footage, read.packets, read.is_cut_off
        self._sure_until = read.facts.sure_until
        stream = read.opened.stream
        self._starts, self._codec = Starts(stream), codec_of(stream)
        self._frame_bytes = footage.most_frame_bytes(stream.width, stream.height)
        self._idle: queue.LifoQueue[GroupDecoder] = queue.LifoQueue()
        self._idle.put(GroupDecoder(read.opened))
        self._lasting_packet: Any = None  # what every decoder must have seen
        self._opening = threading.Lock()
        self._origin = 0

    @property
    def file(self) -> str:
        return self._footage.file

    def expected(self) -> int:
        return self._footage.expected()

    def tasks(self, begin: Begin, memory: FrameMemory) -> Iterator[Task]:
        groups = grouped(self._packets(), self._starts)
        first = next(groups, None)
        if first is None:
            raise unreadable(self.file, "no frame of it decodes")
        self._prepare(first[0])
        self._origin = self._time_of_first_frame(first)
        yield from self._from(begin, chain([first], groups), memory)

    def _packets(self) -> Iterator[Any]:
        """The packets that are kept, each until it is taken; where there are too many, the file is read again."""
        if self._kept is not None:
            kept, self._kept = deque(self._kept), None
            while kept:
                yield kept.popleft()
            return
        try:
            opened = open_video(self._footage.path, parallel=False)
        except UnreadableVideo as error:
            raise unreadable(self.file, error) from error
        with opened.container:
            yield from PacketReader(opened)

    def _prepare(self, first_packet: Any) -> None:
        if self._starts.says_what_lasts(first_packet):
            self._lasting_packet = first_packet
            decoder = self._idle.get_nowait()
            decoder.pass_over(first_packet)
            self._idle.put(decoder)

    def _time_of_first_frame(self, packets: list[Any]) -> int:
        """Which presentation time is zero: that of the first frame, or where that is damaged of the first packet."""
        known = self._starts.time_of_first_frame(packets)
        if known is not None:
            return known
        decoder = self._decoder()
        frames = decoder.frames(packets)
        frame = next(frames, None)
        frames.close()
        failed = bool(decoder.failed)
        self._idle.put(decoder)
        if frame is None or failed:
            return min(_shown(packets))
        # A key frame that comes first and is not shown is damaged, where decoders do not tell of it.
        is_silent = must_show(self._codec) and packets[0].is_keyframe and not packets[0].is_discard
        return min(int(frame.pts), packets[0].pts) if is_silent else int(frame.pts)

    def _from(self, begin: Begin, groups: Iterator[list[Any]], memory: FrameMemory) -> Iterator[Task]:
        """Groups that are shown before the first frame that is wanted are passed over without decoding them."""
        wanted = begin.times[begin.frame - 1] if begin.frame else -np.inf
        number: int | None = None if begin.frame else 0
        for packets in groups:
            shown = _shown(packets)
            if not shown or self._seconds(max(shown)) < wanted:
                continue
            if number is None:
                number = int(np.searchsorted(begin.times, self._seconds(min(shown))))
            first = None if number < 0 else number
            yield Task(partial(self._made, packets, first, memory), len(packets) * self._frame_bytes)
            number = -1

    def _made(self, packets: list[Any], first: int | None, memory: FrameMemory) -> list[MadeFrames]:
        decoder, rows = self._decoder(), GroupRows(self._footage, memory)
        for frame in decoder.frames(packets):
            if self._sure_until is None or frame.pts is None or frame.pts <= self._sure_until:
                rows.add(frame)
        is_damaged = bool(decoder.failed) or rows.has_untimed or rows.lacks(packets, self._codec)
        failed = list(decoder.failed)
        self._idle.put(decoder)
        if not is_damaged:
            return rows.made(self._seconds, first)
        shown = [packet.pts for packet in packets if not packet.is_discard and may_show(packet, self._codec)]
        return rows.with_gaps([*shown, *failed], self._seconds, first)

    def _decoder(self) -> GroupDecoder:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            with self._opening:  # what FFmpeg holds of a long file while it is open is held once
                decoder = GroupDecoder(open_video(self._footage.path, parallel=False))
        if self._lasting_packet is not None:
            decoder.pass_over(self._lasting_packet)
        return decoder

    def _seconds(self, stamp: int) -> float:
        base = self._footage.time_base
        return (stamp - self._origin) * base.numerator / base.denominator

    def remarks(self, frame_count: int) -> list[Problem]:
        if self._is_cut_off:
            lost = self.expected() - frame_count
            what = f"the file is cut off after {counted(frame_count, 'frame')}" + (
                f"; {lost:,} are missing" if lost > 0 else ""
            )
            return [Problem(self.file, None, what, "Copy it again if there should be more", warning=True)]
        return self._footage.missing_end(frame_count, 0)

    def close(self) -> None:
        while not self._idle.empty():
            self._idle.get_nowait()


class GroupRows:
    """The frames of one group as they are decoded, in arrays of one size."""

    def __init__(self, footage: VideoFile, memory: FrameMemory) -> None:
        self._footage, self._memory = footage, memory
        self._pieces: list[Pixels] = []
        self._stamps: list[int] = []
        self.has_untimed = False

    def add(self, frame: Frame) -> None:
        if frame.pts is None:
            self.has_untimed = True
            return
        row = len(self._stamps) % PIECE_FRAMES
        if row == 0:
            width, height = self._footage.canvas(frame)
            self._pieces.append(self._memory.take((PIECE_FRAMES, height, width, 3)))
        self._footage.rgb_into(frame, self._pieces[-1][row])
        self._stamps.append(int(frame.pts))

    def lacks(self, packets: list[Any], codec: str) -> bool:
        """Whether a frame behind the first did not come, although the decoder told of no damage."""
        if not must_show(codec):
            return False
        due = {packet.pts for packet in packets if not packet.is_discard and may_show(packet, codec)}
        begin = packets[0].pts if packets[0].is_keyframe else min(self._stamps, default=packets[0].pts)
        return any(time >= begin for time in due.difference(self._stamps))

    def made(self, seconds: Callable[[int], float], first: int | None) -> list[MadeFrames]:
        """All frames, none of which is missing."""
        found = []
        for number, piece in enumerate(self._pieces):
            stamps = self._stamps[number * PIECE_FRAMES : (number + 1) * PIECE_FRAMES]
            times = np.array([seconds(stamp) for stamp in stamps])
            found.append(MadeFrames(times, piece[: len(stamps)], {}, first if number == 0 else None))
        return found

    def with_gaps(self, expected: list[int], seconds: Callable[[int], float], first: int | None) -> list[MadeFrames]:
        """The same with a row for each packet whose frame did not come."""
        stamps = sorted({*expected, *self._stamps})
        pixels = self._pieces[0].shape[1:] if self._pieces else (1, 1, 3)
        block, reasons = np.zeros((len(stamps), *pixels), np.uint8), {}
        places = {stamp: number for number, stamp in enumerate(self._stamps)}
        for row, stamp in enumerate(stamps):
            if stamp in places:
                block[row] = self._pieces[places[stamp] // PIECE_FRAMES][places[stamp] % PIECE_FRAMES]
            else:
                reasons[row] = ""
        return [MadeFrames(np.array([seconds(stamp) for stamp in stamps]), block, reasons, first)]


def _shown(packets: list[Any]) -> list[int]:
    """When the frames of these packets are shown, in the file's own units."""
    return [packet.pts for packet in packets if not packet.is_discard]
