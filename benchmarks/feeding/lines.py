"""The lines that are not contests: memory, the first batch, the GIL, 10⁹ samples, autotune."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.feeding import data
from benchmarks.feeding.contestants import ROOT, Absent, Entry, Server
from benchmarks.feeding.environments import Environments
from benchmarks.feeding.watching import Watch
from benchmarks.feeding.workloads import BATCH, WORKERS, image_peers
from benchmarks.rounds import Result
from benchmarks.tables import OURS, Bar, Row, Value, compare, shown, within

MOST_MEMORY_MB, MOST_FIRST_SECONDS, MOST_GIL_MICROSECONDS = 350.0, 0.25, 15.0
MOST_OPEN_SECONDS, MOST_OPEN_MB, LEAST_TUNED = 0.1, 10.0, 0.95
FRESH_STARTS = 5

Line = Callable[[Path, Environments], Iterable[Row]]


def _settings(home: Path) -> dict[str, Any]:
    pack, folder = str(data.kept_pack(home)), str(data.jpegs(home))
    return {"home": str(home), "pack": pack, "folder": folder, "layout": "uint8", "batch": BATCH, "workers": WORKERS}


def memory(home: Path, environments: Environments) -> list[Row]:
    """Peak memory of A, of everybody; only ours has a bar."""
    entries = [Entry(OURS, "penstock_images", role="penstock"), *image_peers("float32")]
    values = [_peak(entry, home, environments) for entry in entries]
    ours = values[0].amount
    bar = Result("peak memory of A", f"{shown(ours)} MB", f"< {MOST_MEMORY_MB:.0f} MB", 0 < ours < MOST_MEMORY_MB)
    return [Row("peak memory of A", "MB", tuple(values), (bar,), smaller_is_better=True)]


def _peak(entry: Entry, home: Path, environments: Environments) -> Value:
    try:
        return Value(entry.name, _peak_mb(entry, home, environments), entry.role)
    except Absent as reason:
        return Value(entry.name, 0.0, entry.role, absent=str(reason))


def _peak_mb(entry: Entry, home: Path, environments: Environments) -> float:
    server = Server(entry, _settings(home), environments)
    try:
        with Watch(server.pid) as watch:
            server.go()
            server.go()
        return watch.peak_mb
    finally:
        server.close()


def first(home: Path, environments: Environments) -> list[Row]:
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
    return [within("time to the first batch of A, threads", took, "s", MOST_FIRST_SECONDS)]


def gil_held(home: Path, environments: Environments) -> list[Row]:
    held = _answer("gil_held", _settings(home))["microseconds"]
    return [within("GIL-held time per image of A", held, "µs", MOST_GIL_MICROSECONDS)]


def billion(home: Path, environments: Environments) -> list[Row]:
    answer, what = _answer("billion", {}), "10⁹ samples opened, shuffled, first batch"
    return [
        within(what, answer["seconds"], "s", MOST_OPEN_SECONDS),
        within(f"{what}: memory more", answer["megabytes"], "MB", MOST_OPEN_MB),
    ]


def tune(home: Path, environments: Environments) -> list[Row]:
    answer = _answer("tuning", _settings(home))
    workers, prefetch = answer["best"]
    tuned, fixed = f"{OURS}, autotune after 5 s", f"{OURS}, best fixed setting"
    values = [
        Value(tuned, answer["tuned"], "penstock"),
        Value(fixed, answer["fixed"], "limit", note=f"{workers} workers, {prefetch} batches ahead"),
    ]
    return [compare("autotune", "images/s", values, [Bar(tuned, fixed, LEAST_TUNED)])]


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
