"""close() ends what is under way and says so; Ctrl-C is never lost while something is ended."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from leftovers import assert_nothing_left, held, until
from made_sources import Pictures

EXECUTORS = ("thread", "subprocess", "process")
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    gc.collect()
    before = held()
    yield
    assert_nothing_left(before)


def pictures(executor: str, **options: Any) -> ps.Flow:
    return ps.Flow(Pictures(32), executor=executor, workers=2, **options).batch(2, shapes="ragged")  # type: ignore[arg-type]


def our_processes_and_threads() -> list[Any]:
    return [*held().processes, *held().threads]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_close_ends_an_epoch_under_way_and_its_iterator_says_so(executor: str) -> None:
    flow = pictures(executor)
    before = held()
    batches = iter(flow)
    next(batches)
    flow.close()
    assert held().processes <= before.processes and held().threads <= before.threads
    with pytest.raises(ps.OptionError, match="closed while an epoch was under way"):
        next(batches)
    assert len(list(flow.epoch(0))) == 16  # the flow itself can be used again
    flow.close()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_epoch_that_was_used_up_leaves_nothing_after_close(executor: str) -> None:
    flow = pictures(executor)
    before = held()
    batches = iter(flow)
    for _ in range(16):
        next(batches)
    flow.close()
    assert next(batches, None) is None
    assert held().processes <= before.processes and held().threads <= before.threads


def test_an_iterator_that_waits_in_another_thread_is_told() -> None:
    release, entered = threading.Event(), threading.Event()

    def waiting(sample: dict[str, Any]) -> dict[str, Any]:
        entered.set()
        release.wait()
        return sample

    flow = ps.Flow(Pictures(8), executor="thread", workers=1).map(waiting).batch(2, shapes="padded")
    release.set()
    batches = iter(flow)
    next(batches)
    release.clear()
    entered.clear()
    raised: list[BaseException] = []

    def consume() -> None:
        try:
            for _ in batches:
                pass
        except ps.OptionError as error:
            raised.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    entered.wait()
    closer = threading.Thread(target=flow.close)
    closer.start()
    until(lambda: flow.running._closings == 1, "close was called")
    release.set()
    closer.join()
    consumer.join()
    assert "closed while an epoch was under way" in str(raised[0])


def test_close_ends_a_stream_under_way() -> None:
    flow = ps.Flow(ps.from_generator(lambda: ({"value": number} for number in range(100))), workers=2).batch(2)
    before = held()
    batches = iter(flow)
    next(batches)
    flow.close()
    assert held().threads <= before.threads
    with pytest.raises(ps.OptionError, match="closed while an epoch was under way"):
        next(batches)


INTERRUPTED = """
import gc, os, signal, sys, threading
import penstock as ps
from made_sources import Pictures
from penstock.flow.workers import processes as worker_process
from penstock.flow.workers import executors as threads

def interrupting(call):
    def called(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return call(*arguments)
    return called

executor, way = sys.argv[1:]
if __name__ == "__main__":
    flow = ps.Flow(Pictures(32), executor=executor, workers=1).batch(2, shapes="ragged")
    batches = iter(flow)
    next(batches)
    if way == "idle":
        batches.close()
    threads.Threads.close = interrupting(threads.Threads.close)
    worker_process.WorkerProcess.wait = interrupting(worker_process.WorkerProcess.wait)
    worker_process.WorkerProcess.send = interrupting(worker_process.WorkerProcess.send)
    try:
        del batches, flow
        gc.collect()
        threading.Event().wait(30)
        print("lost")
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize(("executor", "way"), [("process", "idle"), ("process", "under way"), ("thread", "under way")])
def test_control_c_while_a_flow_is_collected_is_not_lost(executor: str, way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, executor, way], cwd=TESTS, capture_output=True, text=True, timeout=600
    )
    assert done.stdout.strip() == "interrupted", done.stderr
    assert "Exception ignored" not in done.stderr
