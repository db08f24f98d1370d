"""Threads, threads in another process, and processes: the same bits from each, and nothing left behind."""

from __future__ import annotations

import gc
import itertools
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flow_functions as functions
import penstock as ps
from leftovers import assert_nothing_left, held, until
from made_sources import EveryKind, Numbers, Pictures
from penstock.flow.flow import Flow
from penstock.flow.workers import messages as sharing
from penstock.flow.workers import worker_pool as executing
from penstock.flow.workers.executors import Task
from penstock.flow.workers.processes import KEPT_DESCRIPTORS, Children
from penstock.flow.workers.worker_pool import Choice, Probed, choice_of, probe

EXECUTORS = ("thread", "subprocess", "process")
IN_PROCESSES = ("subprocess", "process")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    gc.collect()
    before = held()
    yield
    assert_nothing_left(before)


def pictures(executor: str = "thread", workers: int = 2, count: int = 50, **options: Any) -> Flow:
    flow = ps.Flow(Pictures(count), seed=3, executor=executor, workers=workers, **options)  # type: ignore[arg-type]
    return flow.shuffle().map(functions.halved, field="image")


def plain(batch: dict[str, Any]) -> dict[str, Any]:
    """A batch as values that do not change any more."""
    return {name: [np.array(one) for one in values] for name, values in batch.items()}


