"""Every table that can run here, one after the other; then the page on all of them.

python -m benchmarks                                 what `make bench` runs: hours, on a machine with nothing else to do
python -m benchmarks kernel packing --rounds 1       only these, quickly
python -m benchmarks --results FOLDER --page FILE    elsewhere than benchmarks/results and docs/performance.md

Peers that are not installed are listed as absent; `python -m benchmarks.feed --setup` installs them. A table that fails
is said, and the others go on. `benchmarks.accuracy` is not among them: it needs photographs and hours.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.rendering import PAGE, RESULTS, ROOT, publish

TABLES = (
    "kernel",
    "packing",
    "feed",
    "formats",
    "frameworks",
    "export",
    "boxes",
    "training",
    "detection",
    "video",
    "doctor",
)


def run(table: str, results: Path, rounds: int | None) -> bool:
    """Run one table in a process of its own; says whether it went through."""
    print(f"\n== {table}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{table}", "--json", str(results.resolve() / f"{table}.json")]
    command += ["--rounds", str(rounds)] if rounds else []
    failed = subprocess.run(command, cwd=ROOT, check=False).returncode
    if failed:
        print(f"{table} failed with exit code {failed}; its page stays as it was.", flush=True)
    return not failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help=f"which to run: {' '.join(TABLES)}")
    parser.add_argument("--rounds", type=int, help="instead of those that each table finds right")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    done = [run(table, options.results, options.rounds) for table in options.tables or TABLES]
    publish(options.results, options.page)
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
