"""In which order samples are exported: split by split, so that only one output is open at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.samples import Segment, Store, Subset
from penstock.samples.schema import ordered_names
from penstock.storage.blocks import Blocks
from penstock.storage.writing.preparing import Preparation
from penstock.storage.writing.work import Place, Prepared, prepared_parts, prepared_samples

_NOTHING_MEASURED: NDArray[np.int64] = np.empty(0, np.int64)


@dataclass(frozen=True)
class Run:
    """The samples of one split, in order; its name is empty where the source has no splits."""

    split: str
    source: Store
    parts: tuple[Segment, ...] | None = None

    @property
    def expected(self) -> int:
        """How many samples there will be, for the progress bar."""
        return len(self.source) if self.parts is None else sum(part.expected for part in self.parts)

    def prepared(self, preparation: Preparation, start: Place, memory: Blocks) -> Iterator[Prepared]:
        """Its rows in order, from a place on, made by the workers."""
        if self.parts is not None:
            return prepared_parts(self.parts, preparation, start)
        return prepared_samples(self.source, preparation, _NOTHING_MEASURED, start, memory)


def plan_runs(source: Store, by_split: bool = True) -> tuple[Run, ...]:
    """One run for each split; samples keep their order within it. Outputs of whole videos take them as they come."""
    if source.parts is not None:
        parts = tuple(source.parts)
        return _part_runs(source, parts) if by_split else (Run("", source, parts),)
    splits = _splits(source) if by_split else None
    if splits is None:
        return (Run("", source),)
    names = _checked_names(splits)
    if len(names) == 1:
        return (Run(names[0], source),)
    return tuple(Run(name, Subset(source, np.flatnonzero(splits == name))) for name in names)


def _part_runs(source: Store, parts: tuple[Segment, ...]) -> tuple[Run, ...]:
    own = np.array([part.split or "" for part in parts], object)
    if not any(own):
        return (Run("", source, parts),)
    return tuple(
        Run(name, source, tuple(part for part, split in zip(parts, own, strict=True) if split == name))
        for name in _checked_names(own)
    )


def _splits(source: Store) -> NDArray[np.object_] | None:
    """The split of every sample, None where the source has none."""
    try:
        values = source.column("split")
    except KeyError:
        return None
    splits = np.asarray(values, object)
    return splits if len(splits) and any(splits) else None


def _checked_names(splits: NDArray[np.object_]) -> list[str]:
    """The names in their usual order; each becomes a part of file names."""
    names = {str(name or "") for name in set(splits.tolist())}
    if "" in names:
        raise OptionError("the source names a split for some samples and none for others; fill it in.")
    for name in names:
        if not name.replace("-", "_").isidentifier():
            raise OptionError(f"the split {name!r} cannot be part of a file's name; use letters, digits and _.")
    return ordered_names(sorted(names))
