"""The workers of a flow: started when an epoch begins, and kept for the next one where starting them is slow."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

from penstock.flow.making.layout import Layout
from penstock.flow.making.program import Program
from penstock.flow.plans import FlowOptions
from penstock.flow.workers import sharing
from penstock.flow.workers.executing import Choice, choice_of, executor_for, processes_for
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
