"""What a user says about label tables, beside where they are."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import one_of

UNITS = ("auto", "frames", "seconds")
EMPTY_LABELS = ("error", "unlabelled")
# Words in place of the name of a subject.
EACH, ANY = "each", "any"


@dataclass(frozen=True)
class LabelOptions:
    """How label tables are read.

    classes        the behaviours and their order; None: those of the tables
    selects        columns of frame tables that are no classes are left out and named; else they are errors
    units          what start and stop of events are counted in
    subject        events of this subject alone; each: a class for each subject; any: put together on purpose
    empty_labels   what an empty cell of a frame table is: an error, or not labelled (−1)
    """

    classes: tuple[str, ...] | None = None
    selects: bool = False
    units: str = "auto"
    subject: str | None = None
    empty_labels: str = "error"

    def __post_init__(self) -> None:
        one_of("units", self.units, UNITS)
        one_of("empty_labels", self.empty_labels, EMPTY_LABELS)
