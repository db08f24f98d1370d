"""Whether training and validation have files in common: then scores measure memory, not learning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from penstock.samples import Store
from penstock.wording import counted


def shared_files(train: Store, val: Store | None) -> tuple[str, ...]:
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


def _files(source: Store) -> set[Path]:
    return _known(source.origin, _first_samples(source)) if source.tells_origins else set()


def _first_samples(source: Store) -> Any:
    """One sample of each file: of a source that streams files, the first of each part."""
    if source.parts is not None:
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
