"""Workers in other processes: one with threads ("subprocess"), or several with one thread each ("process").

submit ──► waiting tasks ──► the process with the least to do ──► it writes into the slot (shared memory)
                ▲                                                              │
                └────────── a listening thread for each process ◄── answer ◄───┘ ──► next_done
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple

from penstock.errors import HopError, OptionError, PenstockError
from penstock.flow.making.layout import Layout
from penstock.flow.making.program import Program
from penstock.flow.workers import messages
from penstock.flow.workers.executors import CLOSED, Arrays, Done, Task
from penstock.flow.workers.messages import Carried, is_available, mapped, new_memory, parcel_of, revived, unwrapped

# One worker process, as the training process sees it.


SHOWN_SAMPLES = 5
SIGNALS = {
    "SIGKILL": "Memory may have run out (`dmesg` tells): use fewer workers, smaller batches or a smaller prefetch.",
    "SIGBUS": "A file that was in use has become shorter, or memory has run out. Run `penstock verify` on the pack.",
    "SIGSEGV": "A library crashed; run the same samples with workers=0 to see which function called it.",
}
EXITED = "Does one of the functions end its process (os._exit), or a library that it calls?"


class WorkerProcess:
    """A process, the connection to it, and the tasks that it has and did not answer yet, oldest first."""

    def __init__(self) -> None:
        self.connection, theirs = socket.socketpair()
        try:
            self._popen = _started(theirs.fileno())
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()
        self.tasks: dict[tuple[int, int], Task] = {}  # by ticket and row
        self.takes_tasks = True
        self.is_told_to_end = False
        self.is_out_of_step = False  # a message was cut short: nothing more can be said to it
        self._sending = threading.Lock()

    @property
    def identity(self) -> int:
        return self._popen.pid

    def send(self, message: Any, descriptors: list[int] | None = None) -> None:
        """Say something; if it is dead, whoever listens to it will notice."""
        with self._sending:
            try:
                messages.send(self.connection, message, descriptors or [])
            except OSError:
                return
            except BaseException:  # such as Ctrl-C in the middle
                self.is_out_of_step = True
                raise

    def tell_to_end(self) -> None:
        """It ends itself at the end of the stream."""
        self.is_told_to_end = True
        self.hang_up()

    def hang_up(self) -> None:
        """Nothing more is said or heard."""
        with contextlib.suppress(OSError):  # it is gone already
            self.connection.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds: float) -> int:
        """Its exit code; killed if it does not end in time."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self._popen.wait()

    def forget(self) -> None:
        """In a forked process: this is not ours to end or to talk to."""
        self.connection.close()
        self._popen.returncode = 0  # else Popen warns that it is still running

    def obituary(self, program: Program, code: int, working_on: list[Task]) -> HopError:
        """What to say when it has died: how, and what it was doing."""
        name = signal_name(code)
        how = f"was ended by {name}" if name else f"ended with exit code {code}"
        remedy = SIGNALS.get(name, "") if name else EXITED
        doing = "; ".join(_described(program, task) for task in working_on) or "between two tasks"
        return HopError("worker process", doing, f"process {self.identity} {how}", remedy)


def signal_name(code: int) -> str | None:
    """The signal that an exit code of subprocess stands for."""
    if code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _described(program: Program, task: Task) -> str:
    # By number alone: looking at the data is what ended the worker, perhaps.
    numbers = program.draws(task.epoch, task.start, task.stop).index.tolist()
    shown = ", ".join(map(str, numbers[:SHOWN_SAMPLES]))
    more = f" and {len(numbers) - SHOWN_SAMPLES} more" if len(numbers) > SHOWN_SAMPLES else ""
    word = "sample" if len(numbers) == 1 else "samples"
    return f"{word} {shown}{more} (positions {task.start} to {task.stop - 1} of epoch {task.epoch})"


def _started(descriptor: int) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise OptionError(
            'this Python does not know its own program, so it cannot start others. Use executor="thread".'
        )
    script = str(Path(__file__).with_name("child.py"))
    # -P: the folder of the script is not searched for modules.
    command = [sys.executable, "-P", script, str(descriptor), json.dumps([str(place) for place in sys.path])]
    # Ctrl-C reaches all processes of a terminal; it is held back until the new one has said that it ignores it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[descriptor], env=os.environ)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


Kind = Literal["subprocess", "process"]
TASKS_OF_PROCESS = 2  # one that it works on, one to go on with while the next is on its way
KEPT_DESCRIPTORS = 64  # of slots, for processes that come later; a user may keep thousands of batches
ENDING_SECONDS = 3.0
FIRST_SAMPLE = Task(ticket=-1, epoch=0, number=0, start=0, stop=1, row=0, slot=-1)  # tried before there are batches


class Death(NamedTuple):
    """A worker process ended that was not told to."""

    error: PenstockError


Event = tuple[messages.Answer | messages.Tried | messages.Failed, list[int]] | Death


