"""Problems that say the same of many lines of one file: some of them, and how many more there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from penstock.errors import Problem

SHOWN_REPEATS = 5


def lines_of(problems: Iterable[Problem]) -> list[str]:
    """One line for each problem, or `and 247 more lines like this` for those that repeat what stands before."""
    problems = list(problems)
    kinds = [_kind(problem) for problem in problems]
    counts = Counter(kinds)
    shown: dict[tuple[str, str, bool], int] = {}
    lines = []
    for problem, kind in zip(problems, kinds, strict=True):
        shown[kind] = shown.get(kind, 0) + 1
        if shown[kind] <= SHOWN_REPEATS:
            lines.append(f"{'warning' if problem.warning else 'problem'}: {problem}")
            more = counts[kind] - SHOWN_REPEATS
            if shown[kind] == SHOWN_REPEATS and more > 0:
                words = "line" if more == 1 else "lines"
                lines.append(f"… and {more:,} more {words} like this in {problem.file}; --json lists all")
    return lines


def _kind(problem: Problem) -> tuple[str, str, bool]:
    """A problem without what differs from line to line: numbers, and what stands in quotes."""
    words = re.sub(r"'[^']*'|\"[^\"]*\"|[-+−]?\d[\d,.]*", "…", problem.what)
    return (problem.file if problem.row is not None else f"{problem.file} as a whole", words, problem.warning)
