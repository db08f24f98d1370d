"""`map(workers=n)`: at most n calls of a function at once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.flow.making.chains import Chain, Link
from penstock.flow.making.program import Program
from penstock.flow.steps import Function, Map


class Limited:
    """A function that at most so many threads of a process call at once."""

    def __init__(self, function: Function, most: int) -> None:
        functools.update_wrapper(self, function)
        self.function, self.most = function, most
        self._turns = threading.BoundedSemaphore(most)

    def __call__(self, *values: Any, **more: Any) -> Any:
        with self._turns:
            return self.function(*values, **more)

    def __reduce__(self) -> tuple[type[Limited], tuple[Function, int]]:
        return type(self), (self.function, self.most)


def limited(program: Program) -> Program:
    """The same program, whose functions are called by as many workers at once as their steps say."""
    if least_limit(program) is None:
        return program
    leaves = tuple(replace(leaf, chain=_limited(leaf.chain)) for leaf in program.leaves)
    return replace(program, leaves=leaves, batch_chain=_limited(program.batch_chain))


def least_limit(program: Program) -> int | None:
    """The smallest number of calls at once that a step of the program allows; None where there is no limit."""
    return min((step.workers for step in functions_of(program) if step.workers is not None), default=None)


def functions_of(program: Program) -> Iterator[Map]:
    """The steps that are functions of the user."""
    for chain in (*(leaf.chain for leaf in program.leaves), program.batch_chain):
        yield from (link.step for link in chain if isinstance(link.step, Map))


def _limited(chain: Chain) -> Chain:
    return tuple(map(_limited_link, chain))


def _limited_link(link: Link) -> Link:
    step = link.step
    if not isinstance(step, Map) or step.workers is None:
        return link
    return replace(link, step=replace(step, function=Limited(step.function, step.workers)))
