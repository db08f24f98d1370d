"""A worker process: loads the program, does tasks in its threads, and ends when the training process does.

Started as a script, `python child.py DESCRIPTOR SEARCH_PATH`, so that it finds Penstock and the modules of the user
where the training process finds them. The main thread only reads messages; so it always sees the end of the stream.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.flow.making.program import Program
    from penstock.flow.measuring.waits import CoreWait
    from penstock.flow.workers.executors import Arrays, Done
    from penstock.flow.workers.messages import Begin, Slot, Work


class Child:
    """The worker process: one connection, one program, some threads."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._run = 0
        self._slots: dict[int, Arrays] = {}
        self._threads = 0
        self._program: Program | None = None

    def serve(self) -> None:
        """Do as told until the training process is gone."""
        from penstock.flow.workers import messages

        while (received := messages.receive(self._connection)) is not None:
            message, descriptors = received
            try:
                self._follow(message, descriptors)
            finally:
                messages.close_all(descriptors)

    def _follow(self, message: Any, descriptors: list[int]) -> None:
        from penstock.flow.workers import messages

        if isinstance(message, messages.Work):
            self._work.put(message)
        elif isinstance(message, messages.Slot):
            self._map(message, descriptors[0])
        elif isinstance(message, messages.Begin):
            self._begin(message, descriptors)
        elif isinstance(message, messages.Arrange):
            if self._program is not None:
                self._program.layout = message.layout
        elif isinstance(message, messages.Resize):
            self._resize(message.threads)
        elif isinstance(message, messages.Leave):
            self._run = message.run
            self._slots.clear()

    def _begin(self, message: Begin, descriptors: list[int]) -> None:
        from penstock.flow.workers import messages
        from penstock.flow.workers.messages import carried, unwrapped, wrapped

        try:
            self._program = unwrapped(message.program, descriptors, private=True)
        except BaseException as error:  # noqa: BLE001 - it is not swallowed: the training process raises it
            self._send(messages.Failed(wrapped(carried(error))[0]), [])
            return
        if message.tries_first:
            threading.Thread(target=self._try_first, name="penstock-trial", daemon=True).start()
        self._resize(message.threads)

    def _try_first(self) -> None:
        """Make the first sample here, where a function that crashes does not end the training process."""
        from penstock.flow.workers import messages
        from penstock.flow.workers.messages import carried, wrapped

        assert self._program is not None
        try:
            found: Any = self._program.first_layout()
        except BaseException as error:  # noqa: BLE001 - it is not swallowed: the training process raises it
            found = carried(error)
        self._send(messages.Tried(wrapped(found)[0]), [])

    def _map(self, message: Slot, descriptor: int) -> None:
        import numpy as np

        from penstock.flow.workers.messages import mapped

        if message.run == self._run and self._program is not None:
            memory = np.frombuffer(mapped(descriptor, message.size), np.uint8)
            layout, most = self._program.layout, self._program.batch.size  # a slot holds a rank's share of a batch
            rows = 0 if self._program.makes_whole_batches else layout.rows_of(message.size, most)
            self._slots[message.number] = layout.arrays(memory, rows)

    def _resize(self, threads: int) -> None:
        for _ in range(threads, self._threads):
            self._work.put(None)
        for _ in range(self._threads, threads):
            threading.Thread(target=self._serve_tasks, name="penstock-worker", daemon=True).start()
        self._threads = threads

    def _serve_tasks(self) -> None:
        from penstock.flow.measuring.waits import CoreWait

        try:
            with CoreWait() as core_wait:
                while (work := self._work.get()) is not None:
                    arrays = self._slots.get(work.task.slot)
                    if work.run == self._run and arrays is not None:
                        self._answer(work, arrays, core_wait)
        except BaseException:  # noqa: BLE001 - whoever waits for an answer must see that none will come
            give_up()

    def _answer(self, work: Work, arrays: Arrays, core_wait: CoreWait) -> None:
        from penstock.flow.workers import messages
        from penstock.flow.workers.executors import answered

        assert self._program is not None
        parcel, descriptors = wrapped_answer(answered(self._program, work.task, arrays, core_wait))
        try:
            self._send(messages.Answer(work.run, work.task, parcel), descriptors)
        finally:
            messages.close_all(descriptors)

    def _send(self, message: Any, descriptors: list[int]) -> None:
        from penstock.flow.workers import messages

        try:
            with self._sending:
                messages.send(self._connection, message, descriptors)
        except OSError:  # nobody listens any more
            os._exit(0)


def wrapped_answer(done: Done) -> Any:
    """An answer as a parcel; where it cannot be sent, the reason as a parcel."""
    import pickle

    import cloudpickle

    from penstock.errors import OptionError
    from penstock.flow.workers.messages import carried, wrapped

    if done.error is not None:
        return wrapped(carried(done.error))
    try:
        return wrapped(done.made)
    except OptionError as error:  # out of shared memory
        return wrapped(carried(error))
    except (pickle.PicklingError, AttributeError, TypeError):
        pass  # such as an object of a class of the user's script, which only cloudpickle can send
    try:
        return wrapped(done.made, cloudpickle.dumps)
    except Exception as error:  # noqa: BLE001 - it is not swallowed: the training process raises it
        refusal = OptionError(
            f"what the functions of this flow made cannot be sent from a worker process: {type(error).__name__}: "
            f'{error}. Return arrays, numbers and texts, or use executor="thread".'
        )
        refusal.__cause__ = error
        return wrapped(carried(refusal))


def give_up() -> None:
    """End this process after an error of our own; the training process reports it."""
    traceback.print_exc()
    os._exit(70)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training process gets it too, and ends its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # there is no flush when it ends
    sys.path[:] = json.loads(sys.argv[2])
    connection = socket.socket(fileno=int(sys.argv[1]))
    # A process that a user's function forks must not keep the connection open when this one dies.
    os.register_at_fork(after_in_child=connection.close)
    connection.set_inheritable(False)
    try:
        Child(connection).serve()
    except BaseException:  # noqa: BLE001 - threads of the user must not keep a broken worker alive
        give_up()
    os._exit(0)  # nobody waits for what threads are still doing


if __name__ == "__main__":
    main()
