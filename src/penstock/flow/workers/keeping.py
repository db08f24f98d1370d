"""The workers of a flow: started when an epoch begins, and kept for the next one where starting them is slow."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

from penstock.flow.making.program import Program
from penstock.flow.plans import FlowOptions
from penstock.flow.workers.executing import Choice, choice_of, executor_for
from penstock.flow.workers.interrupts import interrupts_kept
from penstock.flow.workers.tasks import Executor

if TYPE_CHECKING:
    from penstock.flow.workers.children import Children


class Workers:
    """Lends workers to epochs. Processes are kept until the flow is closed, is garbage, or the program ends."""

    def __init__(self, options: FlowOptions) -> None:
        self._options = options
        self.choice: Choice | None = None  # made when the first epoch begins
        self._idle: list[Children] = []
        self._all: list[Children] = []
        self._are_outdated = False
        weakref.finalize(self, _close_all, self._all)

    @contextmanager
    def lent(self, program: Program, workers: int) -> Iterator[Executor]:
        """Workers for one epoch. Two epochs at once have workers of their own."""
        if self.choice is None:
            self.choice = choice_of(program, self._options)
        executor = self._kept(workers) or self._new(program, workers)
        self._are_outdated = False
        owner = os.getpid()
        try:
            yield executor
        finally:
            if os.getpid() == owner:  # in a forked process there are no workers to end
                with interrupts_kept():
                    self._take_back(executor)

    def close(self) -> None:
        """End those that nobody uses."""
        with interrupts_kept():
            while self._idle:
                self._end(self._idle.pop())

    def renew(self) -> None:
        """What workers have a copy of has changed: no processes are kept for the next epoch."""
        self.close()
        self._are_outdated = True

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
