"""Feeding a model: Penstock beside its peers and beside bare C loops, on two cores.

python -m benchmarks.feed --setup            install the peers, each in an environment of its own
python -m benchmarks.feed                    everything: A A2 A256 B C gil tune memory first open
python -m benchmarks.feed A B --rounds 5     only these
python -m benchmarks.feed --json out.json    the figures, with the versions of everybody
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.feeding.contest import Standing, best_peer, contest
from benchmarks.feeding.contestants import Contestant, Entry, Server
from benchmarks.feeding.environments import DEFAULT_HOME, PACKAGES, Environments
from benchmarks.feeding.lines import LINES
from benchmarks.feeding.workloads import WORKERS, WORKLOADS, Bar, Workload
from benchmarks.rounds import Result

BUSY = 0.5  # processes that run, on the average of the last minute
NAMES = ["A", "A2", "A256", "B", "C", "gil", "tune", "memory", "first", "open"]


@dataclass
class Figures:
    """Everything that a run found out."""

    machine: dict[str, Any]
    contests: dict[str, Any] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = {line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")}
    return {
        "cpu": sorted(models),
        "cores": sorted(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load": os.getloadavg()[0],
    }


def stay_on_two_cores() -> None:
    """Everybody who is started inherits this."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:WORKERS])


def run_contest(workload: Workload, environments: Environments, rounds: int) -> list[Standing]:
    def start(entry: Entry) -> Contestant:
        own = workload.loops.get(entry.name)
        return own() if own is not None else Server(entry, workload.settings, environments)

    return contest(workload.entries, start, workload.expected, rounds)


def judged(workload: Workload, standings: list[Standing]) -> list[Result]:
    return [_judged(workload, bar, standings) for bar in workload.bars]


def _judged(workload: Workload, bar: Bar, standings: list[Standing]) -> Result:
    named = {standing.entry.name: standing for standing in standings if standing.took_part}
    ours, theirs = named.get(bar.ours), best_peer(standings) if bar.theirs == "best peer" else named.get(bar.theirs)
    what = f"{workload.title.split(':')[0]}: {bar.ours} beside {bar.theirs}"
    if ours is None or theirs is None:
        return Result(what, "one of them did not take part", f"≥ {bar.least} ×", False)
    ratio = ours.rate / theirs.rate
    figure = f"{ratio:.2f} × {theirs.entry.name} ({ours.rate:,.0f}/s, {theirs.rate:,.0f}/s)"
    return Result(what, figure, f"≥ {bar.least} ×", ratio >= bar.least)


def print_table(workload: Workload, standings: list[Standing]) -> None:
    peer = best_peer(standings)
    print(
        f"\n{workload.title}\n{'':<42}{workload.unit:>12}{'× best peer':>13}{'spread':>9}{'first batch':>13}  versions"
    )
    for standing in sorted(standings, key=lambda each: -each.rate):
        if not standing.took_part:
            print(f"{standing.entry.name:<42}{'absent':>12}  {standing.absent}")
            continue
        ratio = f"{standing.rate / peer.rate:.2f}" if peer else ""
        spread = f"{max(standing.seconds) / min(standing.seconds):.2f}"
        first = f"{standing.first_seconds:.2f} s" if standing.first_seconds else ""
        versions = ", ".join(f"{name} {version}" for name, version in standing.versions.items())
        note = f" ({standing.entry.note})" if standing.entry.note else ""
        print(f"{standing.entry.name:<42}{standing.rate:>12,.0f}{ratio:>13}{spread:>9}{first:>13}  {versions}{note}")


def described(workload: Workload, standings: list[Standing]) -> dict[str, Any]:
    """A contest for the JSON file."""
    expected = {**asdict(workload.expected), "shape": list(workload.expected.shape)}
    rows = []
    for standing in standings:
        row = {**asdict(standing), **asdict(standing.entry)}
        del row["entry"]
        rows.append(row)
    return {"title": workload.title, "unit": workload.unit, "expected": expected, "contestants": rows}


def set_up(environments: Environments, names: list[str]) -> None:
    for name in names or PACKAGES:
        print(f"{name:<14}{environments.set_up(name) or 'installed'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"which to run: {' '.join(NAMES)}; with --setup: which peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--setup", action="store_true", help="install the peers and stop")
    parser.add_argument("--peers-home", type=Path, default=DEFAULT_HOME, help="where their environments are")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "penstock-benchmarks" / "feed")
    options = parser.parse_args()
    legal = list(PACKAGES) if options.setup else NAMES
    unknown = [name for name in options.names if name not in legal]
    if unknown:
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(legal)}")
    environments = Environments(options.peers_home)
    if options.setup:
        set_up(environments, options.names)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ["PENSTOCK_CACHE"] = str(options.folder / "penstock-cache")  # what is remembered stays with the data
    stay_on_two_cores()
    run(options.names or NAMES, options, environments)


def run(names: list[str], options: argparse.Namespace, environments: Environments) -> None:
    figures = Figures(machine())
    print(figures.machine)
    if figures.machine["load"] > BUSY:
        print("The machine is busy with something else: ratios will be unfair to those with few threads.")
    for name in names:
        if name in WORKLOADS:
            workload = WORKLOADS[name](options.folder)
            standings = run_contest(workload, environments, options.rounds)
            print_table(workload, standings)
            figures.contests[name] = described(workload, standings)
            _tell(figures, judged(workload, standings))
        for line in LINES.get(name, []):
            _tell(figures, line(options.folder, environments))
        if options.json:
            figures.save(options.json)


def _tell(figures: Figures, results: Iterable[Result]) -> None:
    for result in results:
        print(result.line(), flush=True)
        figures.results.append(result)


if __name__ == "__main__":
    main()
