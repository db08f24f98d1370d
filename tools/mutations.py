"""Break the code at random places and see whether its tests notice: python -m tools.mutations PACKAGE … [--count 60].

    python -m tools.mutations flow/order flow/making geometry results packing samples.py --count 200

Packages and files are named below src/penstock. Every mutant runs against the tests that mirror its file, in a copy of
the checkout. Results are kept in build/mutations.json: a second call continues where the first one stopped, and mutants
of files that have changed since run again. A mutant survives when all its tests pass: then a test is missing, or the
change means nothing. Write such a mutant into build/mutations-equivalent.json as {name: reason}.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.mutants import Mutant, choose_mutants, find_mutants

CHECKOUT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/penstock")
# A run that waits for something that never comes is ended after so many times its processor time: other programs may
# use the machine too.
PATIENCE = 10
NEVER = 9
KILLED = ("failed", "timeout")


class Trial:
    """A copy of the checkout in which code is broken and tests are run."""

    def __init__(self, folder: Path, python: str, most_seconds: float, seconds: dict[str, float | None]) -> None:
        self.folder, self.python = folder, python
        self.most_seconds = most_seconds  # of processor time for the tests of one mutant, when nothing is broken
        self.seconds = seconds  # of test files by content, when nothing is broken; None if they don't pass then
        names = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        built = [path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "src").rglob("*.so")]
        for name in [*names, *built]:
            if (CHECKOUT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CHECKOUT / name, folder / name)

    def run(self, tests: Sequence[str]) -> tuple[str, float, str]:
        """Whether tests passed or failed, the processor time, and the last lines of their output."""
        before = _children_seconds()
        most = (
            int(self.most_seconds) + 30
        )  # processor time; to start Python takes a few seconds, to fail longer than to pass
        command = [self.python, "-m", "pytest", "-x", "-q", "-m", "not slow", "--no-header", "--tb=no", *tests]
        paths = os.pathsep.join([str(self.folder / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        with tempfile.TemporaryDirectory() as scratch:
            running = subprocess.Popen(
                [*command, "--basetemp", f"{scratch}/tests"],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5)),
            )
            try:
                output, _ = running.communicate(timeout=PATIENCE * most)
            except subprocess.TimeoutExpired:
                return "timeout", _children_seconds() - before, ""
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)  # also what its tests have started
                running.wait()
        outcome = {0: "passed", 1: "failed", 2: "failed", 3: "failed", 5: "no tests"}.get(running.returncode, "failed")
        outcome = "timeout" if running.returncode in (-24, -9) else outcome  # beyond its limit of processor time
        return outcome, round(_children_seconds() - before, 2), "\n".join(output.strip().splitlines()[-3:])

    def mirror_tests(self, path: str) -> list[str]:
        """Test files that pass when nothing is broken: the closest first, as many as the time allows."""
        chosen, seconds = [], 0.0
        for test in rank_tests(self.folder, path):
            taken = self._baseline(test)
            if taken is not None and (not chosen or seconds + taken <= self.most_seconds):
                chosen.append(test)
                seconds += taken
            if seconds > 0.8 * self.most_seconds:
                break
        return chosen

    def _baseline(self, test: str) -> float | None:
        """Processor time of a test file when nothing is broken; None if it does not pass."""
        state = f"{test} {_hash(self.folder / test)}"
        if state not in self.seconds:
            outcome, taken, output = self.run([test])
            self.seconds[state] = taken if outcome == "passed" else None
            if outcome != "passed":
                print(f"{test}: {outcome} without any change, so it is not used. {output}", flush=True)
        return self.seconds[state]

    def judge(self, mutant: Mutant, tests: Sequence[str]) -> dict[str, Any]:
        file = self.folder / mutant.path
        whole = file.read_bytes()
        file.write_bytes(mutant.apply(whole))
        try:
            outcome, seconds, output = self.run(tests)
        finally:
            file.write_bytes(whole)
        return {"outcome": outcome, "seconds": seconds, "tests": list(tests), "output": output}


def rank_tests(checkout: Path, path: str) -> list[str]:
    """Test files that may know a source file, the closest first.

    Those of its name, those that import it, those that name what is in it, and the rest of its package's tests.
    Contracts count if they name what is in it.
    """
    inside = Path(path).relative_to(SOURCE).with_suffix("")
    module = ".".join(("penstock", *inside.parts))
    public = re.findall(r"^(?:class|def) ([A-Za-z]\w+)", (checkout / path).read_text(encoding="utf-8"), re.MULTILINE)
    folder = checkout / "tests" / inside.parts[0] if len(inside.parts) > 1 else checkout / "tests"
    files = sorted(folder.rglob("test_*.py")) if len(inside.parts) > 1 else sorted(folder.glob("test_*.py"))
    files += sorted((checkout / "tests").glob("contracts/test_*.py"))
    names = {*inside.parts[-2:], inside.name}

    def distance(file: Path) -> tuple[int, int, str]:
        text = file.read_text(encoding="utf-8")
        mentions = sum(len(re.findall(rf"\b{name}\b", text)) for name in public)
        stem = file.stem.removeprefix("test_")
        if stem in names or stem.removesuffix("s") == inside.name.removesuffix("s"):
            return 0, -mentions, file.name
        if module in text or f"from {module.rpartition('.')[0]} import {inside.name}" in text:
            return 1, -mentions, file.name
        if mentions:
            return 2, -mentions, file.name
        return (NEVER if "contracts" in file.parts else 3), 0, file.name

    ranked = sorted((distance(file), file) for file in files if file.name != "test_architecture.py")
    return [file.relative_to(checkout).as_posix() for (rank, *_), file in ranked if rank < NEVER]


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def find_files(packages: Sequence[str]) -> list[Path]:
    files: list[Path] = []
    for package in packages:
        place = CHECKOUT / SOURCE / package
        if not place.exists():
            raise SystemExit(f"{place} does not exist. Name packages and files below {SOURCE}, such as flow/order.")
        files += [place] if place.is_file() else sorted(place.rglob("*.py"))
    return files


def read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def print_summary(results: Mapping[str, Mapping[str, Any]], equivalent: Mapping[str, str]) -> None:
    meant = {name: one for name, one in results.items() if name not in equivalent}
    counts = Counter(one["outcome"] for one in meant.values())
    killed = sum(counts[outcome] for outcome in KILLED)
    for name, one in meant.items():
        if one["outcome"] not in KILLED:
            print(f"{'survived' if one['outcome'] == 'passed' else one['outcome']}: {name}")
    for name in results.keys() & equivalent.keys():
        print(f"equivalent: {name} ({equivalent[name]})")
    share = f", {killed / len(meant):.0%}" if meant else ""
    print(f"{len(meant)} mutants that mean something, {killed} killed{share}; {len(results) - len(meant)} equivalent.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", help="packages or files below src/penstock")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="processor time for the tests of one mutant")
    parser.add_argument("--results", type=Path, default=CHECKOUT / "build" / "mutations.json")
    parser.add_argument("--equivalent", type=Path, default=CHECKOUT / "build" / "mutations-equivalent.json")
    parser.add_argument("--python", default=sys.executable, help="an environment with Penstock's dev extra")
    parser.add_argument("--again", action="store_true", help="run survivors again, after tests were added")
    parser.add_argument("--list", action="store_true", help="print the chosen mutants and stop")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the tests that run and the copy go too
    mutants = find_mutants(CHECKOUT, find_files(options.packages))
    chosen = choose_mutants(CHECKOUT, mutants, options.count, options.seed)
    if options.list:
        print("\n".join(mutant.name for mutant in chosen))
        return
    found = {"mutants": {}, "tests": {}, **read_json(options.results)}
    kept, states = found["mutants"], {mutant.path: _hash(CHECKOUT / mutant.path) for mutant in chosen}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="penstock-mutations-") as scratch:
        trial = Trial(Path(scratch), options.python, options.seconds, found["tests"])
        for number, mutant in enumerate(chosen, 1):
            known = kept.get(mutant.name)
            is_known = known is not None and known["source"] == states[mutant.path]
            if is_known and (known["outcome"] in KILLED or not options.again):
                continue
            tests = trial.mirror_tests(mutant.path)
            judged = trial.judge(mutant, tests) if tests else {"outcome": "no tests", "seconds": 0, "tests": []}
            kept[mutant.name] = {**judged, "source": states[mutant.path]}
            options.results.write_text(json.dumps(found, indent=1), encoding="utf-8")
            print(f"{number}/{len(chosen)} {judged['outcome']} ({judged['seconds']:.0f} s) {mutant.name}", flush=True)
    print_summary({m.name: kept[m.name] for m in chosen}, read_json(options.equivalent))


if __name__ == "__main__":
    main()
