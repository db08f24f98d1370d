"""Whether training and validation have files in common: then scores measure memory, not learning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from penstock.samples import Source, Streamed, Subset
from penstock.wording import counted


def shared_files(train: Source, val: Source | None) -> tuple[str, ...]:
    """A remark that names a file of both, if there is one; sources that know no files have none in common."""
    if val is None:
        return ()
    both = _files(train) & _files(val)
    if not both:
        return ()
    first = min(both).name
    return (
        f"{counted(len(both), 'file')} in both training and validation, such as {first}: the scores will be too good. "
        "Leave them out of one.",
    )


def _files(source: Source) -> set[Path]:
    origin: Any = getattr(source, "origin", None)
    if origin is None and isinstance(source, Subset):
        origin = getattr(source.source, "origin", None)
        return set() if origin is None else _known(origin, source.indices)
    return set() if origin is None else _known(origin, _first_samples(source))


def _first_samples(source: Source) -> Any:
    """One sample of each file: of a source that streams files, the first of each part."""
    if isinstance(source, Streamed):
        lengths = [part.expected for part in source.parts]
        return np.cumsum([0, *lengths[:-1]])[np.array(lengths, np.int64) > 0] if lengths else []
    return range(len(source))


def _known(origin: Any, indices: Any) -> set[Path]:
    found = set()
    for index in indices:
        try:
            found.add(Path(origin(int(index)).file).absolute())
        except OSError:  # a missing file is a problem of its own
            continue
    return found
