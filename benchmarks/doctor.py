"""Is the doctor right? What binds in prepared ailments must be named, and each remedy bring what was predicted.

python -m benchmarks.doctor                        all nine ailments, some minutes
python -m benchmarks.doctor disk --rounds 1        those with "disk" in their name, quickly
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import penstock as ps
from benchmarks.ailments import Ailment, Step, Ward, ailments
from benchmarks.rounds import Result
from benchmarks.tables import Table

MOST_ERROR = 0.25  # of the predicted speed-up
LONGEST_SECONDS = 30.0
WARM_SECONDS, MEASURED_SECONDS = 10.0, 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of ailments; all without any")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "penstock-benchmarks" / "doctor")
    options = parser.parse_args()
    os.environ["PENSTOCK_CACHE"] = str(options.folder / "penstock-cache")  # what is remembered stays with the data
    table = Table("doctor", options.json)
    for ailment in ailments(Ward(options.folder)):
        if not options.names or any(name in ailment.name for name in options.names):
            for result in examined(ailment, options.rounds):
                table.add(result)


def examined(ailment: Ailment, rounds: int) -> Iterator[Result]:
    """What the doctor says, and whether it is so."""
    flow, step = ailment.sick()
    found = ps.doctor(flow, step)
    named, wanted = (found.verdict.resource, found.verdict.hop), (ailment.resource, ailment.hop)
    yield Result(f"{ailment.name}: what binds", " ".join(named), " ".join(wanted), named == wanted)
    yield Result(
        f"{ailment.name}: time", f"{found.seconds:.1f} s", f"< {LONGEST_SECONDS:.0f} s", found.seconds < LONGEST_SECONDS
    )
    remedies = {one.name: one for one in found.remedies if one.name in ailment.cures}
    if ailment.remedy not in remedies:
        names = ", ".join(one.name for one in found.remedies) or "none"
        yield Result(f"{ailment.name}: its remedy", names, ailment.remedy, False)
    for name, real in speed_ups(ailment, list(remedies), rounds).items():
        remedy = remedies[name]
        error = remedy.speed_up / real - 1
        figure = f"× {remedy.speed_up:.2f} predicted, × {real:.2f} measured ({error:+.0%})"
        yield Result(f"{ailment.name}: {remedy.what}", figure, f"within {MOST_ERROR:.0%}", abs(error) <= MOST_ERROR)


def speed_ups(ailment: Ailment, names: list[str], rounds: int) -> dict[str, float]:
    """How many times as fast the patient is with each remedy, in alternating rounds."""
    cases = [ailment.sick(), *(ailment.cures[name]() for name in names)]
    for case in cases:
        _samples(*case, WARM_SECONDS, most_epochs=1)  # starts workers and fills caches
    found = [[rate(*case) for case in cases] for _ in range(rounds)]
    for flow, _ in cases:
        flow.close()
    before, *after = (statistics.median(rates) for rates in zip(*found, strict=True))
    return {name: rate / before for name, rate in zip(names, after, strict=True)}


def rate(flow: ps.Flow, step: Step | None) -> float:
    """Samples a second of a plain loop."""
    begin = time.perf_counter()
    return _samples(flow, step, MEASURED_SECONDS) / (time.perf_counter() - begin)


def _samples(flow: ps.Flow, step: Step | None, seconds: float, most_epochs: int | None = None) -> int:
    """What is delivered and used until the time is over."""
    begin, samples, epochs = time.perf_counter(), 0, 0
    while epochs != most_epochs:
        for batch in flow:
            if step is not None:
                step(batch)
            samples += len(batch["index"])
            if time.perf_counter() - begin >= seconds:
                return samples
        epochs += 1
    return samples


if __name__ == "__main__":
    main()
