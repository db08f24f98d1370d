"""Many samples at once, results in order, never more in flight than a few chunks for each worker."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any, TypeVar

from penstock.errors import PackError

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
            "run again with --resume, perhaps with fewer --workers."
        ) from error
    finally:
        for future in pending:
            future.cancel()


def thread_pool(workers: int) -> Executor:
    return ThreadPoolExecutor(workers, thread_name_prefix="penstock-pack")


def process_pool(workers: int, work: Callable[..., Any], fixed: tuple[Any, ...]) -> Executor:
    """Processes that are given `fixed` once; tasks then send only what differs. See `run_in_process`."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(work, fixed))


# What this worker process does, set once when it starts; empty in every other process.
_duty: dict[str, Any] = {}


def _begin(work: Callable[..., Any], fixed: tuple[Any, ...]) -> None:
    _duty["work"], _duty["fixed"] = work, fixed
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed cannot say goodbye: its sentinel becomes ready, and this process ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def run_in_process(*varying: Any) -> Any:
    return _duty["work"](*_duty["fixed"], *varying)
