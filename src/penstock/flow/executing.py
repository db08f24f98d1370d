"""Which kind of workers a flow gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.flow.program import Program
from penstock.flow.tasks import Executor
from penstock.flow.threads import CallingThread, Threads
from penstock.flow.tuning import Tuner

if TYPE_CHECKING:
    from penstock.flow.plans import FlowOptions


def executor_for(program: Program, options: FlowOptions, tuner: Tuner) -> Executor:
    """The executor that the user named, or that fits best."""
    if options.workers == 0:
        return CallingThread(program)
    return Threads(program, tuner.settings.workers)
