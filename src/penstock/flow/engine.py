"""One running epoch: tasks go out, answers come in, batches leave in order.

    next batch ──► slot ──► tasks (ranges of its positions) ──► workers write into the slot ──► all done? ──► deliver

Everything here runs in the thread of the consumer, between two batches. While the consumer is busy the workers go
through the tasks that were handed out before: as many batches as `prefetch` allows and the budget has room for.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from penstock.errors import OptionError
from penstock.flow.budget import Allowance, free_bytes
from penstock.flow.making.layout import collated
from penstock.flow.making.program import BadSample, Program
from penstock.flow.measuring.metrics import HopCost, Metrics
from penstock.flow.order.batches import Dealt, Schedule
from penstock.flow.slots import Returned, SlotRing
from penstock.flow.tuning.allocating import MOST_PREFETCH, Settings
from penstock.flow.tuning.tuner import Tuner
from penstock.flow.workers.executors import Arrays, Done, Executor, Task
from penstock.samples import Store

# Cold data: the order is known ahead, so the system is asked for the bytes of the next batches in time.


LOOKED_AT = 64  # samples whose pages are looked at to tell whether data is in memory
WARM = 0.98  # from this share on nothing is asked for
MOST_AHEAD = 256 * 2**20  # bytes; a disk of 2 GB/s reads them in an eighth of a second
SHARE_OF_MEMORY = 0.8  # a pack above this share of free memory gives its pages back


class Lookahead:
    """Asks for the bytes of batches before workers need them; does nothing where all is in memory already."""

    def __init__(self, program: Program, batches: Schedule, most_bytes: int) -> None:
        self._program, self._batches = program, batches
        self._most = min(most_bytes, MOST_AHEAD)
        self._next = 0
        self._asked: dict[int, int] = {}  # bytes by number of the batch
        self.is_active = any(_is_cold(leaf.source) for leaf in program.leaves)

    def reached(self, epoch: int, number: int) -> None:
        """Tasks of this batch go out now: ask for what comes after, within the byte limit."""
        if not self.is_active:
            return
        self._asked = {batch: size for batch, size in self._asked.items() if batch > number}
        self._next = max(self._next, number + 1)
        count = self._batches.count
        while sum(self._asked.values()) < self._most and (count is None or self._next < count):
            self._asked[self._next] = max(self._ask(epoch, self._next), 1)
            self._next += 1

    def _ask(self, epoch: int, number: int) -> int:
        dealt = self._batches.at(epoch, number)
        draws = self._program.draws(dealt.epoch, dealt.start, dealt.stop)
        total = 0
        for member in np.flatnonzero(np.bincount(draws.member)).tolist():
            base, indices, _ = self._program.leaves[member].source.images_at(draws.index[draws.member == member])
            total += base.will_need(indices)
        return total


def _is_cold(source: Store) -> bool:
    """Whether some of a source's bytes are on the disk and not in memory, by looking at a few."""
    if not len(source):
        return False
    some = np.linspace(0, len(source) - 1, min(LOOKED_AT, len(source))).astype(np.int64)
    base, indices, _ = source.images_at(some)
    return base.resident_share(indices) < WARM


def gives_back(source: Store) -> bool:
    """Whether pages are given back after use: where a pack is larger than memory."""
    base, _, _ = source.images_at(np.zeros(0, np.int64))
    return base.bytes is not None and base.bytes > free_bytes() * SHARE_OF_MEMORY


@dataclass
class Pending:
    """A batch on its way."""

    dealt: Dealt
    arrays: Arrays
    waiting: int  # tasks without an answer
    parts: dict[int, Done] = field(default_factory=dict)  # by first row

    @property
    def rows(self) -> int:
        return self.dealt.stop - self.dealt.start


class Delivery(NamedTuple):
    """A finished batch, and what was bad in it."""

    batch: dict[str, Any]
    bad: tuple[BadSample, ...]
    rows: int
    waited_seconds: float = 0.0  # since it was asked for

    @property
    def bytes(self) -> int:
        return sum(getattr(values, "nbytes", 0) for values in self.batch.values())