def assert_same(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert list(one) == list(other)
        for name in one:
            for value, expected in zip(one[name], other[name], strict=True):
                assert value.dtype == expected.dtype and np.array_equal(value, expected), name


PLANS = {
    "fixed fields": lambda executor, workers: pictures(executor, workers).map(functions.with_noise).batch(8),
    "loose fields": lambda executor, workers: (
        ps.Flow(EveryKind(30), seed=1, executor=executor, workers=workers).shuffle().batch(7, shapes="ragged")
    ),
    "large loose fields": lambda executor, workers: (
        pictures(executor, workers).map(functions.with_large_text).batch(8, shapes="padded")
    ),
    "whole batches": lambda executor, workers: (
        pictures(executor, workers).batch(8).map(functions.summed, batched=True).prefetch(2)
    ),
    "a mix": lambda executor, workers: ps.mix(
        [pictures(executor, workers), pictures(executor, workers, 20)], [2, 1], seed=5
    ).batch(6),
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(("executor", "workers"), [("thread", 3), ("subprocess", 2), ("process", 1), ("process", 3)])
def test_every_executor_gives_the_same_bits(plan: str, executor: str, workers: int) -> None:
    expected = [plain(batch) for epoch in (0, 1) for batch in PLANS[plan]("thread", 0).epoch(epoch)]
    flow = PLANS[plan](executor, workers)
    assert_same([plain(batch) for epoch in (0, 1) for batch in flow.epoch(epoch)], expected)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_epoch_that_was_left_does_not_disturb_the_next(executor: str) -> None:
    expected = [plain(batch) for batch in pictures(workers=0).batch(4).epoch(1)]
    flow = pictures(executor).batch(4)
    for left_after in (1, 2, 3, 1):
        for number, _ in enumerate(flow.epoch(0), start=1):
            if number == left_after:
                break
        assert_same([plain(batch) for batch in flow.epoch(1)], expected)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_two_epochs_of_a_flow_and_two_flows_run_at_once(executor: str) -> None:
    expected = [[plain(batch) for batch in pictures(workers=0).batch(8).epoch(number)] for number in (0, 1)]
    flow, other = pictures(executor).batch(8), pictures(executor).batch(8)
    rounds = zip(flow.epoch(0), flow.epoch(1), other.epoch(0), strict=True)
    first, second, third = zip(*[[plain(batch) for batch in one] for one in rounds], strict=True)
    assert_same(list(first), expected[0])
    assert_same(list(second), expected[1])
    assert_same(list(third), expected[0])


def test_an_epoch_may_be_collected_as_garbage_by_one_of_its_own_workers(gc_off: None) -> None:
    before, dropped, collected = held(), threading.Event(), threading.Event()

    def collect(value: Any) -> Any:
        if value >= 8:  # the first batch is there
            dropped.wait()
            gc.collect()
            collected.set()
        return value

    flow = ps.Flow(Numbers(40), seed=7, executor="thread", workers=2).map(collect, field="value").batch(4)
    epoch = flow.epoch(0)
    next(epoch)
    ring: list[Any] = [epoch]
    ring.append(ring)
    del epoch, ring
    dropped.set()
    until(collected.is_set, "a worker collected garbage")
    assert_nothing_left(before)


@pytest.fixture
def gc_off() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_batch_that_is_kept_stays_as_it_was_and_may_be_changed(executor: str) -> None:
    flow = pictures(executor, count=60).batch(4)
    kept = list(flow.epoch(0))
    flow.close()
    del flow
    assert_same(
        [plain(batch) for batch in kept], [plain(one) for one in pictures(workers=0, count=60).batch(4).epoch(0)]
    )
    kept[0]["image"][:] = 7
    assert (kept[0]["image"] == 7).all() and not (kept[1]["image"] == 7).all()


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_batches_that_are_kept_need_no_descriptors(executor: str) -> None:
    flow = pictures(executor, count=400).batch(1)
    batches = flow.epoch(0)
    kept = [next(batches)]
    before = held().descriptors
    kept += itertools.islice(batches, 300)
    assert held().descriptors <= before + KEPT_DESCRIPTORS + 8
    kept += batches
    assert held().descriptors <= before and len(kept) == 400
    flow.close()


@pytest.mark.parametrize(("executor", "expected"), [("thread", 1), ("subprocess", 1), ("process", 3)])
def test_functions_run_in_as_many_processes_as_asked(executor: str, expected: int) -> None:
    flow = pictures(executor, 3, count=240).map(functions.with_process).batch(60)
    processes = {int(one) for batch in flow for one in batch["process"]}
    assert len(processes) <= expected and (executor == "thread") == (processes == {os.getpid()})
    started = held().processes
    assert len(started) == (0 if executor == "thread" else expected) and processes - {os.getpid()} <= started
    flow.close()


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_processes_are_kept_between_epochs_until_the_flow_is_closed(executor: str) -> None:
    before = held().processes
    flow = pictures(executor).batch(8)
    list(flow.epoch(0))
    started = held().processes - before
    assert started
    list(flow.epoch(1))
    next(iter(flow.epoch(2)))
    assert held().processes - before == started
    flow.close()
    assert held().processes == before
    assert len(list(flow.epoch(0))) == 7  # and it can be used again


def test_processes_end_with_the_last_reference_to_a_flow() -> None:
    flow = pictures("process").batch(8)
    list(flow.epoch(0))
    before = held().processes
    del flow
    gc.collect()
    until(lambda: not held().processes & before, "the processes had ended")


@pytest.mark.parametrize("kind", IN_PROCESSES)
def test_workers_may_become_more_and_fewer_while_they_work(kind: Any) -> None:
    program = pictures().map(functions.with_process).batch(8).running.program
    children = Children(program, kind, 1)
    rows = program.batch.size
    memory = np.frombuffer(children.make_memory(0, program.layout.slot_bytes(rows)), np.uint8)
    arrays = program.layout.arrays(memory, rows)
    workers = (1, 3, 2, 1, 4)
    for ticket, count in enumerate(workers):
        children.resize(count)
        assert children.workers == count
        for row in range(rows):
            children.submit(Task(ticket, 0, 0, row, row + 1, row, 0), arrays)
        done = [children.next_done() for _ in range(rows)]
        assert sorted(one.task.row for one in done) == list(range(rows)) and all(one.error is None for one in done)
        assert arrays["index"].tolist() == program.draws(0, 0, rows).index.tolist()
        arrays["index"][:] = -1
    assert not children.has_done()
    children.close()


def test_a_process_that_is_no_longer_needed_ends_also_when_its_epoch_is_left(tmp_path: Path) -> None:
    gate = functions.Gate(tmp_path, first=0)
    flow = ps.Flow(Pictures(8)).map(gate).batch(8)
    (tmp_path / "open").touch()
    program = flow.running.program  # makes the first sample, for which the gate is open
    (tmp_path / "open").unlink()
    before = held().processes
    children = Children(program, "process", 2)
    memory = np.frombuffer(children.make_memory(0, program.layout.slot_bytes(8)), np.uint8)
    for row in range(4):
        children.submit(Task(0, 0, 0, row, row + 1, row, 0), program.layout.arrays(memory, 8))
    until(lambda: len(set(gate.waiting) - {os.getpid()}) == 2, "both were at work")
    children.resize(1)
    children.leave()
    (tmp_path / "open").touch()
    until(lambda: len(held().processes - before) == 1, "one had ended")
    assert children.is_sound
    children.close()


# Functions


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_a_function_that_cannot_be_sent_is_named_before_anything_starts(executor: str) -> None:
    lock, before = threading.Lock(), held().processes

    def locked(sample: dict[str, Any]) -> dict[str, Any]:
        with lock:
            return sample

    with pytest.raises(
        ps.OptionError, match=r"step 2, map\(.*locked\): this function cannot be sent.*inside the"
    ) as caught:
        next(iter(pictures(executor).map(locked).batch(8)))
    assert 'executor="thread"' in str(caught.value) and "lock" in str(caught.value)
    assert held().processes == before


def test_a_source_that_cannot_be_sent_is_named() -> None:
    class Locked(Pictures):
        def __init__(self) -> None:
            super().__init__(10)
            self.lock = threading.Lock()

    with pytest.raises(ps.OptionError, match="the source Locked cannot be sent"):
        next(iter(ps.Flow(Locked(), executor="process", workers=2).batch(5)))


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_a_result_that_cannot_be_sent_is_an_error_that_says_so(executor: str) -> None:
    def with_lock(batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, "lock": threading.Lock()}

    flow = pictures(executor).batch(8).map(with_lock, batched=True)
    with pytest.raises(ps.OptionError, match="what the functions of this flow made cannot be sent"):
        next(iter(flow))
    flow.close()


@pytest.mark.parametrize("executor", IN_PROCESSES)
def test_functions_and_classes_of_a_script_work_in_processes(executor: str, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def brighter(image):\n    return image + 1\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys; sys.path += sys.argv[2:]\n"
        "import penstock as ps\n"
        "from made_sources import Pictures\n"
        "from beside import brighter\n"
        "OFFSET = 3\n"
        "class Pair:\n"
        "    def __init__(self, label): self.label = label\n"
        "class Mine(Pictures):\n"
        "    pass\n"
        "def function(batch):\n"
        "    return {**batch, 'shifted': batch['label'] + OFFSET, 'pair': Pair(batch['label'])}\n"
        "flow = ps.Flow(Mine(6), executor=sys.argv[1], workers=2).map(brighter, field='image').batch(6)\n"
        "for batch in flow.map(function, batched=True):\n"
        "    print(batch['shifted'].tolist(), isinstance(batch['pair'], Pair))\n"
    )
    tests = Path(__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, str(script), executor, str(tests)], capture_output=True, text=True, cwd="/", timeout=600
    )
    assert (ran.stdout, ran.stderr) == ("[3, 4, 5, 3, 4, 5] True\n", "")


def test_a_module_that_workers_cannot_import_is_named(tmp_path: Path) -> None:
    import types

    module = types.ModuleType("only_here")
    exec("def function(sample):\n    return sample", module.__dict__)
    sys.modules["only_here"] = module
    try:
        flow = pictures("process").map(module.function).batch(8)
        with pytest.raises(
            ps.OptionError, match="could not load this flow: ModuleNotFoundError.*only_here.*importable"
        ):
            next(iter(flow))
    finally:
        del sys.modules["only_here"]


def test_at_most_so_many_threads_call_a_function_as_its_step_says() -> None:
    crowd = functions.Crowd()
    list(pictures("thread", 4).map(crowd, workers=2).batch(16))
    assert 1 <= crowd.most <= 2
    crowd = functions.Crowd()
    list(pictures("thread", 4).batch(4).map(crowd, batched=True, workers=1))
    assert crowd.most == 1


@pytest.mark.parametrize(("executor", "expected"), [("process", 1), ("subprocess", 1)])
def test_a_limited_function_runs_in_so_many_processes(executor: str, expected: int) -> None:
    before = held().processes
    flow = pictures(executor, 3).map(functions.with_process, workers=1).batch(8)
    assert len({int(one) for batch in flow for one in batch["process"]}) == expected
    assert len(held().processes - before) == expected
    flow.close()


def test_a_limited_function_is_still_random_and_the_same() -> None:
    flow = pictures("thread", 3).map(functions.with_noise, workers=1).batch(8)
    expected = [plain(batch) for batch in pictures(workers=0).map(functions.with_noise).batch(8).epoch(0)]
    assert_same([plain(batch) for batch in flow.epoch(0)], expected)


# executor="auto"


def chosen(flow: Flow) -> Choice:
    return choice_of(flow.running.program, flow.options)


def probed(monkeypatch: pytest.MonkeyPatch, efficiency: float, cores: int = 4) -> None:
    monkeypatch.setattr(executing, "probe", lambda program: Probed(8, 0.1, efficiency))
    monkeypatch.setattr(executing, "cores", lambda: cores)


def test_own_steps_run_in_threads_without_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executing, "probe", lambda program: pytest.fail("nothing to measure"))
    flow = ps.Flow(Pictures(10)).map(ps.augment.CenterCrop(8)).batch(5)
    assert chosen(flow).kind == "thread"