class Children:
    """Worker processes. They are kept between epochs; `leave` parts one from the next."""

    def __init__(
        self, program: Program, kind: Kind, workers: int, *, most: int | None = None, tries_first: bool = False
    ) -> None:
        if not is_available():
            raise OptionError(f'executor={kind!r} needs Linux; on this system use executor="thread".')
        self._parcel, self._descriptors = parcel_of(program)  # before anything is started
        self.kind: str = kind
        self._most = most  # processes, where a function may not be called more often at once
        self.workers = self._allowed(workers)
        self._program = program
        self._lock = threading.RLock()  # again by the same thread: garbage may be collected, and end this, anywhere
        self._waiting: deque[Task] = deque()
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._processes: list[WorkerProcess] = []
        self._listeners: list[threading.Thread] = []
        self._run = 0
        self._slots: dict[int, tuple[int | None, int]] = {}  # descriptor and size
        self._layout: Layout | None = None  # of batches, where the first sample was tried here
        self._death: Death | None = None  # that was raised
        self._has_lost_one = False
        self._is_closed = False
        self._owner = os.getpid()
        _LIVING.add(self)
        try:
            self._start(1 if kind == "subprocess" else self.workers, tries_first=tries_first)
        except BaseException:
            self.close()
            raise

    @property
    def is_sound(self) -> bool:
        """Whether it may serve another epoch."""
        is_in_step = not any(process.is_out_of_step for process in self._processes)
        is_whole = is_in_step and self._death is None and not self._has_lost_one
        return is_whole and not self._is_closed and os.getpid() == self._owner

    # The first sample

    def first_layout(self) -> Layout:
        """Wait for the layout of the first sample, which one of the processes makes."""
        message, value = self._next_value()
        assert isinstance(message, messages.Tried)
        if isinstance(value, Carried):
            raise revived(value)
        assert isinstance(value, Layout)
        return value

    def arrange(self, layout: Layout) -> None:
        """Tell how batches look, which the processes did not know when they began."""
        self._layout = layout
        self._program = replace(self._program, layout=layout)
        for process in list(self._processes):
            process.send(messages.Arrange(layout))

    # What the engine asks

    def make_memory(self, number: int, size: int) -> Any:
        descriptor = new_memory(size, "a batch")
        self._slots[number] = (descriptor, size)
        memory = mapped(descriptor, size)
        for process in list(self._processes):
            process.send(messages.Slot(self._run, number, size), [descriptor])
        if len(self._slots) > KEPT_DESCRIPTORS:
            self._let_go(number - KEPT_DESCRIPTORS)
        return memory

    def submit(self, task: Task, arrays: Arrays) -> None:
        with self._lock:
            self._waiting.append(task)
        self._hand_out()

    def next_done(self) -> Done:
        message, value = self._next_value()
        assert isinstance(message, messages.Answer)
        if isinstance(value, Carried):
            return Done(message.task, None, revived(value))
        return Done(message.task, value, None)

    def _next_value(self) -> tuple[messages.Answer | messages.Tried, Any]:
        """What a process says next; raises when one could not begin, or died."""
        if self._death is not None:
            raise self._death.error
        event = self._events.get()
        if isinstance(event, Death):
            self._death = event
            raise event.error
        message, descriptors = event
        try:
            value = unwrapped(message.parcel, descriptors)
        finally:
            messages.close_all(descriptors)
        if isinstance(message, messages.Failed):
            self._death = Death(_not_loaded(revived(value)))
            raise self._death.error
        return message, value

    def has_done(self) -> bool:
        return self._death is not None or not self._events.empty()

    def resize(self, workers: int) -> None:
        if self.kind == "subprocess":
            self.workers = workers
            for process in list(self._processes):
                process.send(messages.Resize(workers))
            return
        workers = self._allowed(workers)
        with self._lock:
            active = [process for process in self._processes if process.takes_tasks]
            for process in active[workers:]:
                process.takes_tasks = False
                if not process.tasks:
                    process.tell_to_end()
        # A process that comes later needs all slots; of a run with very many, some can no longer be handed over.
        if all(descriptor is not None for descriptor, _ in self._slots.values()):
            self._start(workers - len(active))
        self.workers = sum(process.takes_tasks for process in self._processes)
        self._hand_out()

    def leave(self) -> None:
        """The epoch is over, or was left: its tasks, answers and slots mean nothing from now on."""
        with self._lock:
            self._run += 1
            self._waiting.clear()
            for process in self._processes:
                process.tasks.clear()
                if not process.takes_tasks:  # nothing that it may still answer is waited for
                    process.tell_to_end()
            self._drop_events()
        self._let_go_of_slots()
        for process in list(self._processes):
            process.send(messages.Leave(self._run))

    def close(self) -> None:
        if self._is_closed or os.getpid() != self._owner:
            return
        self._is_closed = True
        for process in list(self._processes):
            process.tell_to_end()
        deadline = time.monotonic() + ENDING_SECONDS
        for process in list(self._processes):
            process.wait(max(deadline - time.monotonic(), 0.0))
        for thread in self._listeners:
            if thread is not threading.current_thread():
                thread.join()
        self._drop_events()
        self._events.put(Death(OptionError(CLOSED)))
        self._let_go_of_slots()
        messages.close_all(self._descriptors)

    # Processes

    def _allowed(self, workers: int) -> int:
        return workers if self._most is None else min(workers, self._most)

    def _start(self, count: int, *, tries_first: bool = False) -> None:
        """Start some, all at once: each takes a while to be there. One of them may have to try the first sample."""
        started: list[WorkerProcess] = []
        try:
            for _ in range(count):
                started.append(WorkerProcess())
                self._listen_to(started[-1])
        finally:  # what was started is ended with the others, whatever happens
            self._processes += started
        threads = self.workers if self.kind == "subprocess" else 1
        for process in started:
            tries = tries_first and process is started[0]
            if tries:
                process.tasks[FIRST_SAMPLE.ticket, FIRST_SAMPLE.row] = FIRST_SAMPLE
            process.send(messages.Begin(self._parcel, threads, tries), self._descriptors)
            if self._layout is not None:
                process.send(messages.Arrange(self._layout))
            process.send(messages.Leave(self._run))
            for number, (descriptor, size) in self._slots.items():
                if descriptor is not None:
                    process.send(messages.Slot(self._run, number, size), [descriptor])

    def _listen_to(self, process: WorkerProcess) -> None:
        thread = threading.Thread(target=self._listen, args=(process,), name="penstock-listener", daemon=True)
        self._listeners = [one for one in self._listeners if one.is_alive()]
        self._listeners.append(thread)
        thread.start()

    def forget(self) -> None:
        """In a forked process: the workers belong to the other one."""
        for process in self._processes:
            process.forget()
        self._let_go_of_slots()
        messages.close_all(self._descriptors)

    # Tasks

    def _hand_out(self) -> None:
        """Give waiting tasks to processes that have room for them."""
        while True:
            with self._lock:
                process = self._freest()
                if process is None or not self._waiting:
                    return
                task, run = self._waiting.popleft(), self._run
                process.tasks[task.ticket, task.row] = task
            process.send(messages.Work(run, task))

    def _freest(self) -> WorkerProcess | None:
        active = [process for process in self._processes if process.takes_tasks]
        freest = min(active, key=lambda process: len(process.tasks), default=None)
        has_room = freest is not None and (self.kind == "subprocess" or len(freest.tasks) < TASKS_OF_PROCESS)
        return freest if has_room else None

    # In the listening threads

    def _listen(self, process: WorkerProcess) -> None:
        try:
            while (received := messages.receive(process.connection)) is not None:
                self._heard(process, *received)
                del received
        finally:  # also when listening itself fails: whoever waits must not wait for ever
            process.hang_up()
            self._ended(process, process.wait(ENDING_SECONDS))

    def _heard(self, process: WorkerProcess, message: Any, descriptors: list[int]) -> None:
        with self._lock:
            if isinstance(message, messages.Answer) and message.run != self._run:
                messages.close_all(descriptors)  # of an epoch that was left
                return
            self._events.put((message, descriptors))
            if isinstance(message, messages.Tried):
                process.tasks.pop((FIRST_SAMPLE.ticket, FIRST_SAMPLE.row), None)
            if isinstance(message, messages.Answer):
                process.tasks.pop((message.task.ticket, message.task.row), None)
            if not process.takes_tasks and not process.tasks:
                process.tell_to_end()
        self._hand_out()

    def _ended(self, process: WorkerProcess, code: int) -> None:
        with self._lock:
            process.connection.close()
            if process in self._processes:
                self._processes.remove(process)
            if not process.is_told_to_end:
                self._has_lost_one = True
                threads = self.workers if self.kind == "subprocess" else 1
                working_on = list(process.tasks.values())[:threads]
                self._events.put(Death(process.obituary(self._program, code, working_on)))

    # What is let go

    def _drop_events(self) -> None:
        """Take what nobody will ask for."""
        while True:
            try:
                event = self._events.get_nowait()
            except Empty:
                return
            if not isinstance(event, Death):
                messages.close_all(event[1])

    def _let_go(self, number: int) -> None:
        descriptor, size = self._slots[number]
        if descriptor is not None:
            os.close(descriptor)
            self._slots[number] = (None, size)

    def _let_go_of_slots(self) -> None:
        for number in self._slots:
            self._let_go(number)
        self._slots.clear()


def _not_loaded(error: BaseException) -> OptionError:
    failure = OptionError(
        f"a worker process could not load this flow: {type(error).__name__}: {error}. Modules that functions and "
        'sources come from must be importable there too; or use executor="thread".'
    )
    failure.__cause__ = error
    return failure


# Those whose connections a forked process must not hold: a worker would not notice the death of its own process.
_LIVING: weakref.WeakSet[Children] = weakref.WeakSet()


def _forget_all() -> None:
    for children in list(_LIVING):
        children.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
