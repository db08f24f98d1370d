"""Random access to the frames of video files: open decoders that are kept, each by one thread.

A frame is found by seeking to the last keyframe before it and decoding on. It must then have the presentation
time and the pixels that the full pass saw; where it has not (seeking is not exact in every file), the video is
decoded from its start instead, which is slow and right.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.codecs.decoding import DecodingPass, Lost
from penstock.codecs.video import Frame, UnreadableVideo, frame_checksum, open_video, pyav

if TYPE_CHECKING:
    from penstock.formats.videos.video_files import FrameTable

# A decoder of a 1080p video holds about 50 MB of frames.
KEPT_OPEN = 2


class Cursors:
    """The open decoders of one video set; every thread has its own."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __reduce__(self) -> tuple[type[Cursors], tuple[()]]:
        return type(self), ()

    def frame(self, path: Path, table: FrameTable, number: int) -> Frame:
        """The frame with this number, exactly as the full pass decoded it."""
        return self._cursor(path, table).frame(number)

    def _cursor(self, path: Path, table: FrameTable) -> Cursor:
        cursors: OrderedDict[Path, Cursor] | None = getattr(self._local, "cursors", None)
        if cursors is None:
            cursors = self._local.cursors = OrderedDict()
        cursor = cursors.pop(path, None) or Cursor(path, table)
        cursors[path] = cursor
        while len(cursors) > KEPT_OPEN:
            cursors.popitem(last=False)[1].close()
        return cursor


class Cursor:
    """A place in one video, for one thread."""

    def __init__(self, path: Path, table: FrameTable) -> None:
        self._path = path
        self._table = table
        self._seeks = table.seekable and len(table.keyframes) > 0
        self._opened: Any = None
        self._frames: Iterator[Frame | Lost] = iter(())
        self._next: int | None = None  # number of the frame that comes next; None before the first use

    def close(self) -> None:
        if self._opened is not None:
            self._opened.container.close()
        self._opened, self._frames, self._next = None, iter(()), None

    def frame(self, number: int) -> Frame:
        if self._seeks:
            found = self._by_seeking(number)
            if found is not None and self._is_right(found, number):
                return found
            self.close()  # this file cannot be trusted to seek
            self._seeks = False
        return self._from_start(number)

    def _by_seeking(self, number: int) -> Frame | None:
        key = int(self._table.keyframes[np.searchsorted(self._table.keyframes, number, side="right") - 1])
        if key > number:  # no keyframe before it: the first frames of a video cut out of another
            return None
        if (self._next is None or not key <= self._next <= number) and not self._seek(key):
            return None
        wanted = int(self._table.stamps[number])
        self._next = number + 1
        return next((frame for frame in self._frames if frame.pts is None or frame.pts >= wanted), None)

    def _is_right(self, frame: Frame, number: int) -> bool:
        return (
            (not self._table.seekable or frame.pts == self._table.stamps[number])
            and not frame.is_corrupt
            and frame_checksum(frame) == self._table.checksums[number]
        )

    def _seek(self, key: int) -> bool:
        av = pyav()
        if self._opened is None:
            self._opened = open_video(self._path, parallel=False)
            # x264 says only in the first packet which of its versions wrote the video, and FFmpeg decodes
            # 4:4:4 of old versions wrongly if it has not seen that.
            next(_decoded(*self._opened), None)
        container, stream = self._opened
        try:
            container.seek(int(self._table.stamps[key]), stream=stream)
        except av.error.FFmpegError:
            return False
        self._frames = _decoded(container, stream)
        return True

    def _from_start(self, number: int) -> Frame:
        if self._next is None or number < self._next:
            self._frames, self._next = iter(DecodingPass(self._path, parallel=False)), 0
        for frame in self._frames:
            self._next += 1
            if self._next > number:
                if not isinstance(frame, Lost) and self._is_right(frame, number):
                    return frame
                break
        self._frames, self._next = iter(()), None
        raise UnreadableVideo(f"frame {number} is not the one that was there when the video was first read")


def _decoded(container: Any, stream: Any) -> Iterator[Frame]:
    av = pyav()
    for packet in container.demux(stream):
        try:
            yield from packet.decode()
        except av.error.FFmpegError:
            continue  # damage lies behind every frame of the table, or at the cut where seeking began