@pytest.mark.parametrize(
    ("efficiency", "kind"), [(0.5, "process"), (0.74, "process"), (0.76, "thread"), (1.0, "thread")]
)
def test_functions_decide_by_what_a_second_thread_is_worth(
    monkeypatch: pytest.MonkeyPatch, efficiency: float, kind: str
) -> None:
    probed(monkeypatch, efficiency)
    choice = chosen(pictures("auto", 4).batch(8))
    assert choice.kind == kind
    assert f"halved, two threads do {2 * efficiency:.2f} times the work of one" in choice.reason


def test_an_epoch_that_is_over_at_once_is_not_worth_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    probed(monkeypatch, 0.5)
    choice = chosen(pictures("auto", 4, count=5).batch(5))
    assert choice.kind == "thread" and "ends before processes would have started" in choice.reason
    assert chosen(pictures("auto", 4, count=5).repeat().batch(5)).kind == "process"


def test_a_pinned_executor_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executing, "probe", lambda program: pytest.fail("nothing to measure"))
    assert chosen(pictures("subprocess").batch(8)) == ("subprocess", "pinned")


def test_one_core_and_python_without_a_gil_have_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    probed(monkeypatch, 0.5, cores=1)
    assert chosen(pictures("auto", 4).batch(8)).kind == "thread"
    probed(monkeypatch, 0.5)
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert chosen(pictures("auto", 4).batch(8)).kind == "thread"


