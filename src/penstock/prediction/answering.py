"""From a source to rows of answers, batch by batch: what prediction and evaluation share."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import torch

from penstock.errors import HopError, OptionError, one_of
from penstock.flow.making.leaves import UNREADABLE
from penstock.prediction.models import Model
from penstock.samples import Store
from penstock.tasks.task import Answers, Batch, batched

AUTO = "auto"
SAMPLE = "sample"
OnBadSample = Literal["raise", "skip"]
# Groups of rows in a batch, where the user does not say: enough that the feed works ahead, little memory.
AUTO_GROUPS = 4


@dataclass(frozen=True)
class AnswerOptions:
    """How answers are made; nothing here changes them.

    batch_size      samples that are brought at a time, rounded up to whole groups of what the network sees at once
    workers         threads that decode; auto: tuned while running
    on_bad_sample   raise, or skip: the row of a file that cannot be read has no answer, and the reason as `problem`
    progress        a progress bar
    """

    batch_size: int | str = AUTO
    workers: int | str = AUTO
    on_bad_sample: OnBadSample = "raise"
    progress: bool = False

    def __post_init__(self) -> None:
        one_of("on_bad_sample", self.on_bad_sample, get_args(OnBadSample))
        size = self.batch_size
        if size != AUTO and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise OptionError(f"batch_size={size!r} must be a whole number from 1, or {AUTO}.")

    def rows(self, group_rows: int) -> int:
        """The batch as a whole number of groups."""
        groups = AUTO_GROUPS if isinstance(self.batch_size, str) else -(-self.batch_size // group_rows)
        return groups * group_rows


SKIPPED = "Fix or remove it, or pass on_bad_sample='skip' to leave it out."
FIXED = "Fix or remove it."


class Answered(NamedTuple):
    """A batch of samples, in order, with what was answered; `problems` has those that could not be read, by row."""

    first: int
    batch: Batch
    answers: Answers
    problems: dict[int, str]


def answered(
    model: Model, source: Store, options: AnswerOptions, ask: Callable[[Batch], Answers], remedy: str = SKIPPED
) -> Iterator[Answered]:
    """Every sample of a source, in order; `remedy` says what to do about one that cannot be read."""
    on_bad = "substitute" if options.on_bad_sample == "skip" else "raise"
    flow = model.task.evaluation_flow(source, workers=options.workers, on_bad_sample=on_bad)
    flow = batched(model.task, flow, options.rows(model.group_rows))
    first = 0
    with closing(_shown(flow.to_torch(), len(source), options.progress)) as batches, _told(remedy):
        for batch in batches:
            reasons = {int(bad.index): str(bad.reason) for bad in flow.bad_samples} if on_bad == "substitute" else {}
            count = len(batch["index"])
            problems = {row: reasons[first + row] for row in range(count) if first + row in reasons}
            yield Answered(first, batch, ask(batch), problems)
            first += count


@contextmanager
def _told(remedy: str) -> Iterator[None]:
    """Name the remedies of this verb: prediction knows no substitutes."""
    try:
        yield
    except HopError as error:
        if error.remedy != UNREADABLE:
            raise
        raise HopError(error.hop, error.sample, error.reason, remedy) from error


def _shown(batches: Any, total: int, progress: bool) -> Generator[Batch]:
    """The batches, with a bar where one is wanted."""
    if not progress:
        yield from batches
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("answering", total=total)
        for batch in batches:
            yield batch
            bar.advance(task, len(batch["index"]))


def rows_of(model: Model, source: Store, found: Answered, *, lists_problems: bool) -> list[dict[str, Any]]:
    """Rows of the table: which sample, then the answer; a sample without an answer has empty places.

    Where a task has several rows of a sample, or none, each says as `sample` which one it is of.
    """
    finished = []
    for place, row in enumerate(model.task.rows(found.answers, found.batch)):
        number = row.pop(SAMPLE, place)
        problem = found.problems.get(number)
        values = row if problem is None else {name: _nothing(value) for name, value in row.items()}
        last = {"problem": problem or ""} if lists_problems else {}
        finished.append({**sample_name(source, found.first + number), **values, **last})
    return finished


def _nothing(value: Any) -> Any:
    return float("nan") if isinstance(value, float) else "" if isinstance(value, str) else None


def sample_name(source: Store, index: int) -> dict[str, Any]:
    """The columns that tell which sample a row is of."""
    key = source.annotations(index).get("key") if source.knows_annotations else None
    return {"image_path": str(key)} if key else {"index": index}


def on_cpu(answers: Answers) -> dict[str, Any]:
    """Answers where tables are made."""
    return {name: _on_cpu(value) for name, value in answers.items()}


def _on_cpu(value: Any) -> Any:
    if isinstance(value, list):
        return [_on_cpu(one) for one in value]
    return value.cpu() if isinstance(value, torch.Tensor) else value
