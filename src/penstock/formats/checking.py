"""`check`: every problem of a source at once, before hours are spent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from penstock.errors import DataError, Problem
from penstock.formats.repeats import lines_of
from penstock.problems import known_problems
from penstock.samples import Segment, Source, Store, as_store
from penstock.wording import counted, counted_names

_REMEDY = "Replace or remove it, or pack with on_bad_sample='skip'"
# Samples that one task of a thread decodes: many enough to make the task cheap, few enough to share the work.
_TASK_SAMPLES = 32


@dataclass(frozen=True)
class CheckResult:
    """What `check` found: `ok` when there is nothing worse than a warning."""

    problems: tuple[Problem, ...]
    counts: dict[str, int]

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if not problem.warning)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.warning)

    @property
    def ok(self) -> bool:
        return not self.errors

    def as_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "counts": dict(self.counts),
            "problems": [problem.as_dict() for problem in self.problems],
        }

    def __str__(self) -> str:
        lines = lines_of(self.problems)
        found = f"{counted(len(self.errors), 'problem')}, {counted(len(self.warnings), 'warning')}"
        return "\n".join([*lines, f"{counted_names(self.counts)}: {found if lines else 'no problems'}"])


def check(source: Source | str | os.PathLike[str], *, decode: bool = False) -> CheckResult:
    """Find everything that is wrong with a source or a path: its own problems, then damaged files.

    `decode` also decodes every sample fully, in threads, to find damage inside that headers do not show.
    """
    opened = as_store(source)
    known = known_problems(opened)
    found = [*known, *(problem for problem in opened.damage() if problem not in known)]
    if decode:
        files = {problem.file for problem in found}
        found += [problem for problem in _decode_all(opened) if problem.file not in files]
    return CheckResult(tuple(found), _counts(opened))


def _counts(source: Store) -> dict[str, int]:
    counts = {"classes": len(source.schema.classes), **source.counts()}
    try:
        return {"samples": len(source), **counts}
    except DataError:  # a source that counts by reading cannot count damaged files, which are already reported
        return counts


def _decode_all(source: Store) -> Iterator[Problem]:
    """Decode everything, in order within a part, and report what fails."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        if source.parts is not None:
            tasks = [pool.submit(_decode_part, part) for part in source.parts]
        else:
            starts = range(0, len(source), _TASK_SAMPLES)
            tasks = [pool.submit(_decode_range, source, start) for start in starts]
        for task in tasks:
            yield from task.result()


def _decode_range(source: Store, start: int) -> list[Problem]:
    problems = []
    for index in range(start, min(start + _TASK_SAMPLES, len(source))):
        reason = _failure(source, index)
        file = _file(source, index) if reason else None
        if file is not None:
            problems.append(Problem(file, None, f"{source.describe(index)}: {reason}", _REMEDY))
    return problems


def _failure(source: Store, index: int) -> str:
    """Why a sample cannot be had; empty when it can."""
    try:
        source.decode(source.read(index))
    except Exception as error:  # noqa: BLE001 - whatever a source raises, the user must learn which sample it was
        return f"it cannot be decoded: {error or type(error).__name__}"
    return ""


def _file(source: Store, index: int) -> str | None:
    """The file behind a sample, or its name where the source does not say; None for a missing one, said before."""
    if not source.tells_origins:
        return source.describe(index)
    try:
        return str(source.origin(index).file)
    except OSError as error:
        return None if any(problem.unreadable for problem in known_problems(source)) else str(error.filename)


def _decode_part(part: Segment) -> list[Problem]:
    """Decode a part in order; one that breaks off is reported with the sample where it did."""
    index = 0
    try:
        for raw in part.stream():
            index = raw.index
            part.decode(raw)
    except Exception as error:  # noqa: BLE001 - as above
        what = f"it cannot be decoded near sample {index}: {error or type(error).__name__}"
        return [Problem(part.key, None, what, _REMEDY)]
    return []
