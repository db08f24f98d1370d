"""One video file: its frames in order, and any frame by number through an exact table."""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.decoding import DAMAGED, DecodingPass, Lost
from penstock.codecs.kernel.reducing import Siting
from penstock.codecs.siting import siting_of
from penstock.codecs.video import Frame, UnreadableVideo, display_size, frame_checksum, frame_to_rgb
from penstock.codecs.video_packets import LONGEST_GROUP, Packets, ReadVideo, read_video, scan_packets
from penstock.errors import DataError, Problem
from penstock.formats.paths import origin_of
from penstock.formats.videos.framing import Framing, Placement, on_canvas
from penstock.formats.videos.pictures import Picture, Pixels, unreadable, until
from penstock.formats.videos.video_cursors import Cursors
from penstock.samples import Origin
from penstock.wording import counted

RESIZE = "Re-encode the video at one size, or divide it where its size changes"


@dataclass(frozen=True)
class FrameTable:
    """Every frame, from one full pass: when it is shown, and what identifies it or why it does not decode."""

    times: NDArray[np.float64]
    stamps: NDArray[np.int64]  # presentation times in the file's own units
    checksums: NDArray[np.uint64]  # of the decoded pixels: a frame found by seeking must be this one
    keyframes: NDArray[np.int64]  # numbers of the frames where decoding can begin
    lost: frozenset[int]  # numbers of the frames that do not decode
    damaged_packets: int
    is_whole: bool  # else frames at the end are lost
    sizes: tuple[tuple[int, int, int], ...] = ()  # number of the first frame with a size, and its width and height

    @functools.cached_property
    def seekable(self) -> bool:
        """Whether a presentation time names one frame."""
        return bool(np.all(np.diff(self.stamps) > 0))


