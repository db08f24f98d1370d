"""Workloads by their names, one after the other: what `feed`, `formats` and `frameworks` have in common."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.feeding.contest import Standing, contest
from benchmarks.feeding.contestants import Contestant, Entry, Server
from benchmarks.feeding.environments import DEFAULT_HOME, Environments
from benchmarks.feeding.workloads import Workload
from benchmarks.machine import stay_on_two_cores, warn_if_busy
from benchmarks.tables import Row, Table, Value, compare

Lines = Mapping[str, Sequence[Callable[[Path, Environments], Iterable[Row]]]]
DEFAULT_FOLDER = Path(tempfile.gettempdir()) / "penstock-benchmarks" / "feed"


def parser_of(description: str | None, names: Iterable[str]) -> argparse.ArgumentParser:
    """Options that are the same for all contests."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"which to run: {' '.join(names)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="the figures, with the versions of everybody")
    parser.add_argument("--peers-home", type=Path, default=DEFAULT_HOME, help="where the environments are")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the data are")
    return parser


def check_names(parser: argparse.ArgumentParser, given: Iterable[str], legal: Iterable[str]) -> None:
    unknown = [name for name in given if name not in legal]
    if unknown:
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(legal)}")


def prepare(folder: Path) -> None:
    """A folder for the data, and the same two cores for everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PENSTOCK_CACHE"] = str(folder / "penstock-cache")  # what is remembered stays with the data
    stay_on_two_cores()
    warn_if_busy()


def run(
    table: str,
    options: argparse.Namespace,
    workloads: Mapping[str, Callable[[Path], Workload]],
    lines: Lines | None = None,
) -> None:
    """Run what was asked for, or everything."""
    prepare(options.folder)
    found, environments = Table(table, options.json), Environments(options.peers_home)
    for name in options.names or dict.fromkeys([*workloads, *(lines or {})]):
        if name in workloads:
            found.add(contested(workloads[name](options.folder), environments, options.rounds))
        for line in (lines or {}).get(name, ()):
            for row in line(options.folder, environments):
                found.add(row)


def contested(workload: Workload, environments: Environments, rounds: int) -> Row:
    """One workload, with everybody who can take part."""

    def start(entry: Entry) -> Contestant:
        own = workload.loops.get(entry.name)
        return own() if own is not None else Server(entry, workload.settings, environments)

    standings = contest(workload.entries, start, workload.expected, rounds)
    return compare(workload.title, workload.unit, [_value(each) for each in standings], workload.bars)


def _value(standing: Standing) -> Value:
    entry = standing.entry
    return Value(entry.name, standing.rate, entry.role, entry.note, standing.absent, standing.versions)
