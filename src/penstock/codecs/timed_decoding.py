"""A careful pass over a video whose packets say when they are shown: what does not decode keeps its place.

packets ─► groups that decode on their own ─► frames in the order in which they are shown, and between them a `Lost` one
                                               for each packet that should have been shown there

Groups are those that prediction decodes, so both lose the same frames. Frames after damage are as the decoder gives
them: up to the next key frame they may show remains of it. Those that it says it has filled with guesses are lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from penstock.codecs.video import Frame, UnreadableVideo, open_video
from penstock.codecs.video_ends import may_show, must_show
from penstock.codecs.video_groups import GroupDecoder, Starts, codec_of, grouped
from penstock.codecs.video_packets import LONGEST_GROUP, PacketReader, scan_packets

DAMAGED = "its packet is damaged, or one that it is made from"


class Lost(NamedTuple):
    """A frame that does not decode: when it would be shown, and its number."""

    pts: int
    number: int = 0


class TimedAttempt:
    """One run through the decoder with one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._facts = scan_packets(path)
        self._codec = ""
        self._last: int | None = None
        self._waiting: set[int] = set()  # lost frames behind the last good one
        self._is_cut_off = False

    @property
    def is_timed(self) -> bool:
        return self._facts.has_presentation_times

    @property
    def damaged(self) -> int:
        """Damage at the end, behind the last frame that came."""
        return len(self._waiting) + self._is_cut_off

    def frames(self) -> Iterator[Frame | Lost]:
        decoder = GroupDecoder(open_video(self._path, parallel=False))
        opened = open_video(self._path, parallel=False)
        self._codec = codec_of(opened.stream)
        with opened.container:
            reader = PacketReader(opened)
            is_cut = 0 < self._facts.longest_group <= LONGEST_GROUP
            groups: Iterable[Iterable[Any]] = grouped(reader, Starts(opened.stream)) if is_cut else [reader]
            for packets in groups:
                yield from self._of_group(decoder, packets)
            self._is_cut_off = reader.is_cut_off

    def _of_group(self, decoder: GroupDecoder, packets: Iterable[Any]) -> Iterator[Frame | Lost]:
        group = _Group(self._codec)
        is_whole = isinstance(packets, list)
        noted = list(group.noted(packets)) if is_whole else group.noted(packets)
        for frame in decoder.frames(noted):
            is_late = frame.pts is not None and self._last is not None and frame.pts <= self._last
            if frame.pts is None or (is_late and not is_whole):
                raise UnreadableVideo("after damage it is not certain which frame is which")
            if is_late:  # a second time, or after one that is shown later: its place is taken
                continue
            group.came(frame.pts)
            if self._facts.sure_until is not None and frame.pts > self._facts.sure_until:
                continue
            self._wait_for(group.lost_before(frame.pts, decoder.failed))
            yield from map(Lost, sorted(self._waiting))
            self._waiting.clear()
            self._last = frame.pts
            yield frame
        self._wait_for(group.lost_before(None, decoder.failed))

    def _wait_for(self, lost: set[int]) -> None:
        self._waiting |= {time for time in lost if self._last is None or time > self._last}


class _Group:
    """Packets of a group whose frames have not come yet."""

    def __init__(self, codec: str) -> None:
        self._codec = codec
        self._due: set[int] = set()
        self._seen: set[int] = set()
        self._begin: int | None = None  # when the key frame is shown that it begins with
        self._first: int | None = None  # when the first frame that came is shown

    def noted(self, packets: Iterable[Any]) -> Iterator[Any]:
        """The packets on their way to the decoder."""
        for packet in packets:
            if packet.pts in self._seen:
                raise UnreadableVideo("two frames around damage are shown at the same time")
            if not self._seen and packet.is_keyframe:
                self._begin = packet.pts
            self._seen.add(packet.pts)
            if not packet.is_discard and may_show(packet, self._codec):
                self._due.add(packet.pts)
            yield packet

    def came(self, time: int) -> None:
        self._due.discard(time)
        self._first = time if self._first is None else self._first

    def lost_before(self, until: int | None, failed: list[int]) -> set[int]:
        """Packets that gave no frame and should have; those before the first frame may need what is not in the file."""
        lost = self._due if failed else self._behind_beginning() if must_show(self._codec) else set()
        found = {time for time in {*lost, *failed} if until is None or time < until}
        self._due -= found
        return found

    def _behind_beginning(self) -> set[int]:
        begin = self._begin if self._begin is not None else self._first
        return {time for time in self._due if begin is not None and time >= begin}
