"""What goes wrong is said, at once and once; nothing hangs, and nothing is left behind."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import flow_functions as functions
import flow_programs
import penstock as ps
from flow_programs import checksum, feed
from leftovers import assert_nothing_left, held, is_gone, until
from made_sources import Pictures
from penstock.flow.flow import Flow
from penstock.flow.workers import messages as sharing
from penstock.flow.workers import processes as children
from penstock.storage.mapped import GUARD

EXECUTORS = ("thread", "subprocess", "process")
IN_PROCESSES = ("subprocess", "process")
PROGRAM = [sys.executable, flow_programs.__file__]
KILLS = 200


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    gc.collect()
    before = held()
    yield
    assert_nothing_left(before)


def pictures(executor: str, count: int = 48, workers: int = 2) -> Flow:
    return ps.Flow(Pictures(count), seed=3, executor=executor, workers=workers)  # type: ignore[arg-type]


def checksums(flow: Flow, epoch: int = 0) -> list[int]:
    return [checksum(batch) for batch in flow.epoch(epoch)]


# Functions of the user


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_exception_shows_once_where_in_the_function_it_happened(executor: str) -> None:
    flow = pictures(executor).map(functions.dividing_by_zero).batch(8)
    with pytest.raises(
        ps.HopError, match=r"sample 2 \(pictures/2.png\): transform failed: ZeroDivisionError"
    ) as caught:
        list(flow)
    flow.close()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    shown = "".join(traceback.format_exception(caught.value))
    assert str(caught.value).count("in _inner") == 1  # the message names the line, for those who see nothing else
    trace = shown.replace(str(caught.value), "")
    assert trace.count("in _inner") == 1 and trace.count("return 1 / number") == 1
    assert shown.count("The above exception was the direct cause") == 1


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_flow_goes_on_after_an_exception(executor: str) -> None:
    flow = pictures(executor).map(functions.dividing_by_zero).batch(1)
    assert next(flow.epoch(0))["label"].tolist() == [0]
    with pytest.raises(ps.HopError):
        list(flow.epoch(0))
    assert next(flow.epoch(0))["label"].tolist() == [0]
    flow.close()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_exceptions_that_cannot_be_pickled_are_told_in_words(executor: str) -> None:
    class Odd(Exception):  # noqa: N818 - a name that users chose
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} is odd, and {two} is locked")
            self.file = sys.stdout

    def odd(sample: dict[str, Any]) -> dict[str, Any]:
        if sample["label"] == 1:
            raise Odd(1, 2)
        return sample

    flow = pictures(executor).map(odd).batch(8)
    with pytest.raises(ps.HopError, match="transform failed: Odd: 1 is odd, and 2 is locked") as caught:
        list(flow)
    assert "raise Odd(1, 2)" in "".join(traceback.format_exception(caught.value))
    flow.close()


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_a_function_that_ends_its_process_is_reported_with_its_samples(executor: str) -> None:
    flow = pictures(executor).map(functions.leaving).batch(8)
    with pytest.raises(ps.HopError, match=r"samples [\d, ]+.*positions \d+ to \d+ of epoch 0.*exit code 7.*os\._exit"):
        list(flow)
    flow.close()


@pytest.mark.parametrize("executor", IN_PROCESSES)
@pytest.mark.parametrize(
    ("function", "how"),
    [(functions.leaving_at_once, "ended with exit code 7"), (functions.crashing_at_once, "was ended by SIGSEGV")],
)
def test_a_crash_at_the_first_sample_is_an_error_of_a_worker(executor: str, function: Any, how: str) -> None:
    flow = pictures(executor).map(function).batch(8)
    for look in (flow.explain, lambda: list(flow)):
        with pytest.raises(ps.HopError, match=rf"sample 0 \(positions 0 to 0 of epoch 0\): worker process .* {how}"):
            look()
    flow.close()


@pytest.mark.parametrize("executor", IN_PROCESSES)
@pytest.mark.parametrize("cache", [None, "memory", "folder"])
def test_functions_run_in_the_processes_of_the_epoch_alone(executor: str, cache: str | None, tmp_path: Path) -> None:
    (noted := tmp_path / "noted").mkdir()
    flow = pictures(executor)
    flow = flow if cache is None else flow.cache(cache if cache == "memory" else tmp_path / "kept")
    flow = flow.map(functions.Noted(noted)).batch(8)
    seen = [checksum(batch) for batch in flow] + [checksum(batch) for batch in flow.epoch(0)]
    flow.close()
    callers = {int(path.name) for path in noted.iterdir()}
    assert os.getpid() not in callers
    # A cache that is made first changes what processes have a copy of: the one that tried a sample is not kept.
    assert len(callers) <= (2 if executor == "process" else 1) + (cache == "folder")
    assert seen == 2 * checksums(pictures("thread").batch(8))


# Dead workers


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_a_killed_worker_is_reported_with_what_it_was_doing(executor: str, tmp_path: Path) -> None:
    gate = functions.Gate(tmp_path, first=16)
    flow = pictures(executor).map(gate).batch(8)
    batches = flow.epoch(0)
    next(batches), next(batches)
    until(lambda: bool(gate.waiting), "a worker was in the middle of a sample")
    os.kill(gate.waiting[0], signal.SIGKILL)
    with pytest.raises(
        ps.HopError, match=r"samples (1[6-9]|[2-9]\d), .*worker process failed: process \d+ was ended by SIGKILL"
    ):
        list(batches)
    (tmp_path / "open").touch()
    assert checksums(flow) == checksums(pictures("thread", workers=0).batch(8))  # with new workers
    flow.close()


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_a_worker_that_does_not_listen_any_more_is_killed(
    executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "ENDING_SECONDS", 0.1)
    before = held().processes
    # One thread: another one of the same process could be stuck before the first batch is complete.
    flow = pictures(executor, workers=1).map(functions.Stuck(tmp_path, first=8)).batch(8)
    batches = flow.epoch(0)
    next(batches)
    until(lambda: any(tmp_path.iterdir()), "a worker was stuck")
    batches.close()  # type: ignore[attr-defined]
    flow.close()
    assert held().processes == before


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_workers_that_die_between_epochs_are_replaced(executor: str) -> None:
    before = held().processes
    flow = feed(executor)
    expected = [checksums(feed("thread", 0), epoch) for epoch in (0, 1)]
    assert checksums(flow, 0) == expected[0]
    for pid in held().processes - before:
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: is_gone(pid), "the worker was gone")  # type: ignore[misc]
    until(lambda: not _listens(flow), "the death was noticed")
    assert checksums(flow, 1) == expected[1]
    flow.close()


def _listens(flow: Flow) -> bool:
    return any(one.is_sound for one in flow.running.workers._idle)


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_workers_end_when_their_program_is_killed(executor: str) -> None:
    program, workers = started("endless", executor)
    program.kill()
    program.communicate()
    until(lambda: all(map(is_gone, workers)), "the workers had ended")


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_workers_end_with_their_program_also_when_a_fork_of_it_lives(executor: str) -> None:
    program, (fork, *workers) = started("forked", executor)
    program.kill()
    program.wait()
    until(lambda: all(map(is_gone, workers)), "the workers had ended")
    assert not is_gone(fork)
    os.kill(fork, signal.SIGKILL)
    program.communicate()


def started(*arguments: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A program of its own session, after its first batch; and its workers."""
    program = subprocess.Popen(
        [*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert program.stdout is not None
    line = program.stdout.readline()
    if not line:
        pytest.fail(str(program.communicate()))
    return program, json.loads(line)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_control_c_ends_everything_with_one_traceback(executor: str) -> None:
    program, workers = started("endless", executor)
    assert len(workers) == {"thread": 0, "subprocess": 1, "process": 2}[executor]
    os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to all processes
    _, errors = program.communicate(timeout=600)
    assert program.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt")
    until(lambda: all(map(is_gone, workers)), "the workers had ended")


# Memory


@pytest.mark.parametrize("executor", IN_PROCESSES)
@pytest.mark.parametrize(("megabytes", "purpose"), [("0.01", "a batch"), ("0.1", "an answer")])
def test_too_little_shared_memory_is_an_error_that_says_what_to_lower(
    executor: str, megabytes: str, purpose: str
) -> None:
    ran = subprocess.run([*PROGRAM, "limited", executor, megabytes], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0 and ran.stderr == ""
    assert f"there is no shared memory left for {purpose}: 0." in ran.stdout
    assert "MB were needed" in ran.stdout and "smaller batches" in ran.stdout


def test_shared_memory_is_there_before_it_is_used() -> None:
    descriptor = sharing.new_memory(5 << 20, "a test")
    assert os.fstat(descriptor).st_blocks * 512 >= 5 << 20
    os.close(descriptor)


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "times"), [("thread", 1000), ("subprocess", 50), ("process", 50)])
def test_leaving_the_loop_very_often_leaves_nothing_behind(executor: str, times: int) -> None:
    flow = feed(executor)
    seen: list[tuple[int, int, int]] = []
    for number in range(times):
        for _ in flow.epoch(number):
            break
        if number in (times // 5, times - 1):
            gc.collect()
            now = held()
            seen.append((len(now.processes), len(now.threads), now.descriptors))
            memory = psutil.Process().memory_info().rss
            if number != times - 1:
                first_memory = memory
    assert seen[0] == seen[1]
    assert memory - first_memory < 20 * 2**20
    assert checksums(flow, 0) == checksums(feed("thread", 0), 0)
    flow.close()


# Forks


def in_a_fork(work: Callable[[], bool]) -> bool:
    """Whether something is true in a forked process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of forks beside threads
        pid = os.fork()
    if not pid:
        code = 2
        try:
            code = 0 if work() else 1
        except BaseException:  # noqa: BLE001 - shown, and told by the exit code
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_flow_works_in_a_forked_process_and_goes_on_in_the_first(executor: str) -> None:
    expected = [checksums(feed("thread", 0), epoch) for epoch in (0, 1)]
    flow = feed(executor)
    batches = flow.epoch(0)
    found = [checksum(next(batches))]
    workers = held().processes

    def in_the_fork() -> bool:
        with pytest.raises(ps.OptionError, match="begun in another process"):
            next(batches)
        is_same = checksums(flow, 1) == expected[1]
        flow.close()
        return is_same

    assert in_a_fork(in_the_fork)
    assert held().processes == workers  # nobody ended them
    found += [checksum(batch) for batch in batches]
    assert found == expected[0]
    flow.close()


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_idle_workers_are_not_used_by_a_forked_process(executor: str) -> None:
    expected = checksums(feed("thread", 0), 1)
    flow = feed(executor)
    list(flow.epoch(0))

    def in_the_fork() -> bool:
        is_same = checksums(flow, 1) == expected
        flow.close()
        return is_same

    assert in_a_fork(in_the_fork)
    assert checksums(flow, 1) == expected
    flow.close()


# Packs that change under a running flow


@pytest.fixture
def pack(tmp_path: Path) -> ps.Pack:
    return ps.pack(Pictures(200), tmp_path / "one.pack", size="64x64", codec="png", split="train")


def of(pack: ps.Pack, executor: str, **options: Any) -> Flow:
    return ps.Flow(ps.open(pack.path), executor=executor, workers=2, **options).batch(10)  # type: ignore[arg-type]


def shards(pack: ps.Pack) -> list[Path]:
    return sorted(pack.path.glob("shard-*.arrow"))


@pytest.mark.skipif(GUARD is None, reason="the extension that guards mapped files is not built")
@pytest.mark.parametrize("executor", IN_PROCESSES)  # tests/security has threads, in a process of their own
def test_a_pack_that_becomes_shorter_is_an_error_that_names_its_file(pack: ps.Pack, executor: str) -> None:
    flow = of(pack, executor)
    batches = flow.epoch(0)
    next(batches)
    os.truncate(shards(pack)[0], 4096)
    with pytest.raises(ps.DataError, match=r"shard-00000\.arrow: it was cut short"):
        list(batches)
    flow.close()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_pack_that_is_shorter_from_the_beginning_is_an_error(pack: ps.Pack, executor: str) -> None:
    os.truncate(shards(pack)[0], 4096)
    with pytest.raises(ps.PenstockError, match=r"has 4,096 bytes and should have .*penstock verify"):
        next(of(pack, executor).epoch(0))


@pytest.mark.parametrize("executor", ["thread", "subprocess"])
def test_a_pack_that_is_deleted_stays_there_for_those_who_use_it(pack: ps.Pack, executor: str) -> None:
    expected = checksums(of(pack, "thread"))
    flow = of(pack, executor)
    batches = flow.epoch(0)
    found = [checksum(next(batches))]
    shutil.rmtree(pack.path)
    assert [*found, *(checksum(batch) for batch in batches)] == expected
    flow.close()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_shard_that_is_missing_is_named(tmp_path: Path, executor: str) -> None:
    pack = ps.pack(Pictures(300), tmp_path / "two.pack", size="64x64", codec="png", shard_mb=1, split="train")
    shards(pack)[-1].unlink()
    flow = of(pack, executor)
    with pytest.raises(ps.PenstockError, match=rf"{shards(pack)[-1].stem[:-1]}\d.arrow is missing"):
        list(flow)
    flow.close()


def damaged(pack: ps.Pack, sample: int) -> None:
    with shards(pack)[0].open("r+b") as file:
        file.seek(int(pack.columns["offset"][sample]))
        file.write(bytes(int(pack.columns["length"][sample])))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_damaged_sample_is_named(pack: ps.Pack, executor: str) -> None:
    damaged(pack, 57)
    flow = of(pack, executor)
    with pytest.raises(ps.HopError, match=r"sample 57 \(.*57\.png.*decode failed"):
        list(flow)
    flow.close()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_damaged_sample_has_the_same_substitute_everywhere(pack: ps.Pack, executor: str) -> None:
    damaged(pack, 57)
    expected = ps.Flow(ps.open(pack.path), workers=0, on_bad_sample="substitute").batch(10)
    flow = of(pack, executor, on_bad_sample="substitute")
    assert checksums(flow) == checksums(expected)
    assert flow.bad_samples == expected.bad_samples and [bad.index for bad in flow.bad_samples] == [57]
    flow.close()


# kill -9 of the whole program


@pytest.mark.slow
def test_a_program_that_is_killed_anywhere_goes_on_exactly(tmp_path: Path) -> None:
    log, state = tmp_path / "log", tmp_path / "state"
    log.touch()
    rng = np.random.default_rng(0)
    expected = _Expected()
    with subprocess.Popen(
        [*PROGRAM, "forking", str(log), str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        for number in range(KILLS):
            executor = IN_PROCESSES[number // 10 % 2] if number % 10 == 9 else "thread"
            before, place = _lines(log), _place(state)
            _run_and_kill(program, executor, log, len(before) + int(rng.integers(0, 4)), float(rng.random()) * 0.01)
            fresh = _lines(log)[len(before) :]
            assert not fresh or fresh[0][:2] == place, "it did not go on where the state was"
            expected.check(fresh)
        assert program.stdin is not None
        program.stdin.close()
    assert len(_lines(log)) > KILLS


def _lines(log: Path) -> list[tuple[int, ...]]:
    return [tuple(map(int, line.split())) for line in log.read_text().splitlines()]


def _place(state: Path) -> tuple[int, int]:
    """The next batch, by what was written last."""
    if not state.exists():
        return 0, 0
    found = json.loads(state.read_text())
    return found["epoch"], found["batch"]


def _run_and_kill(program: subprocess.Popen[str], executor: str, log: Path, lines: int, delay: float) -> None:
    """Let it make some batches, and kill it at a time that it cannot know."""
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write(executor + "\n")
    program.stdin.flush()
    pid = int(program.stdout.readline())
    until(lambda: len(_lines(log)) >= lines, "some batches were made")
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    assert int(program.stdout.readline()) == signal.SIGKILL


class _Expected:
    """The batches of every epoch, one after the other."""

    def __init__(self) -> None:
        self._flow = feed("thread", 0)
        self._epochs: dict[int, list[int]] = {}

    def check(self, lines: list[tuple[int, ...]]) -> None:
        for one, other in pairwise(lines):
            last = len(self._of(one[0])) - 1
            assert other[:2] == ((one[0] + 1, 0) if one[1] == last else (one[0], one[1] + 1))
        for epoch, number, found in lines:
            assert self._of(epoch)[number] == found

    def _of(self, epoch: int) -> list[int]:
        if epoch not in self._epochs:
            self._epochs[epoch] = checksums(self._flow, epoch)
        return self._epochs[epoch]
