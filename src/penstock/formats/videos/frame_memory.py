"""Arrays for frames that are used again as soon as nobody holds them: fresh memory costs a tenth of decoding."""

from __future__ import annotations

import sys
import threading

import numpy as np

from penstock.formats.videos.pictures import Pixels

# Arrays that are kept for the next frames; more are made where more are held at a time.
MOST_KEPT = 64


def _references(kept: list[Pixels], place: int) -> int:
    return sys.getrefcount(kept[place])


# How many references an array has that is only kept: it differs between versions of Python, so it is asked.
_UNUSED = _references([np.empty(1, np.uint8)], 0)


class FrameMemory:
    """Gives arrays; one is free again when no view of it is left, which numpy counts as references."""

    def __init__(self) -> None:
        self._kept: list[Pixels] = []
        self._lock = threading.Lock()

    def take(self, shape: tuple[int, ...]) -> Pixels:
        """An array of this shape, with whatever is in it."""
        with self._lock:
            for place in range(len(self._kept)):
                if self._kept[place].shape == shape and _references(self._kept, place) == _UNUSED:
                    return self._kept[place]
            array = np.empty(shape, np.uint8)
            if len(self._kept) >= MOST_KEPT:
                del self._kept[0]
            self._kept.append(array)
            return array
