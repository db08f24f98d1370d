"""From what a user gives as data to the sources of training and validation, by the same rule as in packing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.errors import RecipeError, nearest
from penstock.flow.fingerprints import described_source
from penstock.opening import is_pack
from penstock.opening import open as open_any
from penstock.packing.options import PackOptions
from penstock.packing.reader import Pack
from penstock.packing.splitting import SplitPlan, plan_part_splits, plan_splits
from penstock.problems import refuse_problems
from penstock.samples import Source, Streamed, Subset
from penstock.training.options import DataOptions


class TrainingData(NamedTuple):
    """What is trained on and what is validated with; `how` says in words where the split comes from."""

    train: Source
    val: Source | None
    how: str
    source: Source | None  # of both, where there is one


def training_data(data: Any, options: DataOptions, on_bad_sample: str = "raise") -> TrainingData:
    """A path, a Source, or a pair of both; a pair is taken as it is, all else is split. Their problems are refused."""
    if is_pair(data):
        train, val = (None if one is None else opened(one, options, on_bad_sample) for one in data)
        if train is None:
            raise RecipeError("a pair of data is (train, val), and train is None.")
        return TrainingData(train, val, "as given", None)
    source = opened(data, options, on_bad_sample)
    return _split(source, options)


def path_of(data: Any) -> str | tuple[str, ...]:
    """The path that opens the same data again; empty where only Python can make them."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    if type(data) is Pack:
        return str(data.path)
    if isinstance(data, (tuple, list)):
        paths = [path_of(one) for one in data]
        # Two packs are a pair (train, val) again; other things in a list may be one set, or a pair.
        if all(isinstance(one, (str, os.PathLike)) for one in data) or (len(data) == 2 and all(_packs(paths))):
            return tuple(str(path) for path in paths)
    return ""


def _packs(paths: list[Any]) -> list[bool]:
    return [isinstance(path, str) and bool(path) and is_pack(Path(path)) for path in paths]


def facts_of(data: TrainingData) -> dict[str, Any]:
    """What a Run writes of its data, so that they can be told apart from others: kind, count and fingerprint."""
    if data.source is not None:
        return _source_facts(data.source)
    return {name: _source_facts(one) for name, one in (("train", data.train), ("val", data.val)) if one is not None}


def _source_facts(source: Source) -> dict[str, Any]:
    described = json.dumps(described_source(source), default=str)
    fingerprint = xxhash.xxh3_64_hexdigest(described.encode("utf-8", "surrogatepass"))
    return {"source": type(source).__name__, "samples": len(source), "fingerprint": fingerprint}


def is_pair(data: Any) -> bool:
    """Whether two things are (train, val). Two paths are a pair if both are packs; else they are files of one set."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        return False
    return not all(isinstance(one, (str, os.PathLike)) and not is_pack(Path(one)) for one in data)


def opened(data: Any, options: DataOptions, on_bad_sample: str = "raise") -> Source:
    """A Source as it is, all else as `penstock.open` does; nothing is trained on data that `check` refuses."""
    source = _opened(data, options)
    refuse_problems(source, leaves_unreadable=on_bad_sample == "substitute")
    return source


def _opened(data: Any, options: DataOptions) -> Source:
    if isinstance(data, Source):
        return data
    if not isinstance(data, (str, os.PathLike, tuple, list)):
        raise RecipeError(
            f"data must be a path, a Source or a pair (train, val), not {type(data).__name__}. "
            "For a sequence write penstock.from_sequence(it)."
        )
    source: Source = open_any(data, **(options.options or {}))  # type: ignore[arg-type]
    return source


def _split(source: Source, options: DataOptions) -> TrainingData:
    names, codes, how = _codes(source, options)
    train = _part(source, names, codes, options.train)
    has_others = any(name != options.train for name in names)
    if options.val is None or (not has_others and options.val not in names):
        return TrainingData(train, None, how, source)
    return TrainingData(train, _part(source, names, codes, options.val), how, source)


def _codes(source: Source, options: DataOptions) -> tuple[list[str], NDArray[np.int16], str]:
    """The name of each split, the number of the split of each sample, and how that came about."""
    if isinstance(source, Pack) and options.split == "auto":
        return (
            list(source.splits),
            source.index_column("split"),
            str(source.manifest.notes.get("split", "as in the pack")),
        )
    chosen = PackOptions(split=options.split, seed=options.split_seed)
    if isinstance(source, Streamed):
        plan = plan_part_splits(source.parts, len(source.schema.classes), chosen)
        return list(plan.names), _codes_of_parts(source, plan), plan.how
    plan = plan_splits(source, chosen)
    return list(plan.names), _codes_in_order(plan, len(source)), plan.how


def _codes_of_parts(source: Any, plan: SplitPlan) -> NDArray[np.int16]:
    if plan.blocks is not None:
        return _codes_in_order(plan, len(source))
    return np.repeat(plan.codes, [part.expected for part in source.parts])


def _codes_in_order(plan: SplitPlan, count: int) -> NDArray[np.int16]:
    if plan.blocks is None:
        return plan.codes if len(plan.codes) == count else np.repeat(plan.codes[:1], count)
    return np.array([plan.blocks.code(position) % len(plan.names) for position in range(count)], np.int16)


def _part(source: Source, names: list[str], codes: NDArray[np.int16], name: str) -> Source:
    if name not in names:
        raise RecipeError(
            f"there is no split {name!r}; there are {', '.join(names)}.{nearest(name, names)} Name them with "
            "data.train and data.val (val: none trains without validation), or give data.split."
        )
    indices = np.flatnonzero(codes == names.index(name))
    return source if len(indices) == len(source) else Subset(source, indices)