class Engine:
    """Runs the batches of one epoch from some number on."""

    def __init__(
        self,
        program: Program,
        batches: Schedule,
        executor: Executor,
        allowance: Allowance,
        tuner: Tuner,
        metrics: Metrics,
        returned: Returned,
    ) -> None:
        self._program, self._batches, self._executor = program, batches, executor
        self._tuner, self._metrics = tuner, metrics
        rows = 0 if program.makes_whole_batches else batches.deal.most_rows
        self._allowance = allowance
        self._ring = SlotRing(program.layout, rows, allowance, executor.make_memory, returned)
        self._lookahead = Lookahead(program, batches, allowance.limit // 4)
        self._window: deque[Pending] = deque()
        self._by_ticket: dict[int, Pending] = {}
        self._tickets = 0
        self._process = os.getpid()
        self._epoch = 0

    def run(self, epoch: int, first: int) -> Generator[Delivery, None, None]:
        """The batches of an epoch in order, from number `first`."""
        numbers = self._batches.numbers(first)
        self._epoch = epoch
        self._tuner.started(self._rows_to_share(), self._most_prefetch())
        try:
            self._top_up(epoch, numbers)
            while self._window:
                delivery = self._next_delivery()
                rows, waited, left = delivery.rows, delivery.waited_seconds, time.perf_counter()
                yield delivery
                del delivery  # else this frame keeps the slot while the user has dropped the batch
                self._used(rows, waited, time.perf_counter() - left)
                self._check_process()
                self._top_up(epoch, numbers)
        finally:
            self._close()

    def _top_up(self, epoch: int, numbers: Iterator[int]) -> None:
        """Hand out tasks for as many batches as the settings allow."""
        settings = self._tuner.settings
        while len(self._window) < settings.prefetch + 1:
            if self._window and not self._batches.is_ready:
                return
            taken = self._ring.take()
            if taken is None:
                if not self._window:
                    raise OptionError(self._no_room())
                return
            slot, arrays = taken
            number = None
            try:
                number = next(numbers, None)
            finally:
                if number is None:  # at the end, or a stream failed
                    self._ring.handed_over()
            if number is None:
                return
            self._hand_out(number, self._batches.at(epoch, number), slot.number, arrays, settings)
            self._lookahead.reached(epoch, number)

    def _is_shared(self, number: int, workers: int) -> bool:
        """Whether all workers share a batch: the first, and as many at the end as there are workers."""
        count = self._batches.count
        return not self._tickets or (count is not None and number >= count - workers)

    def _hand_out(self, number: int, dealt: Dealt, slot: int, arrays: Arrays, settings: Settings) -> None:
        rows = dealt.stop - dealt.start
        step = (
            max(rows, 1)
            if self._program.makes_whole_batches
            else settings.rows_of_task(rows, is_shared=self._is_shared(number, settings.workers))
        )
        tasks = [
            Task(
                self._tickets,
                dealt.epoch,
                dealt.number,
                start,
                min(start + step, dealt.stop),
                start - dealt.start,
                slot,
            )
            for start in self._task_starts(dealt, step)
        ]
        pending = Pending(dealt, arrays, len(tasks))
        self._window.append(pending)
        self._by_ticket[self._tickets] = pending
        self._tickets += 1
        for task in tasks:
            self._executor.submit(task, arrays)

    def _task_starts(self, dealt: Dealt, step: int) -> range:
        """Where tasks begin; functions on whole batches see an empty share too."""
        least = dealt.start + 1 if self._program.makes_whole_batches else dealt.start
        return range(dealt.start, max(dealt.stop, least), step)

    def _next_delivery(self) -> Delivery:
        """Wait until the next batch is complete; answers for later ones are noted on the way."""
        wall, cpu = time.perf_counter(), time.thread_time()
        before = None if self._executor.workers else self._metrics.work()
        while self._executor.has_done():
            self._note(self._executor.next_done())
        ready = sum(not one.waiting for one in self._window)
        while self._window[0].waiting:
            self._note(self._executor.next_done())
        delivery = self._deliver(self._window.popleft())
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        here = HopCost(delivery.rows, cpu, max(wall - cpu, 0.0), delivery.bytes)
        if before is not None:  # the samples were made in this thread just now, and are counted already
            work = self._metrics.work()
            here.cpu_seconds = max(cpu - (work.cpu_seconds - before.cpu_seconds), 0.0)
            here.wait_seconds = max(wall - cpu - (work.wait_seconds - before.wait_seconds), 0.0)
        self._metrics.delivered(here, ready, wall)
        return delivery._replace(waited_seconds=wall)

    def _used(self, rows: int, waited_seconds: float, consumer_seconds: float) -> None:
        """The consumer is back."""
        self._metrics.used(consumer_seconds)
        self._tuner.delivered(
            self._executor,
            self._metrics,
            samples=rows,
            waited_seconds=waited_seconds,
            consumer_seconds=consumer_seconds,
        )
        if self._metrics.log is not None:
            self._metrics.log.batch_used(self._epoch, self._report)

    def _note(self, done: Done) -> None:
        pending = self._by_ticket[done.task.ticket]
        pending.parts[done.task.row] = done
        pending.waiting -= 1
        if not pending.waiting:
            del self._by_ticket[done.task.ticket]
        if done.made is not None:
            self._metrics.made(done.made.costs, done.task.stop - done.task.start)

    def _deliver(self, pending: Pending) -> Delivery:
        self._ring.handed_over()
        parts = [pending.parts[row] for row in sorted(pending.parts)]
        for part in parts:
            if part.error is not None:
                raise part.error
        made = [part.made for part in parts if part.made is not None]
        bad = tuple(sample for part in made for sample in part.bad)
        if len(made) == 1 and made[0].batch is not None:
            return Delivery(made[0].batch, bad, pending.rows)
        arrays = {name: array[: pending.rows] for name, array in pending.arrays.items()}
        loose = {name: [value for part in made for value in part.loose[name]] for name in self._program.layout.loose}
        return Delivery(collated(arrays, loose, self._program.batch), bad, pending.rows)

    def _report(self) -> dict[str, Any]:
        return self._tuner.report(self._metrics)

    def _rows_to_share(self) -> int:
        """Rows of a batch that workers can share."""
        start, stop = self._batches.deal.span(0)
        return 1 if self._program.makes_whole_batches else max(stop - start, 1)

    def _most_prefetch(self) -> int:
        """Batches ahead that the budget has room for."""
        return min(self._allowance.free // max(self._ring.bytes, 1) - 1, MOST_PREFETCH)

    def _close(self) -> None:
        if os.getpid() == self._process:  # what was measured belongs to the process that began the epoch
            self._tuner.ended(self._executor)
            if self._metrics.log is not None:
                self._metrics.log.epoch_left(self._epoch, self._report)
        for _ in self._window:
            self._ring.handed_over()
        self._window.clear()
        self._by_ticket.clear()
        self._ring.rest(self._tuner.settings.prefetch + 2)  # one more is with the user, and one on its way there

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise OptionError(
                "this epoch was begun in another process: workers do not survive a fork. "
                "Begin an epoch in the new process; flow.state() and flow.restore() carry the place over."
            )

    def _no_room(self) -> str:
        return (
            f"one batch takes {self._ring.bytes / 2**20:,.1f} MB, and the memory budget has no room for it. Use "
            'smaller batches, end other flows of this process, or give this one more: Flow(…, memory="4 GB").'
        )
