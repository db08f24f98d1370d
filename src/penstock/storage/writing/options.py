"""What a user may choose about reading, resizing and encoding samples, the same for packs and exports."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from penstock.codecs.images import DEFAULT_QUALITY
from penstock.errors import OptionError, one_of
from penstock.geometry import LARGEST_SIDE, parse_size
from penstock.storage.free_memory import SHARE_OF_FREE, bytes_of, free_bytes

AUTO = "auto"
CODECS = (AUTO, "jpeg", "png", "webp", "raw", "h264")
LOSSLESS = ("png", "raw")
GOP_FRAMES = 12  # an 11-frame clip decodes 1.5 times the frames it needs; 250 frames would be 12 times

# Options that change how fast something is written, never what is in it.
RUNNING = ("workers", "executor", "memory", "sync")


@dataclass(frozen=True)
class SampleOptions:
    """How samples become rows. What each means is said where users meet it: `PackOptions`, `ExportOptions`."""

    codec: str = AUTO
    quality: int = DEFAULT_QUALITY
    longest_side: int | None = None
    shortest_side: int | None = None
    size: str | None = None
    on_bad_sample: str = "raise"
    workers: int | str = AUTO
    executor: str = "thread"
    memory: int | str = AUTO

    def __post_init__(self) -> None:
        one_of("codec", self.codec, CODECS)
        one_of("on_bad_sample", self.on_bad_sample, ("raise", "skip"))
        one_of("executor", self.executor, ("thread", "process"))
        between("quality", self.quality, 1, 100)
        if self.codec in LOSSLESS and self.quality != DEFAULT_QUALITY:
            raise OptionError(
                f"quality={self.quality} is for jpeg, webp and h264; {self.codec} keeps every pixel as it is."
            )
        bytes_of(self.memory)
        self._check_sizes()
        if self.workers != AUTO:
            between("workers", self.workers, 1, 1024)

    def _check_sizes(self) -> None:
        chosen = [name for name in ("longest_side", "shortest_side", "size") if getattr(self, name) is not None]
        if len(chosen) > 1:
            raise OptionError(f"{' and '.join(chosen)} exclude each other; give one of them.")
        for name in ("longest_side", "shortest_side"):
            if getattr(self, name) is not None:
                between(name, getattr(self, name), 1, LARGEST_SIDE)
        if self.size is not None:
            parse_size(self.size)

    @property
    def worker_count(self) -> int:
        return usable_cores() if self.workers == AUTO else int(self.workers)

    @property
    def decoding_bytes(self) -> int:
        """What images may take while they are decoded, in each process."""
        given = bytes_of(self.memory)
        limit = int(free_bytes() * SHARE_OF_FREE) if given is None else given
        return limit // self.worker_count if self.executor == "process" else limit

    @property
    def changes_pixels(self) -> bool:
        return self.longest_side is not None or self.shortest_side is not None or self.size is not None


def between(name: str, value: Any, low: int, high: int) -> None:
    """Refuse what is not a whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise OptionError(f"{name}={value!r} must be a whole number from {low} to {high}.")


def usable_cores() -> int:
    """The cores this process may use, which on shared machines are fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
