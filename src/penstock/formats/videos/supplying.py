"""From what a user names to the supplies of frames that a FrameStream takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from penstock.codecs.video_packets import ReadVideo
from penstock.errors import Problem
from penstock.formats.paths import PathLike
from penstock.formats.videos.frame_memory import FrameMemory
from penstock.formats.videos.frame_supplies import Begin, NumberedVideo, PassedVideo, Supply, Task
from penstock.formats.videos.framing import Framing, make_framing
from penstock.formats.videos.grouped_videos import GroupedVideo
from penstock.formats.videos.video_cursors import Cursors
from penstock.formats.videos.video_files import VideoFile
from penstock.formats.videos.video_lists import NamedVideo, list_videos, open_footage


def named_videos(videos: PathLike | Sequence[PathLike]) -> list[NamedVideo]:
    """A path, pattern, folder or list of these as videos, each with a name that no other has."""
    return list_videos(videos)


def state_of(video: NamedVideo) -> tuple[str, int, int]:
    """What changes with a video: where it is, its bytes, and when they were written."""
    return tuple(open_footage(video.path, make_framing(None, "stretch", None), Cursors()).origin())  # type: ignore[return-value]


def supply_of(video: NamedVideo, framing: Framing) -> Supply:
    """All frames of one video file, folder of frames or HDF5 of frames; nothing is opened yet."""
    footage = open_footage(video.path, framing, Cursors())
    return FileSupply(footage) if isinstance(footage, VideoFile) else NumberedVideo(footage)


class FileSupply:
    """A video file, cut into groups of pictures where it can be; that is found out when its frames are wanted."""

    def __init__(self, footage: VideoFile) -> None:
        self._footage = footage
        self._read: ReadVideo | None = None  # until its frames are wanted
        self._chosen: Supply | None = None
        self._lock = threading.Lock()

    @property
    def file(self) -> str:
        return self._footage.file

    def expected(self) -> int:
        with self._lock:
            if self._read is None and self._chosen is None:
                self._read = self._footage.read_whole()
        return self._footage.expected()

    def tasks(self, begin: Begin, memory: FrameMemory) -> Iterator[Task]:
        with self._lock:
            chosen = self._chosen = self._choose(self._read or self._footage.read_whole())
            self._read = None
        yield from chosen.tasks(begin, memory)

    def _choose(self, read: ReadVideo) -> Supply:
        if self._footage.can_be_cut():
            return GroupedVideo(self._footage, read)
        read.opened.container.close()
        return PassedVideo(self._footage)

    def remarks(self, frame_count: int) -> list[Problem]:
        return [] if self._chosen is None else self._chosen.remarks(frame_count)

    def close(self) -> None:
        read, self._read = self._read, None
        if read is not None:
            read.opened.container.close()
        if self._chosen is not None:
            self._chosen.close()
