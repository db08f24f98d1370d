"""The workers of a flow: which kind it gets and why, started with an epoch and kept for the next one."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from penstock.errors import OptionError, PenstockError
from penstock.flow.making.chains import function_name
from penstock.flow.making.layout import Layout, Rows
from penstock.flow.making.limiting import functions_of, least_limit, limited
from penstock.flow.making.program import Program
from penstock.flow.measuring.waits import CoreWait
from penstock.flow.plans import FlowOptions
from penstock.flow.tuning.cores import cores
from penstock.flow.workers import messages as sharing
from penstock.flow.workers.executors import CallingThread, Executor, Threads
from penstock.flow.workers.interrupts import interrupts_kept
from penstock.wording import counted

if TYPE_CHECKING:
    from penstock.flow.plans import FlowOptions
    from penstock.flow.workers.processes import Children


# Do threads help here? The same few samples in one thread and in two at once; what holds the GIL does not gain.


ONE_THREAD_SECONDS = 0.03  # together with twice as much in two threads: about a tenth of a second
MOST_SAMPLES = 256


class Probed(NamedTuple):
    """What was measured: seconds a sample in one thread, and how much of two threads two threads are worth."""

    samples: int
    sample_seconds: float
    efficiency: float


class Spent(NamedTuple):
    """The time of a thread, without that in which it had work and no core: other programs are no held GIL."""

    seconds: float
    cpu_seconds: float

    @property
    def blocked_seconds(self) -> float:
        return max(self.seconds - self.cpu_seconds, 0.0)


def probe(program: Program) -> Probed | None:
    """Measure; None where there is nothing to measure. What the samples raise is raised.

    A thread that waits for the GIL is blocked. Where two threads are blocked no longer than one is by itself (disks,
    networks), nothing is lost. On an idle machine this is the rate of two, divided by twice the rate of one.
    """
    length = program.order.length
    most = min(MOST_SAMPLES, program.batch.size, MOST_SAMPLES if length is None else length)
    if not most:
        return None
    _make(program, 1)  # the first one opens files and imports modules
    one = min(_spent(program, 1, threads=1), _spent(program, 1, threads=1))
    samples = max(min(int(ONE_THREAD_SECONDS / max(one.seconds, 1e-6)), most), 1)
    if samples > 1:
        one = _spent(program, samples, threads=1)
    two = _spent(program, samples, threads=2)
    efficiency = (two.cpu_seconds + one.blocked_seconds) / max(two.seconds, 1e-9)
    return Probed(samples, one.seconds / samples, min(efficiency, 1.0))


def _make(program: Program, samples: int) -> None:
    """What a worker does with the first samples of an epoch."""
    if program.makes_whole_batches:
        program.whole(0, 0, 0, samples)
    else:
        program.fill(0, 0, samples, Rows.fresh(program.layout, samples).arrays)


def _spent(program: Program, samples: int, threads: int) -> Spent:
    """What the slower one of these threads took for the samples, with the CPU time of one of them on average."""
    found: list[Spent] = []
    errors: list[BaseException] = []
    starts: list[float] = []
    # One start for all: who has to wait for the GIL before the first line of its own is blocked already.
    starting_line = threading.Barrier(threads, action=lambda: starts.append(time.perf_counter()))

    def work() -> None:
        try:
            with CoreWait() as core_wait:
                delayed, cpu = core_wait.seconds(), time.thread_time()
                starting_line.wait()
                _make(program, samples)
                seconds = time.perf_counter() - starts[0] - (core_wait.seconds() - delayed)
                found.append(Spent(seconds, time.thread_time() - cpu))
        except BaseException as error:  # noqa: BLE001 - raised below, where it is waited for
            errors.append(error)

    workers = [threading.Thread(target=work, name="penstock-probe", daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    return Spent(max(one.seconds for one in found), sum(one.cpu_seconds for one in found) / threads)


# Which kind of workers a flow gets, and why.


THREADS_PAY = 0.75  # two threads that do at least so much of twice the work of one
SHORT_EPOCH_SECONDS = 1.0  # about what it takes to start processes


class Choice(NamedTuple):
    """A kind of workers, and the reason in words."""

    kind: str
    reason: str


def choice_of(program: Program, options: FlowOptions) -> Choice:
    """The kind that the user named, or that fits best: threads, unless functions of the user hold the GIL."""
    if options.executor != "auto":
        return Choice(options.executor, "pinned")
    if options.workers in (0, 1):
        return Choice("thread", f"workers={options.workers}")
    functions = [function_name(step.function) for step in functions_of(program)]
    if not functions:
        return Choice("thread", "Penstock's own steps do not hold the GIL")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return Choice("thread", "this Python has no GIL")
    if cores() < 2:
        return Choice("thread", "there is one core")
    if not sharing.is_available():
        return Choice("thread", "this system has no shared memory without a name")
    return _measured(program, functions)


def _measured(program: Program, functions: list[str]) -> Choice:
    try:
        probed = probe(program)
    except PenstockError as error:  # it is raised again, with all that belongs to it, when its batch is made
        return Choice("thread", f"a first sample failed, so nothing was measured: {error}")
    if probed is None:
        return Choice("thread", "there are no samples")
    measured = (
        f"with {', '.join(functions)}, two threads do {2 * probed.efficiency:.2f} times the work of one "
        f"({counted(probed.samples, 'sample')}, {probed.sample_seconds * 1e3:.2f} ms each)"
    )
    if probed.efficiency >= THREADS_PAY:
        return Choice("thread", measured)
    length = program.order.length
    if length is not None and length * probed.sample_seconds < SHORT_EPOCH_SECONDS:
        return Choice("thread", f"{measured}, but an epoch ends before processes would have started")
    from penstock.flow.workers.messages import close_all, parcel_of

    try:
        close_all(parcel_of(program)[1])
    except OptionError as error:
        return Choice("thread", f"{measured}, but {error}")
    return Choice("process", measured)


def executor_for(program: Program, choice: Choice, workers: int) -> Executor:
    """Workers of the chosen kind; none at all for `workers=0`."""
    if workers == 0:
        return CallingThread(program)
    if choice.kind == "thread":
        return Threads(limited(program), workers)
    return processes_for(program, choice.kind, workers)


def processes_for(program: Program, kind: str, workers: int, *, tries_first: bool = False) -> Children:
    """Worker processes; one of them can try the first sample, where that is not to be done here."""
    from penstock.flow.workers.processes import Children  # the first batch of threads does not wait for all of that

    if kind == "process":
        return Children(program, "process", workers, most=least_limit(program), tries_first=tries_first)
    return Children(limited(program), "subprocess", workers, tries_first=tries_first)


class Workers:
    """Lends workers to epochs. Processes are kept until the flow is closed, is garbage, or the program ends."""

    def __init__(self, options: FlowOptions) -> None:
        self._options = options
        self.choice: Choice | None = None  # made when the first epoch begins
        self._idle: list[Children] = []
        self._all: list[Children] = []
        self._trying: list[Children] = []
        self._tried: Children | None = None  # they have made the first sample, and wait for the first epoch
        self._are_outdated = False
        weakref.finalize(self, _close_all, self._all)

    def first_layout(self, program: Program, workers: int, *, stay: bool) -> Layout:
        """The layout of the first sample, made where workers are: a crash in a process of theirs is survived.

        With `stay` the processes wait for the epoch that begins. The program must be as it will run then.
        """
        if self._options.executor not in ("process", "subprocess") or not workers or not sharing.is_available():
            return program.first_layout()
        children = processes_for(program, self._options.executor, workers if stay else 1, tries_first=True)
        self._all.append(children)
        self._trying.append(children)
        is_tried = False
        try:
            layout = children.first_layout()
            is_tried = True
            return layout
        finally:
            with interrupts_kept():
                self._trying.remove(children)
                if is_tried and stay:
                    self._tried = children
                else:
                    self._end(children)

    @contextmanager
    def lent(self, program: Program, workers: int) -> Iterator[Executor]:
        """Workers for one epoch. Two epochs at once have workers of their own."""
        if self.choice is None:
            self.choice = choice_of(program, self._options)
        executor = self._arranged(program) or self._kept(workers) or self._new(program, workers)
        self._are_outdated = False
        owner = os.getpid()
        try:
            yield executor
        finally:
            if os.getpid() == owner:  # in a forked process there are no workers to end
                with interrupts_kept():
                    self._take_back(executor)

    def close(self) -> None:
        """End those that nobody uses, and those that try a first sample."""
        with interrupts_kept():
            for children in list(self._trying):
                children.close()
            tried, self._tried = self._tried, None
            if tried is not None:
                self._end(tried)
            while self._idle:
                self._end(self._idle.pop())

    def renew(self) -> None:
        """What workers have a copy of has changed: no processes are kept for the next epoch."""
        self.close()
        self._are_outdated = True

    def _arranged(self, program: Program) -> Children | None:
        """Those that tried the first sample, with the layout that it gave."""
        children, self._tried = self._tried, None
        if children is not None:
            children.arrange(program.layout)
        return children

    def _kept(self, workers: int) -> Children | None:
        while self._idle:
            children = self._idle.pop()
            if children.is_sound:
                if children.workers != workers:
                    children.resize(workers)
                return children
            self._end(children)
        return None

    def _new(self, program: Program, workers: int) -> Executor:
        assert self.choice is not None
        executor = executor_for(program, self.choice, workers)
        if _can_stay(executor):
            self._all.append(executor)
        return executor

    def _take_back(self, executor: Executor) -> None:
        if not _can_stay(executor):
            executor.close()
        elif executor.is_sound and not self._idle and not self._are_outdated:
            self._idle.append(executor)
            executor.leave()
        else:
            self._end(executor)

    def _end(self, children: Children) -> None:
        children.close()
        if children in self._all:
            self._all.remove(children)


def _can_stay(executor: Executor) -> TypeGuard[Children]:
    """Whether workers can be left between epochs and taken up again: processes, whose start is slow."""
    return hasattr(executor, "leave")


def _close_all(children: list[Children]) -> None:
    with interrupts_kept():
        for one in children:
            one.close()
