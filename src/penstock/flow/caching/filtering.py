"""`filter`: one pass over all samples decides which stay. What it found is remembered on disk.

    $PENSTOCK_CACHE, or the cache folder of the user
    └─ filters/<fingerprint of source, steps and function>.npy       the positions that stay

Nothing depends on the file: where it is missing, broken or cannot be written, the pass is made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from penstock.codecs import kernel
from penstock.codecs.npy import HEADER_DAMAGE
from penstock.errors import DataError, HopError, OptionError, Problem
from penstock.flow.caching.identity import UnknownIdentity, identity_of_chain, identity_of_source, identity_of_value
from penstock.flow.making.chains import function_name
from penstock.flow.making.leaves import Leaf, made_sample
from penstock.flow.order.orders import Numbers
from penstock.flow.state import digest
from penstock.flow.steps import Filter
from penstock.flow.user_errors import reason_in_function
from penstock.samples import Sample, Store
from penstock.storage.locations import cache_folder
from penstock.storage.whole_files import whole_file
from penstock.wording import counted

RANGE = 64  # samples of one piece of work
VERSION = 1


class Filtered(NamedTuple):
    """The positions that stay, and the samples that could not be looked at."""

    positions: Numbers
    bad: tuple[HopError, ...]


class _Looked(NamedTuple):
    keep: list[int]
    bad: list[HopError]


def run_filter(leaf: Leaf, indices: Numbers, step: Filter, *, workers: int, skips_bad: bool) -> Filtered:
    """Which of these samples a function wants; bad ones raise, or are left out and told."""
    path = _path(leaf, indices, step)
    known = None if path is None else _remembered(path, len(indices))
    if known is not None:
        return Filtered(known, ())
    leaf.source.prepare()
    pieces = [range(start, min(start + RANGE, len(indices))) for start in range(0, len(indices), RANGE)]
    keep: list[int] = []
    bad: list[HopError] = []
    for looked in _looked_at(pieces, leaf, indices, step, workers):
        keep += looked.keep
        bad += looked.bad
        if bad and not skips_bad:
            raise bad[0]
    positions = np.array(keep, np.int64)
    if path is not None and not bad:  # a sample that is bad today may be mended tomorrow
        _remember(path, positions)
    return Filtered(positions, tuple(bad))


def _looked_at(pieces: Iterable[range], leaf: Leaf, indices: Numbers, step: Filter, workers: int) -> Iterator[_Looked]:
    if not workers:
        yield from (_look(piece, leaf, indices, step) for piece in pieces)
        return
    pool = ThreadPoolExecutor(workers, "penstock-filter")
    try:
        yield from pool.map(lambda piece: _look(piece, leaf, indices, step), pieces)
    finally:
        pool.shutdown(cancel_futures=True)


def _look(piece: range, leaf: Leaf, indices: Numbers, step: Filter) -> _Looked:
    looked = _Looked([], [])
    for position in piece:
        index = int(indices[position])
        try:
            if wanted(step, made_sample(leaf, index), leaf.source, index):
                looked.keep.append(position)
        except HopError as error:
            looked.bad.append(error)
    return looked


def wanted(step: Filter, sample: Sample, source: Store | None, index: int) -> bool:
    """What the function says of one sample."""
    name = function_name(step.function)
    where = f"sample {index}" if source is None else source.describe(index)
    try:
        answer: Any = step.function(dict(sample))
    except Exception as error:
        raise HopError("transform", where, f"{name} of filter: {reason_in_function(error)}") from error
    if not isinstance(answer, (bool, np.bool_)):
        raise OptionError(
            f"filter: {name} gave {type(answer).__name__} for {where}, and must give True or False. "
            "Write a comparison, such as sample['label'] == 3."
        )
    return bool(answer)


def words_on_bad(bad: tuple[HopError, ...], max_bad: int | float | None, total: int) -> str:
    """What is said of samples that were left out; DataError where they are more than the user allows."""
    if max_bad is not None and len(bad) > (max_bad if max_bad >= 1 or not max_bad else max_bad * total):
        remedy = f"More than max_bad={max_bad} were bad."
        raise DataError([Problem(error.sample, None, f"{error.hop} failed: {error.reason}", remedy) for error in bad])
    return f"filter left out {counted(len(bad), 'sample')} that could not be made, first {bad[0]}"


# What is remembered


def _path(leaf: Leaf, indices: Numbers, step: Filter) -> Path | None:
    """The file of this pass; None where source or function cannot be told from others."""
    try:
        about = [identity_of_source(leaf.source), identity_of_chain(leaf.chain), identity_of_value(step.function)]
    except UnknownIdentity:
        return None
    made_by = [kernel.which(), None if leaf.fusion is None else (leaf.fusion.reduced, leaf.fusion.fast), VERSION]
    try:
        return cache_folder() / "filters" / f"{digest([*about, identity_of_value(indices), made_by])}.npy"
    except RuntimeError:  # there is no home folder
        return None


def _remembered(path: Path, count: int) -> Numbers | None:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, *HEADER_DAMAGE):
        return None
    is_whole = found.dtype == np.int64 and found.ndim == 1 and (not len(found) or 0 <= found[0] <= found[-1] < count)
    return found if is_whole else None


def _remember(path: Path, positions: Numbers) -> None:
    """Whole or not at all; a folder that cannot be written to is no reason to fail."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, sync=False) as partial, partial.open("wb") as file:
            np.save(file, positions, allow_pickle=False)
