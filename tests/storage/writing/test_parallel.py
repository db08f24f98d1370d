"""Processes that pack: whatever is killed, nothing with a name stays in the system."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from leftovers import is_gone, until
from penstock.storage.writing.parallel import ProcessPool

TESTS = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
import penstock as ps
from made_sources import Announced
if __name__ == "__main__":
    ps.pack(Announced(4_000), sys.argv[1], executor="process", workers=2)
"""


def semaphores() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir() if path.name.startswith("sem.mp-")}


def mapped_semaphores(*processes: psutil.Process) -> set[str]:
    """The semaphores with names that some processes have open."""
    found = set()
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            found |= {Path(area.path).name for area in process.memory_maps() if "sem.mp-" in area.path}
    return found


def packing(folder: Path) -> subprocess.Popen[str]:
    """A program that packs in two processes, once they are at work."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    running = subprocess.Popen(
        [sys.executable, script, folder / "p.pack"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None and running.stdout.read(20)
    return running


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no folder of named memory on this system")
def test_packing_that_is_killed_leaves_no_semaphores(tmp_path: Path) -> None:
    """Other programs, and tests that run at the same time, may have some: those that nobody has open are left over."""
    before = semaphores()
    running = packing(tmp_path)
    program = psutil.Process(running.pid)
    assert not mapped_semaphores(program, *program.children(recursive=True))
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert not semaphores() - before - mapped_semaphores(*psutil.process_iter())


def test_a_tracker_of_python_that_is_killed_is_no_trouble(tmp_path: Path) -> None:
    running = packing(tmp_path)
    trackers = [
        child for child in psutil.Process(running.pid).children() if "resource_tracker" in " ".join(child.cmdline())
    ]
    for tracker in trackers:
        tracker.kill()
    os.kill(running.pid, signal.SIGINT)
    _, errors = running.communicate()
    assert "KeyError" not in errors and "resource_tracker" not in errors, errors


BUSY = """
import os, sys
from pathlib import Path
from penstock.storage.writing.parallel import ProcessPool

def read_for_ever(pipe, _):
    with open(pipe) as lines:  # whoever opened it for writing never writes
        print(os.getpid(), flush=True)
        lines.read()

if __name__ == "__main__":
    pool = ProcessPool(1, read_for_ever, (sys.argv[1],))
    pool.submit(0).result()
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_process_in_the_middle_of_its_work_ends_when_the_program_is_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(BUSY)
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR)
    command = [sys.executable, tmp_path / "program.py", tmp_path / "pipe"]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            worker = int(running.stdout.readline())
            running.kill()
        until(lambda: is_gone(worker), "the process of the pool ended")
    finally:
        os.close(pipe)


def multiplied(factor: int, value: int) -> int:
    if value < 0:
        raise ValueError(f"{value} is below 0")
    return factor * value


def test_a_pool_answers_raises_and_can_be_used_after_an_error() -> None:
    pool = ProcessPool(2, multiplied, (3,))
    try:
        failed = pool.submit(-1)
        assert [pool.submit(value).result() for value in range(5)] == [0, 3, 6, 9, 12]
        with pytest.raises(ValueError, match="-1 is below 0"):
            failed.result()
    finally:
        pool.shutdown()
