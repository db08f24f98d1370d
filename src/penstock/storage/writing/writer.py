"""The loop of every writer: rows in order, one output after another, each noted when it is whole, then the name.

A pack fills shards, an export pieces; both are a `Writer` with an `Output`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from penstock.errors import PackError
from penstock.samples import Schema, Segment, Store
from penstock.storage.writing.journal import WorkJournal
from penstock.storage.writing.locking import writer_lock
from penstock.storage.writing.options import SampleOptions
from penstock.storage.writing.places import Places
from penstock.storage.writing.preconditions import check_source
from penstock.storage.writing.preparing import BadSample, Row
from penstock.storage.writing.progress import ProgressBar
from penstock.storage.writing.skipped import skipped_count
from penstock.storage.writing.stamps import stamp_of_part
from penstock.storage.writing.work import Place, Prepared
from penstock.wording import counted


class Line(Protocol):
    """What every line of a journal has."""

    @property
    def rows(self) -> int: ...
    @property
    def skipped(self) -> list[dict[str, Any]]: ...


Finished = TypeVar("Finished", bound=Line)


@contextmanager
def place_to_write(
    places: Places, source: Store, options: SampleOptions, resume: bool, overwrite: bool
) -> Iterator[None]:
    """Hold the place alone while something is written to it, after refusing what would lose or spoil anything."""
    places.target.parent.mkdir(parents=True, exist_ok=True)
    with writer_lock(places.target):
        places.tidy()
        places.check(resume, overwrite)
        check_source(source, options)
        yield


class Output(ABC):
    """What is being filled, a shard or a piece, and what the journal will say of it."""

    def __init__(self, start: Place) -> None:
        self.start_anew(start)

    def start_anew(self, start: Place) -> None:
        self.skipped: list[dict[str, Any]] = []
        self.stamps: list[int] = []
        self.start = self.after = start

    def add(self, prepared: Prepared) -> None:
        outcome = prepared.outcome
        if self.is_full(outcome):
            self.close()
        if isinstance(outcome, BadSample):
            self.skipped.append(outcome.entry())
        else:
            self.add_row(outcome, prepared)
        self.stamps.append(outcome.stamp)
        self.after = prepared.after

    @abstractmethod
    def is_full(self, outcome: Row | BadSample) -> bool:
        """Whether the next output begins with this one."""

    @abstractmethod
    def add_row(self, row: Row, prepared: Prepared) -> None:
        """One row more; the files are opened with the first."""

    @abstractmethod
    def close(self) -> None:
        """Finish the files, enter them in the journal, and start anew; keep what was skipped where there are none."""

    @abstractmethod
    def abandon(self) -> None:
        """Let go of the files, whatever is in them."""


class Writer(ABC, Generic[Finished]):
    """One run of writing: the source, the plan, and what has been finished so far."""

    verb: str  # "pack"
    doing: str  # "packing"
    syncs: bool  # whether all of it is on the disk before it has its name

    def __init__(self, source: Store, places: Places, schema: Schema, journal: WorkJournal[Finished]) -> None:
        self.source, self.places, self.schema, self.journal = source, places, schema, journal
        self.skipped: list[dict[str, Any]] = []

    def write(self, resume: bool, progress: bool | None) -> None:
        """All of it; what is finished stays when it is interrupted."""
        self._open_journal(resume)
        try:
            with ProgressBar(self.expected, progress, self.doing) as bar:
                self.write_outputs(bar)
            self._publish()
        except BaseException:
            if not self.journal.finished:
                self.places.abandon()
            raise

    # Where work begins

    def _open_journal(self, resume: bool) -> None:
        if resume and self.places.content.exists():
            self.journal.go_on(self.plan())
        else:
            self.journal.begin(self.plan())
        for line in self.journal.finished:
            self.skipped += line.skipped
        self.take_over()

    @abstractmethod
    def plan(self) -> dict[str, Any]:
        """What must be the same when work goes on."""

    @abstractmethod
    def take_over(self) -> None:
        """Look whether the sources of what is finished changed, and remove what is not."""

    # The outputs

    @property
    @abstractmethod
    def expected(self) -> int:
        """How many samples there will be, for the progress bar."""

    @abstractmethod
    def outputs(self) -> Iterator[tuple[Output, Iterator[Prepared]]]:
        """What is filled, each with the rows for it, from where work goes on."""

    def write_outputs(self, bar: ProgressBar) -> None:
        bar.advance(sum(line.rows for line in self.journal.finished))
        for output, rows in self.outputs():
            try:
                for prepared in rows:
                    output.add(prepared)
                    bar.advance(prepared.sample_count)
                output.close()
            finally:
                output.abandon()

    # The end

    def _publish(self) -> None:
        """Write what needs all outputs, and give the folder its name."""
        if sum(line.rows for line in self.journal.finished) == 0:
            first = f" The first is {self.skipped[0]['sample']}: {self.skipped[0]['reason']}." if self.skipped else ""
            skipped = counted(skipped_count(self.skipped), "sample", "was")
            raise PackError(f"there is nothing to {self.verb}: {skipped} skipped.{first}")
        self.finish()
        self.places.give_the_name(sync=self.syncs)

    @abstractmethod
    def finish(self) -> None:
        """Write tables, index and manifest."""


def plan_of(options: Mapping[str, Any], schema: Schema, splits: Any) -> dict[str, Any]:
    """What every plan says: options, fields, classes and splits."""
    return {
        "options": dict(options),
        "fields": [repr(field) for field in schema.fields],
        "classes": list(schema.classes),
        "splits": splits,
    }


def stamps_of_parts(parts: Sequence[Segment]) -> dict[str, str]:
    """For each part of a source a text that changes when its file or labels do."""
    return {part.key: stamp_of_part(part) for part in parts}
