"""Every frame of a video in order, exactly once; a careful pass where packets say when frames are shown.

A pass decodes with FFmpeg's threads. They lose frames without a word when a packet near the end is damaged,
so at the first sign of damage the pass starts again with one thread, skips what was already given, and goes on.

If packets say when they are shown (`timed_decoding.py`), a frame that does not decode is a `Lost` one in its place, so
that every frame after it keeps its number; those at the end are left out. If they do not (AVI), frames in front of
a damaged tail count, those few that a decoder still gives from behind it do not, and damage with more good frames after
it is an error, because every label after it would belong to another frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from penstock.codecs.video import Frame, UnreadableVideo, open_video, pyav
from penstock.codecs.video_groups import GroupDecoder, Starts, codec_of, grouped
from penstock.codecs.video_packets import (
    LONGEST_GROUP,
    PacketEnd,
    PacketReader,
    has_no_presentation_times,
    may_show,
    must_show,
    scan_packets,
)

# A careful pass over a video whose packets say when they are shown: what does not decode keeps its place.
#
# packets ─► groups that decode on their own ─► frames in the order in which they are shown, between them a `Lost` one
#                                                for each packet that should have been shown there
#
# Groups are those that prediction decodes, so both lose the same frames. Frames after damage are as the decoder gives
# them: up to the next key frame they may show remains of it. Those that it says it has filled with guesses are lost.


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


class DecodingPass:
    """Iterate once; afterwards `frame_count` and `damaged_packets` say how it went."""

    def __init__(self, path: Path, *, parallel: bool = True) -> None:
        self._path = path
        self._parallel = parallel
        self.frame_count = 0
        self.damaged_packets = 0

    def __iter__(self) -> Iterator[Frame | Lost]:
        if self._parallel:
            attempt = _Attempt(self._path, parallel=True)
            yield from self._counted(attempt.frames())
            if not attempt.suspicious:
                return
        timed = TimedAttempt(self._path)
        careful = timed if timed.is_timed else _Attempt(self._path, parallel=False)
        yield from self._counted(islice(careful.frames(), self.frame_count, None))
        self.damaged_packets = careful.damaged

    def _counted(self, frames: Iterator[Frame | Lost]) -> Iterator[Frame | Lost]:
        for frame in frames:
            yield frame._replace(number=self.frame_count) if isinstance(frame, Lost) else frame
            self.frame_count += 1


class _Attempt:
    """One run through the decoder, with many threads (stops at damage) or one (works out where it is)."""

    def __init__(self, path: Path, *, parallel: bool) -> None:
        self._path = path
        self._parallel = parallel
        self._damage: type[Exception] = pyav().error.FFmpegError
        self._given = 0
        self._waiting: set[int] = set()  # presentation times of packets whose frames have not come yet
        self._due: set[int] = set()  # those of them whose frames must come, where decoders do not tell of damage
        self._waiting_untimed = 0  # packets of that kind that do not say when they are shown
        self._last: int | None = None
        self._failed: list[int | None] = []
        self._behind: set[int] = set()  # presentation times of packets that are stored behind damage
        self._leaning: list[int] = []  # those whose frames are shown before it, and may be made of what is not there
        self._late = 0  # good frames from behind the damage
        self._concealed = 0
        self._cut_off = False
        self._sure_until: int | None = None  # presentation time behind which the end of the file may lack frames
        self._is_timed = True
        self._begin: int | None = None  # when the key frame is shown that the file begins with
        self._stopped = False

    @property
    def damaged(self) -> int:
        return len(self._failed) + self._concealed + self._cut_off

    @property
    def suspicious(self) -> bool:
        """Whether damage was met, or frames are missing at the end."""
        last = self._last
        missing = any(last is None or time > last for time in self._waiting)
        return self._stopped or missing or self._waiting_untimed > 0

    def frames(self) -> Iterator[Frame]:
        opened = open_video(self._path, parallel=self._parallel)
        self._is_timed = not has_no_presentation_times(opened)
        with opened.container:
            for frame in self._decoded(opened):
                if self._stopped:
                    return
                if frame.is_corrupt:
                    self._conceal()
                    continue
                self._miss_before(frame)
                if self._is_late(frame):
                    if not self._is_stored_before(frame):
                        self._refuse(int(opened.stream.codec_context.has_b_frames))
                    continue
                if frame.pts in self._behind:
                    self._leaning.append(frame.pts)
                    continue
                if self._is_unsure(frame):
                    continue
                self._accept(frame)
                yield frame

    def _decoded(self, opened: Any) -> Iterator[Frame]:
        for packet in self._packets(opened):
            yield from self._decode(opened.stream, packet)
            if self._stopped:
                return

    def _packets(self, opened: Any) -> Iterator[Any]:
        """Packets, and at last None, which makes the decoder give what it still holds."""
        end = PacketEnd(opened)
        try:
            for packet in opened.container.demux(opened.stream):
                if packet.size:
                    end.take(packet)
                    yield packet
        except self._damage:
            self._cut_off = True
            self._stopped = self._parallel
        self._sure_until = end.sure_until
        yield None

    def _decode(self, stream: Any, packet: Any) -> list[Frame]:
        shown_at = None if packet is None else packet.pts
        if packet is not None and not packet.is_discard:
            if not self._waiting and self._last is None and packet.is_keyframe:
                self._begin = packet.pts
            self._expect(shown_at)
            codec = codec_of(stream)
            if self._is_timed and must_show(codec) and may_show(packet, codec):
                self._due.add(packet.pts)
        try:
            decoded: list[Frame] = stream.codec_context.decode(packet)
        except self._damage:
            self._fail(shown_at)
            return []
        return decoded

    def _expect(self, shown_at: int | None) -> None:
        if shown_at is None:
            self._waiting_untimed += 1
        else:
            self._waiting.add(shown_at)
            if self._failed:
                self._behind.add(shown_at)

    def _fail(self, shown_at: int | None) -> None:
        self._failed.append(shown_at)
        self._stopped = self._parallel

    def _conceal(self) -> None:
        """FFmpeg filled a damaged frame with guesses; such pixels are never given."""
        self._concealed += 1
        self._stopped = self._parallel

    def _miss_before(self, frame: Frame) -> None:
        """Note the damage of frames that should have come before this one; those before the first may lack theirs."""
        begin = self._begin if self._last is None else self._last + 1
        if frame.pts is None or begin is None:
            return
        lost = [time for time in self._due if begin <= time < frame.pts]
        self._due.difference_update(lost)
        for time in sorted(lost):
            self._fail(time)

    def _is_late(self, frame: Frame) -> bool:
        """Whether a frame is shown after damage, or may be, where times are not known."""
        if self._concealed:
            return True
        damaged = (*self._failed, *self._leaning)
        return any(time is None or frame.pts is None or time < frame.pts for time in damaged)

    def _is_stored_before(self, frame: Frame) -> bool:
        """Whether its packet is known to come before the damage, so that it does not tell of anything behind."""
        return not self._concealed and frame.pts in self._waiting and frame.pts not in self._behind

    def _is_unsure(self, frame: Frame) -> bool:
        """Whether a frame between this one and those before it may be missing, as the file is cut off there."""
        if self._sure_until is None or frame.pts is None or frame.pts <= self._sure_until:
            return False
        self._waiting.discard(frame.pts)
        return True

    def _refuse(self, reordered_frames: int) -> None:
        self._late += 1
        if self._late > reordered_frames:
            raise UnreadableVideo(f"frame {self._given} is damaged, and good frames follow it")

    def _accept(self, frame: Frame) -> None:
        self._given += 1
        if frame.pts is None:
            self._waiting_untimed -= 1
        else:
            self._waiting.discard(frame.pts)
            self._due.discard(frame.pts)
            self._last = frame.pts if self._last is None else max(self._last, frame.pts)
