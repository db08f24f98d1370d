"""What a benchmark found, in one form for all: rows of values, judged by bars, with the machine and all versions.

    table = Table("packing", options.json)
    table.add(compare("pack, longest side 256", "images/s", [Value(OURS, rate, "penstock"), …], [Bar(OURS, …, 0.85)]))

A row is printed when it comes, and the file is written anew with it: an interrupted benchmark leaves what it had.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from benchmarks.machine import machine
from benchmarks.rounds import Result

Role = Literal["penstock", "peer", "limit", "other"]  # a limit is a loop without any pipeline around it
OURS = "Penstock"
BEST_PEER = "best peer"
# What has a say in nearly every figure.
LIBRARIES = ("penstock", "numpy", "pyarrow", "opencv-python-headless", "simplejpeg", "torch")


@dataclass(frozen=True)
class Value:
    """What one contestant reached, in the unit of its row; or why it took no part."""

    name: str
    amount: float
    role: Role = "peer"
    note: str = ""
    absent: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Bar:
    """How many times as fast as another one of ours must be."""

    ours: str
    theirs: str  # a contestant, or BEST_PEER
    least: float


@dataclass(frozen=True)
class Row:
    """Contestants beside each other, and what was asked of ours."""

    title: str
    unit: str
    values: tuple[Value, ...]
    bars: tuple[Result, ...] = ()
    smaller_is_better: bool = False

    def times_as_fast(self, ours: Value, theirs: Value) -> float:
        return theirs.amount / ours.amount if self.smaller_is_better else ours.amount / theirs.amount

    @property
    def present(self) -> list[Value]:
        """Those that took part, the best first."""
        there = [value for value in self.values if not value.absent]
        return sorted(there, key=lambda value: value.amount, reverse=not self.smaller_is_better)

    @property
    def best_peer(self) -> Value | None:
        return next((value for value in self.present if value.role == "peer"), None)

    def named(self, name: str) -> Value | None:
        return self.best_peer if name == BEST_PEER else next((each for each in self.present if each.name == name), None)


def compare(
    title: str, unit: str, values: Sequence[Value], bars: Sequence[Bar] = (), *, smaller_is_better: bool = False
) -> Row:
    """A row, judged."""
    row = Row(title, unit, tuple(values), smaller_is_better=smaller_is_better)
    return Row(title, unit, row.values, tuple(_judged(row, bar) for bar in bars), smaller_is_better)


def within(title: str, amount: float, unit: str, most: float) -> Row:
    """One figure of ours that must stay below another."""
    must, ours = f"< {shown(most)} {unit}", Value(OURS, amount, "penstock")
    result = Result(title, f"{shown(amount)} {unit}", must, amount < most)
    return Row(title, unit, (ours,), (result,), smaller_is_better=True)


def _judged(row: Row, bar: Bar) -> Result:
    ours, theirs = row.named(bar.ours), row.named(bar.theirs)
    what, must = f"{row.title}: {bar.ours} beside {bar.theirs}", f"≥ {bar.least:.3g} ×"
    if ours is None or theirs is None:
        return Result(what, "one of them did not take part", must, False)
    ratio = row.times_as_fast(ours, theirs)
    figure = f"{ratio:.2f} × {theirs.name} ({shown(ours.amount)} and {shown(theirs.amount)} {row.unit})"
    return Result(what, figure, must, ratio >= bar.least)


def shown(amount: float) -> str:
    """A number with as many places as it deserves."""
    if amount == 0 or amount >= 100:
        return f"{amount:,.0f}"
    return f"{amount:.3g}"


class Table:
    """The rows of one benchmark."""

    def __init__(self, name: str, path: Path | None) -> None:
        self.name, self._path = name, path
        self._machine = machine()
        self.rows: list[Row] = []

    def add(self, found: Row | Result) -> None:
        """Print a row and keep it."""
        row = found if isinstance(found, Row) else row_of(found)
        self.rows.append(row)
        for line in lines_of(row):
            print(line, flush=True)
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(document(self.name, self.rows, self._machine), indent=1, ensure_ascii=False)
            self._path.write_text(text + "\n", encoding="utf-8")


def row_of(result: Result) -> Row:
    """A figure that is judged by itself."""
    return Row(result.what, "", (), (result,))


def document(name: str, rows: Sequence[Row], where: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A table as its file has it; `where` is the machine before it began."""
    return {
        "table": name,
        "command": " ".join([f"python -m benchmarks.{name}", *_plain_arguments(sys.argv[1:])]),
        "machine": where or machine(),
        "versions": versions_of(LIBRARIES),
        "rows": [asdict(row) for row in rows],
    }


def _plain_arguments(given: Sequence[str]) -> list[str]:
    """What was asked for, without the places where files are."""
    kept, skips = [], False
    for word in given:
        if skips or word in ("--json", "--folder", "--peers-home", "--plots"):
            skips = not skips
            continue
        kept.append(word)
    return kept


def versions_of(libraries: Sequence[str]) -> dict[str, str]:
    """The versions of those that are installed."""
    found = {}
    for library in libraries:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def lines_of(row: Row) -> list[str]:
    """A row for a terminal: everybody where there are several, then what was asked."""
    lines = _standings(row) if len(row.values) > 2 else []
    return [*lines, *(result.line() for result in row.bars)]


def _standings(row: Row) -> list[str]:
    peer = row.best_peer
    lines = ["", row.title, f"{'':<42}{row.unit:>14}{'× best peer':>13}  versions"]
    for value in row.present:
        ratio = f"{row.times_as_fast(value, peer):.2f}" if peer else ""
        versions = ", ".join(f"{name} {version}" for name, version in value.versions.items())
        note = f" ({value.note})" if value.note else ""
        lines.append(f"{value.name:<42}{shown(value.amount):>14}{ratio:>13}  {versions}{note}")
    return [*lines, *(f"{each.name:<42}{'absent':>14}  {each.absent}" for each in row.values if each.absent)]


def read_row(values: Mapping[str, Any]) -> Row:
    """A row as it stands in a file."""
    return Row(
        values["title"],
        values["unit"],
        tuple(Value(**value) for value in values["values"]),
        tuple(Result(**bar) for bar in values["bars"]),
        values["smaller_is_better"],
    )
