"""What is asked of workers, and what they answer."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from penstock.flow.making.program import Made, Program
from penstock.storage.mapped import refuse_lost_files

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
