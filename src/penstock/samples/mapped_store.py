"""MappedStore: samples that are stretches of few mapped files, as those of a pack, of TFRecords and of tar shards."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.samples.store import Numbers, Places, Store
from penstock.storage.mapped import DONE, SOON, Mapped, advise, resident_pages, stretches


class MappedBytes(Protocol):
    """A mapped file: its bytes for Python, and where they are for the system."""

    @property
    def data(self) -> memoryview: ...
    @property
    def memory(self) -> Mapped: ...


class Stretches(NamedTuple):
    """The bytes of some samples: of each the number of its file, the first byte there, and how many."""

    files: NDArray[Any]
    starts: NDArray[Any]
    lengths: NDArray[Any]


class MappedStore(Store):
    """Those who inherit say where the bytes of a sample are; what the system is told of them follows from that."""

    @abstractmethod
    def stretches_of(self, indices: Numbers) -> Stretches:
        """Where these samples are; known to lie within their files."""

    @abstractmethod
    def mapped_file(self, number: int) -> MappedBytes:
        """A file by its number, mapped on first use."""

    def places_in(self, files: NDArray[Any], *columns: NDArray[Any]) -> Places:
        """The mapped bytes of those files that occur; for each sample which of them, and these columns."""
        if len(files) and (files == files[0]).all():  # the usual case of small packs, without sorting
            numbers, which = [int(files[0])], np.zeros_like(files)
        else:
            numbers = occurring(files)
            which = np.searchsorted(numbers, files)
        buffers = tuple(self.mapped_file(number).data for number in numbers)
        return buffers, np.stack([which, *columns], axis=1).astype(np.int64)

    def shard_numbers(self, indices: Numbers) -> NDArray[Any]:
        """The file of each of these samples."""
        return self.stretches_of(indices).files

    def will_need(self, indices: Numbers) -> int:
        return self._advise(indices, SOON, inner=False)

    def give_back(self, indices: Numbers) -> None:
        """Let go of the pages that only these samples are on."""
        self._advise(indices, DONE, inner=True)

    def _advise(self, indices: Numbers, advice: int | None, *, inner: bool) -> int:
        files, starts, lengths = self.stretches_of(indices)
        total = 0
        for number in occurring(files):
            chosen = files == number
            pages = stretches(starts[chosen].astype(np.int64), lengths[chosen].astype(np.int64), inner=inner)
            total += advise(self.mapped_file(number).memory, pages, advice)
        return total

    def resident_share(self, indices: Numbers) -> float:
        """Which share of these samples begins on a page that is in memory; 1 where the system does not tell."""
        files, starts, _ = self.stretches_of(indices)
        found = []
        for number in occurring(files):
            resident = resident_pages(self.mapped_file(number).memory, starts[files == number].astype(np.int64))
            if resident is None:
                return 1.0
            found.append(resident)
        return float(np.concatenate(found).mean()) if found else 1.0


def occurring(numbers: NDArray[Any]) -> list[int]:
    """The numbers that occur, in order; they are small, and `np.unique` imports a package of 12 ms first."""
    found: list[int] = np.flatnonzero(np.bincount(numbers)).tolist()
    return found
