"""What a user may say of TFRecords, checked once at the door."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.errors import OptionError, one_of
from penstock.formats.indexed.class_numbers import ClassNumbers, First, Stored, class_numbers, stated_classes
from penstock.formats.paths import PathLike
from penstock.formats.tfrecord.example_fields import Given, Layout
from penstock.formats.tfrecord.record_files import COMPRESSIONS, Compression

BoxUnits = Literal["normalised", "pixels"]
BOX_UNITS = ("normalised", "pixels")


@dataclass(frozen=True)
class RecordOptions:
    """What a user may say of TFRecords, checked once; see `TFRecords`."""

    fields: tuple[tuple[str, Any], ...] | None
    classes: tuple[str, ...] | None
    first_class: First
    box_units: BoxUnits
    compression: Compression

    def __post_init__(self) -> None:
        one_of("compression", self.compression, COMPRESSIONS)
        one_of("box_units", self.box_units, BOX_UNITS)
        if self.first_class not in ("auto", 0, 1):
            raise OptionError(f"first_class={self.first_class!r} is not one of auto, 0, 1.")

    @property
    def given(self) -> Given | None:
        return None if self.fields is None else dict(self.fields)

    def classes_of(self, pairs: Iterable[Stored], layout: Layout) -> ClassNumbers:
        """The classes of all pairs of number and name that occur."""
        return class_numbers(pairs, self.classes, self.first_class, usual_first=int(layout.box_label is not None))


def record_options(
    files: Sequence[str],
    fields: Given | None,
    classes: PathLike | Sequence[str] | None,
    first_class: First,
    box_units: BoxUnits,
    compression: Compression,
) -> RecordOptions:
    """Options as a user writes them, checked."""
    pairs = None if fields is None else tuple((name, _hashable(one)) for name, one in fields.items())
    return RecordOptions(pairs, stated_classes(classes, files), first_class, box_units, compression)


def _hashable(one: Any) -> Any:
    return tuple(one) if isinstance(one, list) else one
