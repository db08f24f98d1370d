"""What is asked of workers and what they answer; workers that are threads, or the calling thread."""

from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.flow.making.program import Made, Program
from penstock.flow.measuring.waits import CoreWait, lock_wait_seconds
from penstock.flow.slots import private_memory
from penstock.storage.mapped import refuse_lost_files

# What is asked of workers, and what they answer.


Arrays = dict[str, NDArray[Any]]
CLOSED = "this flow was closed while an epoch was under way: the epoch has ended. Begin another one with flow.epoch()."


class Task(NamedTuple):
    """Some positions of an epoch, and the rows of a slot that they go to."""

    ticket: int  # which batch of this run it belongs to
    epoch: int
    number: int  # of the batch in its epoch
    start: int
    stop: int
    row: int  # the first of its rows in the slot
    slot: int


class Done(NamedTuple):
    """The answer to a task: what was made, or why not."""

    task: Task
    made: Made | None
    error: BaseException | None


class Executor(Protocol):
    """Workers of some kind. All give the same bits."""

    kind: str
    workers: int

    def make_memory(self, number: int, size: int) -> Any:
        """The memory of a slot, where the workers can write to it."""
        ...

    def submit(self, task: Task, arrays: Arrays) -> None:
        """Ask for a range; `arrays` is the whole slot."""
        ...

    def next_done(self) -> Done:
        """The next answer, in whatever order they come; raises when a worker died."""
        ...

    def has_done(self) -> bool:
        """Whether there is an answer, so that next_done would not wait."""
        ...

    def resize(self, workers: int) -> None:
        """Go on with more or fewer workers."""
        ...

    def close(self) -> None:
        """End all workers and wait for them; whoever waits for an answer gets an error. May be called again."""
        ...


def run_task(program: Program, task: Task, arrays: Arrays) -> Made:
    """What every worker does. What was made of a file that was cut short meanwhile is not handed on."""
    try:
        if program.makes_whole_batches:
            return program.whole(task.epoch, task.number, task.start, task.stop)
        rows = {name: array[task.row : task.row + task.stop - task.start] for name, array in arrays.items()}
        return program.fill(task.epoch, task.start, task.stop, rows)
    finally:
        refuse_lost_files()


# Workers in this process: threads, or the calling thread itself.


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
            raise OptionError(CLOSED)
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
