"""The index of tar shards: one pass over their headers, and a look at images, classes and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage, read_header
from penstock.errors import DataError, OptionError, Problem, one_of
from penstock.formats.indexed.class_numbers import ClassNumbers, First, Stored, class_numbers
from penstock.formats.indexed.indexed_source import (
    FILE,
    HEIGHT,
    IMAGE_LENGTH,
    IMAGE_OFFSET,
    LENGTH,
    OFFSET,
    WIDTH,
)
from penstock.formats.indexed.kept_indexes import Index, joined_texts
from penstock.formats.indexed.mapped_files import FileState, MappedFiles
from penstock.formats.webdataset import tar_fields, tar_members
from penstock.formats.webdataset.tar_fields import Files, UnreadableMember, Wanted
from penstock.formats.webdataset.tar_samples import Grouping, TarSample
from penstock.formats.webdataset.tar_values import Values
from penstock.samples import Field

OnMissing = Literal["raise", "skip"]
ON_MISSING = ("raise", "skip")
LOOKED_AT = 16  # samples that tell the fields


@dataclass(frozen=True)
class TarOptions:
    """What a user may say of tar shards, checked once; see `WebDataset`."""

    fields: tuple[tuple[str, Any], ...] | None
    classes: tuple[str, ...] | None
    first_class: First
    on_missing: OnMissing

    def __post_init__(self) -> None:
        one_of("on_missing", self.on_missing, ON_MISSING)
        if self.first_class not in ("auto", 0, 1):
            raise OptionError(f"first_class={self.first_class!r} is not one of auto, 0, 1.")


def place_columns(number: int) -> tuple[str, str]:
    """The columns that say where the file of field number so and so is."""
    return f"field{number}.offset", f"field{number}.length"


class Shard:
    """One archive: its samples, and their contents."""

    def __init__(self, path: str, plain_path: str, data: memoryview) -> None:
        self.path, self.data = path, data
        grouping = Grouping(path)
        self.samples = list(grouping.samples(tar_members.scan(path, plain_path, data)))
        self.problems = grouping.problems

    def files(self, sample: TarSample) -> Files:
        return {ending: bytes(self.data[one.offset : one.offset + one.size]) for ending, one in sample.members.items()}

    def missing(self, sample: TarSample, wanted: Sequence[Wanted]) -> list[str]:
        """What a sample should have and has not, in words."""
        return [
            f"{one.field.name} (.{one.endings[0]})"
            for one in wanted
            if not any(ending in sample.members for ending in one.endings)
        ]

    def values(self, sample: TarSample) -> Values:
        def content(one: Wanted) -> bytes:
            member = next(sample.members[ending] for ending in one.endings if ending in sample.members)
            return bytes(self.data[member.offset : member.offset + member.size])

        return Values(content)


def make_index(originals: Sequence[FileState], files: MappedFiles, options: TarOptions) -> Index:
    """Scan all archives, and look at every sample."""
    both = zip(originals, files.states, strict=True)
    shards = [Shard(state.path, plain.path, files[number].data) for number, (state, plain) in enumerate(both)]
    raise_all([problem for shard in shards for problem in shard.problems])
    first = [shard.files(sample) for shard in shards for sample in shard.samples[:LOOKED_AT]][:LOOKED_AT]
    if not first:
        raise DataError([Problem(shard.path, None, "holds no sample", "See docs/formats.md") for shard in shards])
    wanted = _wanted(first, shards[0].path, options)
    problems = _leave_out_incomplete(shards, wanted, options)
    return _Look(shards, wanted, options).index(problems)


def _wanted(first: Sequence[Files], path: str, options: TarOptions) -> list[Wanted]:
    """The fields, by the first samples or as the user says."""
    try:
        found = (
            tar_fields.recognised(first) if options.fields is None else tar_fields.given(dict(options.fields), first)
        )
    except UnreadableImage as error:
        what = f"one of the first samples: {error}"
        raise DataError([Problem(path, None, what, "Leave it out, or say with fields= what is meant")]) from error
    if not found:
        endings = ", ".join(sorted({ending for one in first for ending in one}))
        raise OptionError(f'no ending is known: {endings}. Say what they are, such as fields={{"image": "jpg"}}.')
    return found


def raise_all(problems: list[Problem]) -> None:
    if problems:
        raise DataError(problems)


def _leave_out_incomplete(shards: Sequence[Shard], wanted: Sequence[Wanted], options: TarOptions) -> list[Problem]:
    """Samples without one of their files: an error, or left out and told."""
    problems = []
    for shard in shards:
        whole = []
        for sample in shard.samples:
            missing = shard.missing(sample, wanted)
            if missing:
                what = f"{sample.key} at byte {sample.start:,} has no {', '.join(missing)}"
                remedy = 'Complete it, or pass on_missing="skip"'
                problems.append(Problem(shard.path, None, what, remedy, warning=options.on_missing == "skip"))
            else:
                whole.append(sample)
        shard.samples = whole
    if options.on_missing == "raise":
        raise_all(problems)
    return problems


class _Look:
    """Columns of all samples of all archives."""

    def __init__(self, shards: Sequence[Shard], wanted: Sequence[Wanted], options: TarOptions) -> None:
        self.wanted, self.options = wanted, options
        self.shards = shards
        self.all = [(number, shard, sample) for number, shard in enumerate(shards) for sample in shard.samples]

    def index(self, problems: list[Problem]) -> Index:
        stored, boxed = self._stored_classes(), self._stored_box_classes()
        classes = class_numbers({*stored, *boxed}, self.options.classes, self.options.first_class, usual_first=0)
        problems = problems + [
            Problem(self.shards[0].path, None, f"class {name!r} is none of {', '.join(classes.names)}", "Add it")
            for name in classes.unknown
        ]
        about = {
            "wanted": [asdict(one) for one in self.wanted],
            "classes": classes.as_dict(),
            "problems": [problem.as_dict() for problem in problems],
        }
        return Index({**self._places(), **self._images(), **self._named(), **self._labels(stored, classes)}, about)

    def _field(self, *kinds: str) -> Wanted | None:
        return next((one for one in self.wanted if one.field.kind in kinds), None)

    def _places(self) -> dict[str, NDArray[Any]]:
        columns = {
            FILE: np.array([number for number, _, _ in self.all], np.int64),
            OFFSET: np.array([sample.start for _, _, sample in self.all], np.int64),
            LENGTH: np.array([sample.end - sample.start for _, _, sample in self.all], np.int64),
        }
        for number, one in enumerate(self.wanted):
            found = [self._member(sample, one) for _, _, sample in self.all]
            offsets, lengths = np.array(found, np.int64).reshape(-1, 2).T
            columns.update(zip(place_columns(number), map(np.ascontiguousarray, (offsets, lengths)), strict=True))
        return columns

    @staticmethod
    def _member(sample: TarSample, one: Wanted) -> tuple[int, int]:
        member = next(sample.members[ending] for ending in one.endings if ending in sample.members)
        return member.offset, member.size

    def _images(self) -> dict[str, NDArray[Any]]:
        image = self._field("image")
        if image is None:
            return {}
        found = np.ones((len(self.all), 4), np.int64)
        for row, (_, shard, sample) in enumerate(self.all):
            offset, size = self._member(sample, image)
            found[row, :2] = offset, size
            try:
                header = read_header(shard.data[offset : offset + size])
            except UnreadableImage:  # told when it is read
                continue
            found[row, 2:] = header.width, header.height
        names = (IMAGE_OFFSET, IMAGE_LENGTH, WIDTH, HEIGHT)
        return {name: np.ascontiguousarray(column) for name, column in zip(names, found.T, strict=True)}

    def _named(self) -> dict[str, NDArray[Any]]:
        """Keys and groups: as JSON says, else as the files are called."""
        facts = [self._facts(shard, sample) for _, shard, sample in self.all]
        keys = [fact.get("key") or sample.key for fact, (_, _, sample) in zip(facts, self.all, strict=True)]
        columns = joined_texts("key", keys)
        if any("group" in fact for fact in facts):
            groups = [fact.get("group") or key for fact, key in zip(facts, keys, strict=True)]
            columns.update(joined_texts("group", groups))
        return columns

    def _facts(self, shard: Shard, sample: TarSample) -> dict[str, str]:
        member = sample.members.get("json")
        if member is None:
            return {}
        try:
            value = tar_fields.json_of(bytes(shard.data[member.offset : member.offset + member.size]))
        except UnreadableMember:  # told when it is read
            return {}
        facts = value if isinstance(value, dict) else {}
        return {name: facts[name] for name in ("key", "group") if isinstance(facts.get(name), str)}

    def _stored_classes(self) -> list[Stored]:
        label = self._field("class")
        return [] if label is None else [self._stored(shard, sample, label) for _, shard, sample in self.all]

    def _stored(self, shard: Shard, sample: TarSample, label: Wanted) -> Stored:
        try:
            return shard.values(sample).stored_class(label)
        except UnreadableMember as error:
            what = f"{sample.key} at byte {sample.start:,}: {error}"
            raise DataError([Problem(shard.path, None, what, "Correct it")]) from error

    def _stored_box_classes(self) -> set[Stored]:
        boxed = next((one for one in self.wanted if one.field.name == "box_label"), None)
        found: set[Stored] = set()
        if boxed is None:
            return found
        for _, shard, sample in self.all:
            try:
                found.update(shard.values(sample).stored_box_classes(boxed))
            except UnreadableMember:  # told when it is read
                continue
        return found

    def _labels(self, stored: list[Stored], classes: ClassNumbers) -> dict[str, NDArray[Any]]:
        label = self._field("class")
        if label is None:
            return {}
        numbers = {pair: classes.number(pair) for pair in set(stored)}
        return {label.field.name: np.array([numbers[pair] for pair in stored], np.int64)}


def wanted_from(plain: Sequence[dict[str, Any]]) -> tuple[Wanted, ...]:
    """The fields of an index, also after JSON made lists of tuples."""
    return tuple(_wanted_from(**one) for one in plain)


def _wanted_from(field: dict[str, Any], endings: Sequence[str], inside: Sequence[str]) -> Wanted:
    shape = field["shape"]
    stated = Field(field["name"], field["kind"], field["dtype"], None if shape is None else tuple(shape))
    return Wanted(stated, tuple(endings), tuple(inside))
