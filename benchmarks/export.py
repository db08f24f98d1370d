"""Exporting to TFRecord beside TensorFlow's own writer, fed with the same bytes.

python -m benchmarks.feed --setup tensorflow   install TensorFlow, in an environment of its own
python -m benchmarks.export
python -m benchmarks.export --rounds 9

TensorFlow has the photographs in memory before the clock starts and writes shards of the same size: in the first line
it makes an Example of each with the same features, in the second it is given Examples that are serialised already and
only writes. Penstock does the same in both: it exports a pack, and reading, checking, encoding, journal and manifest
are part of its time.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import penstock as ps
from benchmarks.feeding import data
from benchmarks.feeding.environments import DEFAULT_HOME, Environments
from benchmarks.feeding.workloads import WORKERS
from benchmarks.machine import stay_on_two_cores, warn_if_busy
from benchmarks.rounds import alternate
from benchmarks.tables import OURS, Bar, Row, Table, Value, compare

WRITER, LEAST_OF_TENSORFLOW = "TFRecordWriter", 1.0
PEER = Path(__file__).with_name("export_peer.py")


class Writer:
    """TensorFlow in another process: a folder goes in, it writes, an answer comes out."""

    def __init__(self, process: subprocess.Popen[str], home: Path) -> None:
        self._process, self._home = process, home
        self._numbers = itertools.count()

    def write(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        target = self._home / f"tensorflow-{next(self._numbers)}"
        self._process.stdin.write(f"{target}\n")
        self._process.stdin.flush()
        if not self._process.stdout.readline():
            raise RuntimeError("TensorFlow's process ended; run benchmarks/export_peer.py by hand to see why")


@contextmanager
def tensorflow(python: Path, jpegs: Path, how: str, home: Path) -> Iterator[Writer]:
    """A process that has the photographs in memory and waits."""
    command = [str(python), str(PEER), str(jpegs), how]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        yield Writer(process, home)
        process.stdin.close()


def contest(how: str, options: argparse.Namespace, home: Path) -> Row:
    title, missing = f"export to TFRecord, Examples {how}", Environments(options.peers_home).missing("tensorflow")
    if missing:
        return compare(title, "samples/s", [Value(WRITER, 0.0, absent=missing)])
    pack = ps.Pack(data.kept_pack(options.folder))
    numbers = itertools.count()

    def ours() -> None:
        ps.export(pack, home / f"penstock-{next(numbers)}", to="tfrecord", progress=False, workers=WORKERS)

    def tidy() -> None:
        for folder in home.iterdir():
            shutil.rmtree(folder)

    python = Environments(options.peers_home).python("tensorflow")
    with tensorflow(python, data.jpegs(options.folder), how, home) as writer:
        ours()  # what is imported and mapped once
        own, theirs = alternate(ours, writer.write, options.rounds, before=tidy)
    values = [Value(OURS, len(pack) / own, "penstock"), Value(WRITER, len(pack) / theirs)]
    return compare(title, "samples/s", values, [Bar(OURS, WRITER, LEAST_OF_TENSORFLOW)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peers-home", type=Path, default=DEFAULT_HOME, help="where the environments are")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "penstock-benchmarks" / "feed")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    stay_on_two_cores()
    warn_if_busy()
    table = Table("export", options.json)
    for how in ("built", "serialised"):
        with tempfile.TemporaryDirectory(dir=options.folder) as home:
            table.add(contest(how, options, Path(home)))


if __name__ == "__main__":
    main()
