"""Which kind of workers a flow gets, and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import PenstockError, RecipeError
from penstock.flow.making.chains import function_name
from penstock.flow.making.limiting import functions_of, least_limit, limited
from penstock.flow.making.program import Program
from penstock.flow.tuning.cores import cores
from penstock.flow.workers import sharing
from penstock.flow.workers.probing import probe
from penstock.flow.workers.tasks import Executor
from penstock.flow.workers.threads import CallingThread, Threads
from penstock.wording import counted

if TYPE_CHECKING:
    from penstock.flow.plans import FlowOptions
    from penstock.flow.workers.children import Children

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
    from penstock.flow.workers.messages import close_all
    from penstock.flow.workers.sendable import parcel_of

    try:
        close_all(parcel_of(program)[1])
    except RecipeError as error:
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
    from penstock.flow.workers.children import Children  # the first batch of threads does not wait for all of that

    if kind == "process":
        return Children(program, "process", workers, most=least_limit(program), tries_first=tries_first)
    return Children(limited(program), "subprocess", workers, tries_first=tries_first)
