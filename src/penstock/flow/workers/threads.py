"""Workers in this process: threads, or the calling thread itself."""

from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue
from typing import Any

from penstock.errors import RecipeError
from penstock.flow.making.program import Program
from penstock.flow.measuring.core_wait import CoreWait
from penstock.flow.measuring.lock_wait import lock_wait_seconds
from penstock.flow.slots import private_memory
from penstock.flow.workers.tasks import CLOSED, Arrays, Done, Task, run_task


class CallingThread:
    """No workers: a task is done when its answer is asked for."""

    kind = "thread"
    workers = 0

    def __init__(self, program: Program) -> None:
        self._program = program
        self._tasks: deque[tuple[Task, Arrays]] = deque()

    def make_memory(self, number: int, size: int) -> Any:
        return private_memory(number, size)

    def submit(self, task: Task, arrays: Arrays) -> None:
        self._tasks.append((task, arrays))

    def next_done(self) -> Done:
        task, arrays = self._tasks.popleft()
        return answered(self._program, task, arrays)

    def has_done(self) -> bool:
        return False

    def resize(self, workers: int) -> None:
        """There is nothing to resize."""

    def close(self) -> None:
        self._tasks.clear()


class Threads:
    """Worker threads; the kernel and the decoders let go of the GIL."""

    kind = "thread"

    def __init__(self, program: Program, workers: int) -> None:
        self._program = program
        self._tasks: SimpleQueue[tuple[Task, Arrays] | None] = SimpleQueue()
        self._done: SimpleQueue[Done | None] = SimpleQueue()  # None: closed
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()
        self.workers = 0
        self.resize(workers)

    def make_memory(self, number: int, size: int) -> Any:
        return private_memory(number, size)

    def submit(self, task: Task, arrays: Arrays) -> None:
        self._tasks.put((task, arrays))

    def next_done(self) -> Done:
        done = self._done.get()
        if done is None:
            self._done.put(None)
            raise RecipeError(CLOSED)
        return done

    def has_done(self) -> bool:
        return not self._done.empty()

    def resize(self, workers: int) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for _ in range(workers, self.workers):
            self._tasks.put(None)
        for _ in range(self.workers, workers):
            # Daemons: a program that ends in the middle of an epoch must not wait for what nobody will read.
            thread = threading.Thread(target=self._work, name="penstock-worker", daemon=True)
            thread.start()
            self._threads.append(thread)
        self.workers = workers

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            # An epoch that was left unfinished goes when garbage is collected, in whichever thread that happens.
            if thread is not threading.current_thread():
                thread.join()
        self._done.put(None)

    def _work(self) -> None:
        with CoreWait() as core_wait:
            while (order := self._tasks.get()) is not None:
                if not self._closing.is_set():
                    self._done.put(answered(self._program, *order, core_wait))
                del order  # while this thread waits it must not keep the slot of its last task


def answered(program: Program, task: Task, arrays: Arrays, core_wait: CoreWait | None = None) -> Done:
    """The answer to a task, whatever happens: an error is raised where the batch is asked for."""
    before = 0.0 if core_wait is None else core_wait.seconds()
    locked = lock_wait_seconds(program.locking_sources)
    try:
        made = run_task(program, task, arrays)
        made.costs.core_wait_seconds = 0.0 if core_wait is None else core_wait.seconds() - before
        made.costs.lock_wait_seconds = lock_wait_seconds(program.locking_sources) - locked
        return Done(task, made, None)
    except BaseException as error:  # noqa: BLE001 - it is not swallowed: the consumer raises it
        return Done(task, None, error)
