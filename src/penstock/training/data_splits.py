"""From what a user gives as data to the sources of training and validation, by the same rule as in packing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.errors import OptionError, nearest, nearest_file, refuse_unused
from penstock.flow.state import described_source
from penstock.opening import is_pack
from penstock.opening import open as open_any
from penstock.packing.options import PackOptions
from penstock.packing.reader import Pack
from penstock.packing.splitting import SplitPlan, plan_part_splits, plan_splits
from penstock.problems import refuse_problems
from penstock.samples import Source, Store, Subset, as_store
from penstock.training.options import DataOptions
from penstock.wording import counted

# Whether training and validation have files in common: then scores measure memory, not learning.


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


_NOTHING_LEFT = (
    "no sample is left for validation, so that scores are not measured. Name other data for it, such as "
    "data.val=other.csv; data.val=none says that this is meant."
)


class TrainingData(NamedTuple):
    """What is trained on and what is validated with; `how` says in words where the split comes from.

    `remarks` are what the user should know about it.
    """

    train: Store
    val: Store | None
    how: str
    source: Store | None  # of both, where there is one
    remarks: tuple[str, ...] = ()


def training_data(data: Any, options: DataOptions, on_bad_sample: str = "raise") -> TrainingData:
    """A path, a Source, or a pair of both; a pair is taken as it is, and so is a path as `val`; all else is split.

    Their problems are refused.
    """
    _refuse_unused(data, options)
    if names_file(options.val):
        return _with_own_validation(data, options, on_bad_sample)
    if is_pair(data):
        train, val = (None if one is None else opened(one, options, on_bad_sample) for one in data)
        if train is None:
            raise OptionError("a pair of data is (train, val), and train is None.")
        return TrainingData(train, val, "as given", None, shared_files(train, val))
    source = opened(data, options, on_bad_sample)
    return _split(source, options)


def _refuse_unused(data: Any, options: DataOptions) -> None:
    """Refuse options that say nothing about these data."""
    if is_pair(data) and not names_file(options.val):
        for name in ("train", "val", "split", "split_seed"):
            refuse_unused(options, name, "the data are a pair (train, val), which is taken as it is. Leave it out.")
    sources = list(data) if is_pair(data) else [data]
    if not names_file(options.val) and all(one is None or isinstance(one, Source) for one in sources):
        refuse_unused(options, "options", "the data are open already. Pass them where the source is made.")


def names_file(val: str | None) -> bool:
    """Whether `val` is a file or folder with data of its own; a word without a slash or an ending is a split."""
    return val is not None and (Path(val).suffix != "" or "/" in val or os.sep in val)


def _with_own_validation(data: Any, options: DataOptions, on_bad_sample: str) -> TrainingData:
    """All data for training, and others for validation; data that are split already leave open which are meant."""
    val = str(options.val)
    if is_pair(data):
        raise OptionError(f"data.val={val!r} names data for validation, and so does the pair (train, val). Pass one.")
    source = opened(data, options, on_bad_sample)
    own = sorted(set(_own_splits(source)) - {options.train})
    if own or options.split != "auto":
        what = f"the data have the splits {', '.join(_own_splits(source))}" if own else f"data.split={options.split!r}"
        raise OptionError(
            f"data.val={val!r} names other data for validation, and {what} names a split too. "
            "Choose one: a split such as data.val=val, or data without splits."
        )
    if not Path(val).exists() and "*" not in val:
        raise OptionError(
            f"data.val={val!r}: there is no such file or folder, nor can it be a split.{nearest_file(val)}"
        )
    other = opened(val, options, on_bad_sample)
    return TrainingData(source, other, f"validation from {val}", None, shared_files(source, other))


def _own_splits(source: Store) -> list[str]:
    """The splits that data bring along."""
    if isinstance(source, Pack):
        return list(source.splits)
    try:
        return list(dict.fromkeys(str(name) for name in source.column("split") if name))
    except KeyError:
        return []


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


def _source_facts(source: Store) -> dict[str, Any]:
    described = json.dumps(described_source(source), default=str)
    fingerprint = xxhash.xxh3_64_hexdigest(described.encode("utf-8", "surrogatepass"))
    return {"source": source.kind.__name__, "samples": len(source), "fingerprint": fingerprint}


def is_pair(data: Any) -> bool:
    """Whether two things are (train, val). Two paths are a pair if both are packs; else they are files of one set."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        return False
    return not all(isinstance(one, (str, os.PathLike)) and not is_pack(Path(one)) for one in data)


def opened(data: Any, options: DataOptions, on_bad_sample: str = "raise") -> Store:
    """A Source as it is, all else as `penstock.open` does; nothing is trained on data that `check` refuses."""
    source = _opened(data, options)
    refuse_problems(source, leaves_unreadable=on_bad_sample == "substitute")
    return source


def _opened(data: Any, options: DataOptions) -> Store:
    if isinstance(data, Source):
        return as_store(data)
    if not isinstance(data, (str, os.PathLike, tuple, list)):
        raise OptionError(
            f"data must be a path, a Source or a pair (train, val), not {type(data).__name__}. "
            "For a sequence write penstock.from_sequence(it)."
        )
    source: Store = open_any(data, **(options.options or {}))  # type: ignore[arg-type]
    return source


def _split(source: Store, options: DataOptions) -> TrainingData:
    names, codes, how = _codes(source, options)
    train = _part(source, names, codes, options.train)
    has_others = any(name != options.train for name in names)
    if options.val is None or (not has_others and options.val not in names):
        return TrainingData(train, None, how, source)
    val = _part(source, names, codes, options.val)
    remarks = tuple(note for name, note in source.notes().items() if name == "groups")
    if len(train) and not len(val):
        return TrainingData(train, None, how, source, (*remarks, _NOTHING_LEFT))
    return TrainingData(train, val, how, source, remarks)


def _codes(source: Store, options: DataOptions) -> tuple[list[str], NDArray[np.int16], str]:
    """The name of each split, the number of the split of each sample, and how that came about."""
    if options.split == "auto" and _own_splits(source):
        refuse_unused(options, "split_seed", "the data have their own splits. Pass split=train=0.8,val=0.2 for others.")
    if isinstance(source, Pack) and options.split == "auto":
        return (
            list(source.splits),
            source.index_column("split"),
            str(source.manifest.notes.get("split", "as in the pack")),
        )
    chosen = PackOptions(split=options.split, seed=options.split_seed)
    if source.parts is not None:
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


def _part(source: Store, names: list[str], codes: NDArray[np.int16], name: str) -> Store:
    if name not in names:
        raise OptionError(
            f"there is no split {name!r}; there are {', '.join(names)}.{nearest(name, names)} Name them with "
            "data.train and data.val (val: none trains without validation), or give data.split."
            + (f" For the folder of this name write data.val=./{name}." if Path(name).exists() else "")
        )
    indices = np.flatnonzero(codes == names.index(name))
    return source if len(indices) == len(source) else Subset(source, indices)