def test_what_cannot_be_sent_runs_in_threads_when_nothing_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    probed(monkeypatch, 0.5)
    lock = threading.Lock()
    flow = pictures("auto").map(lambda sample: {**sample, "is_locked": lock.locked()}).batch(8)
    choice = chosen(flow)
    assert choice.kind == "thread" and "cannot be sent" in choice.reason
    assert len(list(flow)) == 7


def test_without_nameless_memory_there_are_threads_only(monkeypatch: pytest.MonkeyPatch) -> None:
    probed(monkeypatch, 0.5)
    monkeypatch.delattr(os, "memfd_create")
    assert not sharing.is_available()
    assert chosen(pictures("auto", 4).batch(8)).kind == "thread"
    with pytest.raises(ps.OptionError, match="executor='process' needs Linux"):
        next(iter(pictures("process").batch(8)))


def test_the_probe_sees_whether_a_function_holds_the_gil() -> None:
    def efficiency(function: Any) -> float:
        program = ps.Flow(Pictures(64)).map(function).batch(32).running.program
        found = [probed.efficiency for _ in range(5) if (probed := probe(program)) is not None]
        return statistics.median(found)  # one of them may meet a busy machine

    assert efficiency(functions.holding_the_gil) < 0.75 <= efficiency(functions.not_holding_the_gil)


def test_the_probe_leaves_failures_to_the_run() -> None:
    flow = pictures("auto", 2).map(functions.dividing_by_zero).batch(8)
    with pytest.raises(ps.HopError, match="ZeroDivisionError"):
        list(flow)


def test_an_empty_source_needs_no_probe() -> None:
    assert probe(ps.Flow(Pictures(0)).map(functions.with_process).batch(4).running.program) is None
