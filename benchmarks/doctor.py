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
    """What the doctor says, and whether it is so: rounds are before and after its look, since machines change pace."""
    patients = Patients(ailment)
    patients.measure(rounds - rounds // 2)
    flow, step = ailment.sick()
    found = ps.doctor(flow, step)
    patients.measure(rounds // 2)
    patients.close()
    named, wanted = (found.verdict.resource, found.verdict.hop), (ailment.resource, ailment.hop)
    yield Result(f"{ailment.name}: what binds", " ".join(named), " ".join(wanted), named == wanted)
    yield Result(
        f"{ailment.name}: time", f"{found.seconds:.1f} s", f"< {LONGEST_SECONDS:.0f} s", found.seconds < LONGEST_SECONDS
    )
    remedies = [one for one in found.remedies if one.name in ailment.cures]
    if ailment.remedy not in [one.name for one in remedies]:
        names = ", ".join(one.name for one in found.remedies) or "none"
        yield Result(f"{ailment.name}: its remedy", names, ailment.remedy, False)
    for remedy in remedies:
        real = patients.speed_up(remedy.name)
        error = remedy.speed_up / real - 1
        figure = f"× {remedy.speed_up:.2f} predicted, × {real:.2f} measured ({error:+.0%})"
        yield Result(f"{ailment.name}: {remedy.what}", figure, f"within {MOST_ERROR:.0%}", abs(error) <= MOST_ERROR)


class Patients:
    """One ailment before and after each remedy, measured in alternating rounds."""

    def __init__(self, ailment: Ailment) -> None:
        self._cases = {"": ailment.sick(), **{name: cure() for name, cure in ailment.cures.items()}}
        self._rates: dict[str, list[float]] = {name: [] for name in self._cases}
        for case in self._cases.values():
            _samples(*case, WARM_SECONDS, most_epochs=1)  # starts workers and fills caches

    def measure(self, rounds: int) -> None:
        for _ in range(rounds):
            for name, case in self._cases.items():
                self._rates[name].append(rate(*case))

    def speed_up(self, remedy: str) -> float:
        """How many times as fast it is with a remedy."""
        return statistics.median(self._rates[remedy]) / statistics.median(self._rates[""])

    def close(self) -> None:
        for flow, _ in self._cases.values():
            flow.close()


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
