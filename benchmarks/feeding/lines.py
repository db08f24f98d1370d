"""The lines that are not contests: memory, the first batch, the GIL, 10⁹ samples, autotune."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.feeding import data
from benchmarks.feeding.contestants import ROOT, Absent, Entry, Server
from benchmarks.feeding.environments import Environments
from benchmarks.feeding.watching import Watch
from benchmarks.feeding.workloads import BATCH, OURS, WORKERS, image_peers
from benchmarks.rounds import Result

MOST_MEMORY_MB, MOST_FIRST_SECONDS, MOST_GIL_MICROSECONDS = 350.0, 0.25, 15.0
MOST_OPEN_SECONDS, MOST_OPEN_MB, LEAST_TUNED = 0.1, 10.0, 0.95
FRESH_STARTS = 5

Line = Callable[[Path, Environments], Iterable[Result]]


def _settings(home: Path) -> dict[str, Any]:
    pack, folder = str(data.kept_pack(home)), str(data.jpegs(home))
    return {"home": str(home), "pack": pack, "folder": folder, "layout": "uint8", "batch": BATCH, "workers": WORKERS}


def memory(home: Path, environments: Environments) -> Iterator[Result]:
    """Peak memory of A, of everybody; only ours has a bar."""
    for entry in [Entry(OURS, "penstock_images", role="penstock"), *image_peers("float32")]:
        try:
            peak = _peak_mb(entry, home, environments)
        except Absent as reason:
            print(f"     {entry.name}: {reason}", file=sys.stderr)
            continue
        bar = f"< {MOST_MEMORY_MB:.0f} MB" if entry.name == OURS else "(a peer)"
        reached = entry.name != OURS or peak < MOST_MEMORY_MB
        yield Result(f"peak memory of A, {entry.name}", f"{peak:,.0f} MB", bar, reached)


def _peak_mb(entry: Entry, home: Path, environments: Environments) -> float:
    server = Server(entry, _settings(home), environments)
    try:
        with Watch(server.pid) as watch:
            server.go()
            server.go()
        return watch.peak_mb
    finally:
        server.close()


def first(home: Path, environments: Environments) -> list[Result]:
    """From opening the pack to the first batch, in fresh processes.

    The imports of Penstock's own modules are in it; those of numpy and pyarrow are not, as peers import theirs before.
    The first process leaves the bytecode for the others, as an installation would.
    """
    seconds = []
    for _ in range(FRESH_STARTS + 1):
        server = Server(Entry(OURS, "penstock_images"), _settings(home), environments)
        seconds.append(server.go().first_seconds)
        server.close()
    took = statistics.median(seconds[1:])
    bar = f"< {MOST_FIRST_SECONDS} s"
    return [Result("time to the first batch of A, threads", f"{took:.3f} s", bar, took < MOST_FIRST_SECONDS)]


def gil_held(home: Path, environments: Environments) -> list[Result]:
    held = _answer("gil_held", _settings(home))["microseconds"]
    bar = f"≤ {MOST_GIL_MICROSECONDS:.0f} µs"
    return [Result("GIL-held time per image of A", f"{held:.1f} µs", bar, held <= MOST_GIL_MICROSECONDS)]


def billion(home: Path, environments: Environments) -> list[Result]:
    answer = _answer("billion", {})
    seconds, grown = answer["seconds"], answer["megabytes"]
    reached = seconds < MOST_OPEN_SECONDS and grown < MOST_OPEN_MB
    bar = f"< {MOST_OPEN_SECONDS} s, < {MOST_OPEN_MB:.0f} MB"
    return [Result("10⁹ samples opened, shuffled, first batch", f"{seconds:.3f} s, {grown:.1f} MB", bar, reached)]


def tune(home: Path, environments: Environments) -> list[Result]:
    answer = _answer("tuning", _settings(home))
    ratio, (workers, prefetch) = answer["tuned"] / answer["fixed"], answer["best"]
    figure = (
        f"{ratio:.2f} × ({answer['tuned']:,.0f}/s, {answer['fixed']:,.0f}/s with {workers} workers, {prefetch} ahead)"
    )
    return [
        Result("autotune after 5 s beside the best fixed setting", figure, f"≥ {LEAST_TUNED} ×", ratio >= LEAST_TUNED)
    ]


def _answer(module: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Run one of this package's programs in a fresh process that remembers nothing."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", f"benchmarks.feeding.{module}", json.dumps(settings)]
        surroundings = {**os.environ, "PENSTOCK_CACHE": cache}
        done = subprocess.run(command, cwd=ROOT, env=surroundings, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


LINES: dict[str, list[Line]] = {
    "gil": [gil_held],
    "tune": [tune],
    "memory": [memory],
    "first": [first],
    "open": [billion],
}