class VideoFile:
    """Anything that PyAV opens."""

    def __init__(self, path: Path, framing: Framing, cursors: Cursors) -> None:
        self._path = path
        self._framing = framing
        self._cursors = cursors
        self._table: FrameTable | None = None
        self._scan: Packets | None = None
        self._damaged_packets = 0  # at the end, once a full pass has found them
        self._siting: list[Siting | None] = []  # of all frames, once the first has shown it
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    @property
    def file(self) -> str:
        return self._path.as_posix()

    @property
    def path(self) -> Path:
        return self._path

    @property
    def time_base(self) -> Fraction:
        """Seconds of one unit of the file's own times."""
        return self._packets().time_base

    def can_be_cut(self) -> bool:
        """Whether it falls into groups of pictures, none too long to be held, that decode each on its own."""
        scan = self._packets()
        return scan.has_presentation_times and 0 < scan.longest_group <= LONGEST_GROUP

    def origin(self, number: int | None = None) -> Origin:
        return origin_of(self._path)

    def expected(self) -> int:
        """The number of packets, and of those that a file is cut off before: right for nearly every file."""
        scan = self._packets()
        return scan.packet_count + scan.missing

    def whole_count(self, frames: int) -> int:
        is_whole = not self._damaged_packets and not self._packets().missing
        return frames if is_whole else max(frames, self.expected())

    def expected_times(self) -> NDArray[np.float64]:
        scan = self._packets()
        return np.arange(scan.packet_count) / (scan.rate or np.nan)

    def _packets(self) -> Packets:
        with self._lock:
            if self._scan is None:
                try:
                    self._scan = scan_packets(self._path)
                except UnreadableVideo as error:
                    raise unreadable(self.file, error) from error
            return self._scan

    def read_whole(self) -> ReadVideo:
        """Read it to its end, and leave open what its frames are decoded with; the caller closes that."""
        try:
            found = read_video(self._path)
        except UnreadableVideo as error:
            raise unreadable(self.file, error) from error
        with self._lock:
            self._scan = found.facts
        return found

    def pictures(self, start: int = 0) -> Iterator[Picture]:
        """Decode once, in order; each picture waits for the next one, to know until when it is shown."""
        return (picture for picture, _ in self.timed_pass(DecodingPass(self._path), start))

    def timed_pass(self, frames: DecodingPass, start: int = 0) -> Iterator[tuple[Picture, Frame | Lost]]:
        """The frames of a pass with their times, from number `start` on; those before damage come before its error."""
        held: tuple[Frame | Lost, float] | None = None
        number, interval_seconds = -1, 0.0
        try:
            for number, (frame, time_seconds) in enumerate(self._timed(frames)):
                if held is not None:
                    interval_seconds = time_seconds - held[1]
                    if number > start:
                        yield Picture(*held, time_seconds), held[0]
                held = (frame, time_seconds)
        except DataError:
            # Others follow that nobody sees: it stays as long as the one before it, or later events would be put on it.
            # Where packets do not say when they are shown, it may be one from behind the damage.
            if held is not None and number >= start and self._packets().has_presentation_times:
                yield Picture(*held, held[1] + interval_seconds), held[0]
            raise
        if held is None:
            raise unreadable(self.file, "no frame of it decodes")
        self._damaged_packets = frames.damaged_packets
        if number >= start:
            is_whole = self.whole_count(number + 1) == number + 1
            yield Picture(*held, float("inf") if is_whole else held[1] + interval_seconds), held[0]

    def _timed(self, frames: DecodingPass) -> Iterator[tuple[Frame | Lost, float]]:
        scan = self._packets()
        units, per_second = scan.time_base.numerator, scan.time_base.denominator
        first: int | None = None
        try:
            for number, frame in enumerate(frames):
                if not scan.has_presentation_times or frame.pts is None:
                    yield frame, number / scan.rate if scan.rate else float("nan")
                    continue
                first = frame.pts if first is None else first
                yield frame, (frame.pts - first) * units / per_second
        except UnreadableVideo as error:
            raise unreadable(self.file, error) from error

    def table(self) -> FrameTable:
        """The exact table, made on first use by one full pass."""
        with self._lock:
            if self._table is None:
                self._table = self._build_table()
            return self._table

    def _build_table(self) -> FrameTable:
        frames = DecodingPass(self._path)
        times, stamps, checksums, keyframes, lost = [], [], [], [], []
        sizes: list[tuple[int, int, int]] = []
        for number, (picture, frame) in enumerate(self.timed_pass(frames)):
            times.append(picture.time_seconds)
            stamps.append(-1 if frame.pts is None else frame.pts)
            if isinstance(frame, Lost):
                lost.append(number)
                checksums.append(0)
                continue
            checksums.append(frame_checksum(frame))
            if not sizes or sizes[-1][1:] != display_size(frame):
                sizes.append((number, *display_size(frame)))
            if frame.key_frame:
                keyframes.append(number)
        return FrameTable(
            np.array(times),
            np.array(stamps, np.int64),
            np.array(checksums, np.uint64),
            np.array(keyframes, np.int64),
            frozenset(lost),
            frames.damaged_packets,
            self.whole_count(len(times)) == len(times),
            tuple(sizes),
        )

    def times(self) -> NDArray[np.float64]:
        return self.table().times

    def picture(self, number: int) -> Picture:
        table = self.table()
        if number in table.lost:
            raise DataError([self._lost_frames(number, number)])
        try:
            frame = self._cursors.frame(self._path, table, number)
        except UnreadableVideo as error:
            raise unreadable(self.file, error, "The file changed, or its disk fails; check it") from error
        until_seconds = until(table.times, number, is_whole=table.is_whole)
        return Picture(frame, float(table.times[number]), until_seconds)

    def rgb(self, picture: Picture) -> Pixels:
        frame = picture.pixels
        if isinstance(frame, Lost):
            raise DataError([self._lost_frames(frame.number, frame.number)])
        place = self._place(frame)
        return on_canvas(frame_to_rgb(frame, place.window, place.scaled, siting=self._siting_of(frame)), place)

    def rgb_into(self, frame: Frame, out: Pixels) -> None:
        """The same, written into an array; a frame that does not have its size is an error."""
        place = self._place(frame)
        if out.shape != (place.canvas[1], place.canvas[0], 3):
            raise unreadable(self.file, f"its frame at {_moment(frame)} has another size: {_size_words(frame)}", RESIZE)
        if place.scaled == place.canvas:
            frame_to_rgb(frame, place.window, place.scaled, out=out, siting=self._siting_of(frame))
        else:
            out[:] = self.rgb(Picture(frame, 0.0, 0.0))

    def _siting_of(self, frame: Frame) -> Siting | None:
        if not self._siting:
            self._siting.append(siting_of(frame))
        return self._siting[0]

    def canvas(self, frame: Frame) -> tuple[int, int]:
        """Width and height of what is made of a frame."""
        return self._place(frame).canvas

    def most_frame_bytes(self, width: int, height: int) -> int:
        """The memory of one finished frame."""
        return 3 * math.prod(self._framing.size or (width, height))

    def _place(self, frame: Frame) -> Placement:
        crop, size = self._framing.crop, self._packets().size if self._framing.crop else None
        if size is not None and size != (frame.width, frame.height):
            what = (
                f"its frame at {_moment(frame)} has {_size_words(frame)}, and the crop {','.join(map(str, crop or ()))}"
            )
            raise unreadable(self.file, f"{what} is meant for frames of {size[0]}×{size[1]} px", RESIZE)
        try:
            return self._framing.placement(*display_size(frame))
        except ValueError as error:
            raise unreadable(self.file, error, "Give a crop inside the frame") from error

    def problems(self) -> list[Problem]:
        """Whether it opens, its first frame decodes, and the crop lies inside."""
        try:
            self._packets()
            first = next((one for one in self.pictures() if not isinstance(one.pixels, Lost)), None)
            if first is not None:
                self._place(first.pixels)
        except DataError as error:
            return list(error.problems)
        streams = self._packets().streams
        remedy = "Write the one that you mean into a file of its own if that is another"
        return [Problem(self.file, None, streams, remedy, warning=True)] if streams else []

    def damage(self) -> list[Problem]:
        """What a full pass finds: damage in the middle, or an end that is missing."""
        try:
            table = self.table()
        except DataError as error:
            return list(error.problems)
        lost = [self._lost_frames(first, last, _next_key(table, last)) for first, last in _runs(table.lost)]
        return [*lost, *self._changed_sizes(table), *self.missing_end(len(table.times), table.damaged_packets)]

    def _changed_sizes(self, table: FrameTable) -> list[Problem]:
        """Where frames begin to have another size: a crop in pixels would then show another part of the scene."""
        found = []
        for (_, *before), (number, *size) in itertools.pairwise(table.sizes):
            what = f"from frame {number} on it has {size[0]}×{size[1]} px, and {before[0]}×{before[1]} before"
            if self._framing.crop is None:
                remedy = "Each frame is brought to the size by itself; make sure that all show the same scene"
                found.append(Problem(self.file, number, what, remedy, warning=True))
            elif (size[0], size[1]) != table.sizes[0][1:]:
                what += f"; the crop {','.join(map(str, self._framing.crop))} is meant for one size"
                found.append(Problem(self.file, number, what, RESIZE, unreadable=True))
        return found

    def _lost_frames(self, first: int, last: int, next_key: int | None = None) -> Problem:
        which = f"frame {first} does" if first == last else f"frames {first} to {last} do"
        what = f"{which} not decode: {DAMAGED}"
        if next_key is not None and next_key > last + 1:
            following = f"Frame {last + 1}" if next_key == last + 2 else f"Frames {last + 1} to {next_key - 1}"
            what += f". {following}, up to the next key frame, may show remains of the damage"
        remedy = "Copy the video again, or leave frames that do not decode out by on_bad_sample='skip'"
        return Problem(self.file, first, what, remedy, unreadable=True)

    def missing_end(self, count: int, damaged_packets: int) -> list[Problem]:
        """What to say when so many frames came, and so many packets behind them do not decode."""
        announced, missing = self._packets().announced, self._packets().missing
        if damaged_packets:
            packets, are = ("packet", "is") if damaged_packets == 1 else ("packets", "are")
            what = f"decodes {counted(count, 'frame')}; {damaged_packets:,} {packets} after that {are} damaged"
            what += (
                f", and of the {announced:,} that the container announces {missing:,} are missing" if missing else ""
            )
        elif announced > count:
            lost = f"{announced - count:,} missing at the end"
            what = f"decodes {counted(count, 'frame')}, and its header announces {announced:,}: {lost}"
        else:
            return []
        return [Problem(self.file, None, what, f"The first {counted(count, 'frame', 'is')} used", warning=True)]


def _moment(frame: Frame) -> str:
    return "an unknown time" if frame.time is None else f"{frame.time:.3f} s"


def _size_words(frame: Frame) -> str:
    return f"{frame.width}×{frame.height} px"


def _runs(lost: frozenset[int]) -> list[tuple[int, int]]:
    """The first and the last of frames that follow one another."""
    firsts = sorted(number for number in lost if number - 1 not in lost)
    lasts = sorted(number for number in lost if number + 1 not in lost)
    return list(zip(firsts, lasts, strict=True))


def _next_key(table: FrameTable, number: int) -> int:
    """The number of the next frame where decoding begins anew, or that of all frames."""
    following = table.keyframes[table.keyframes > number]
    return int(following[0]) if len(following) else len(table.times)
