"""Many samples at once, results in order, never more in flight than a few chunks for each worker."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, TypeVar

from penstock.errors import PackError

ENDING_SECONDS = 3.0
Task = TypeVar("Task")
Result = TypeVar("Result")


def in_order(submit: Callable[[Task], Future[Result]], tasks: Iterable[Task], window: int) -> Iterator[Result]:
    """The results of tasks in their order, with at most `window` of them under way."""
    pending: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            pending.append(submit(task))
            if len(pending) >= window:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise PackError(
            "a worker process died, killed or out of memory. Finished shards are kept: "
            "run again with resume=True, perhaps with fewer workers."
        ) from error
    finally:
        for future in pending:
            future.cancel()


def thread_pool(workers: int) -> Executor:
    return ThreadPoolExecutor(workers, thread_name_prefix="penstock-pack")


class ProcessPool:
    """Processes that are given `fixed` once, each with a pipe and a thread that waits at it.

    No semaphores, as a ProcessPoolExecutor has them: these have names, which stay in the system after a kill.
    """

    def __init__(self, workers: int, work: Callable[..., Any], fixed: tuple[Any, ...]) -> None:
        self._free: SimpleQueue[tuple[BaseProcess, Connection]] = SimpleQueue()
        self._all: list[tuple[BaseProcess, Connection]] = []
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="penstock-pack")
        try:
            for _ in range(workers):
                self._start(work, fixed)
        except BaseException:
            self.shutdown()
            raise

    def _start(self, work: Callable[..., Any], fixed: tuple[Any, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, work, fixed), daemon=True)
        process.start()
        theirs.close()
        self._all.append((process, ours))
        self._free.put(self._all[-1])

    def submit(self, *varying: Any) -> Future[Any]:
        """Let a process call its work with `fixed` and these arguments."""
        return self._threads.submit(self._ask, varying)

    def _ask(self, varying: tuple[Any, ...]) -> Any:
        process, connection = self._free.get()
        try:
            connection.send(varying)
            is_made, value = connection.recv()
        except (EOFError, OSError) as error:
            raise BrokenProcessPool(f"process {process.pid} has ended") from error
        finally:
            self._free.put((process, connection))
        if not is_made:
            raise value
        return value

    def shutdown(self, *, cancel_futures: bool = False) -> None:
        """End what is under way, and all processes."""
        self._threads.shutdown(cancel_futures=cancel_futures)
        for process, connection in self._all:
            connection.close()
            process.join(ENDING_SECONDS)
            process.kill()
            process.join()


def _serve(connection: Connection, work: Callable[..., Any], fixed: tuple[Any, ...]) -> None:
    """What a worker process does until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the first one ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while True:
            varying = connection.recv()
            try:
                answer = (True, work(*fixed, *varying))
            except Exception as error:  # noqa: BLE001 - it is raised where the result is waited for
                answer = (False, error)
            connection.send(answer)


def _end_with_parent() -> None:
    """A parent that was killed cannot say goodbye: its sentinel becomes ready, and this process ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
