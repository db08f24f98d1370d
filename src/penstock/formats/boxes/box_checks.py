"""What can be wrong with boxes once the sizes of their images are known: one pass of numpy over all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import Problem, nearest
from penstock.formats.boxes.rows import Rows
from penstock.formats.reading import ReadingOptions

_SIDES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True)
class CheckedBoxes:
    """Boxes in pixels (float64), which rows hold a usable one, its class number, and what is wrong with the rest."""

    box: NDArray[np.float64]
    usable: NDArray[np.bool_]
    label: NDArray[np.int64]
    classes: tuple[str, ...]
    problems: list[Problem]


def check_boxes(
    rows: Rows, image: NDArray[np.int64], names: list[str], sizes: NDArray[np.int64], options: ReadingOptions
) -> CheckedBoxes:
    """Convert to pixels, clip what may be clipped, and find every row that is wrong. `image` numbers `names`, or −1."""
    size = np.vstack([sizes, np.zeros((1, 2), np.int64)])[image]  # −1, no image, takes the last
    box = _in_pixels(rows, size)
    has = ~np.isnan(box[:, 0]) & (image >= 0)
    checks = _Checks(rows, box, size, image, names)
    usable = has & ~checks.shape(has)
    box = checks.border(usable, rows.clip | rows.point | options.clip_boxes)
    usable &= ~checks.lost
    labels = _LabelNumbers(rows, options.classes, usable)
    problems = [*checks.problems, *labels.problems, *_similar_labels(rows, labels.number, usable, labels.classes)]
    usable &= labels.number >= 0
    problems += _duplicates(rows, box, usable, image, labels.number)
    return CheckedBoxes(box, usable, labels.number, labels.classes, problems)


def _in_pixels(rows: Rows, size: NDArray[np.int64]) -> NDArray[np.float64]:
    """Fractions times the size; without a size nothing can be said, and the image is a problem of its own."""
    scale = np.where(rows.fractions[:, None], np.tile(size, 2), 1).astype(np.float64)
    scale[rows.fractions & (size[:, 0] == 0)] = np.nan
    scaled: NDArray[np.float64] = rows.box * scale
    return scaled


class _Checks:
    """The findings about corners; each method adds to `problems`."""

    def __init__(
        self,
        rows: Rows,
        box: NDArray[np.float64],
        size: NDArray[np.int64],
        image: NDArray[np.int64],
        names: list[str],
    ) -> None:
        self.rows, self.box, self.size, self.image, self.names = rows, box, size, image, names
        self.problems: list[Problem] = []
        self.lost = np.zeros(len(rows), bool)

    def shape(self, has: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Swapped corners, and boxes without area."""
        x1, y1, x2, y2 = self.box.T
        swapped = has & ((x2 < x1) | (y2 < y1))
        flat = has & ~swapped & ((x2 == x1) | (y2 == y1))
        self._report(swapped, self._swapped, "Swap them")
        self._report(flat, self._flat, "Give the box a size, or write 0,0,0,0 for an image without boxes")
        wrong: NDArray[np.bool_] = swapped | flat
        return wrong

    def border(self, usable: NDArray[np.bool_], clip: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Boxes that reach over the border: clipped where allowed, reported otherwise; `lost` lie wholly outside."""
        limit = np.tile(self.size, 2)
        known = usable & (self.size[:, 0] > 0)
        over = known & np.asarray(np.any((self.box < 0) | (self.box > limit), axis=1))
        inside = np.clip(self.box, 0, limit)
        gone: NDArray[np.bool_] = over & ((inside[:, 2] <= inside[:, 0]) | (inside[:, 3] <= inside[:, 1]))
        gone = gone | (over & self.rows.point & self._centre_outside())
        self._report(gone, self._gone, "Check the row: wrong image, or coordinates of another size of it?")
        self._report(over & ~gone & ~clip, self._outside, "Fix the row, or pass clip_boxes=True")
        self.lost = gone
        return np.where((over & clip & ~gone)[:, None], inside, self.box)

    def _centre_outside(self) -> NDArray[np.bool_]:
        centre = (self.box[:, :2] + self.box[:, 2:]) / 2
        return np.asarray(np.any((centre < 0) | (centre > self.size), axis=1))

    def _report(self, wrong: NDArray[np.bool_], what: Callable[[int], str], remedy: str) -> None:
        for row in np.flatnonzero(wrong).tolist():
            file, line = self.rows.where(row)
            self.problems.append(Problem(file, line, what(row), remedy))

    def _swapped(self, row: int) -> str:
        x1, y1, x2, y2 = self.box[row].tolist()
        if x2 < x1:
            return f"corners are swapped: xmax {x2:g} is less than xmin {x1:g}"
        return f"corners are swapped: ymax {y2:g} is less than ymin {y1:g}"

    def _flat(self, row: int) -> str:
        x1, y1, x2, y2 = self.box[row].tolist()
        return f"the box has no area: it is {x2 - x1:g} px wide and {y2 - y1:g} px high"

    def _outside(self, row: int) -> str:
        box, (width, height) = self.box[row], self.size[row].tolist()
        over = np.array([-box[0], -box[1], box[2] - width, box[3] - height])
        side = int(np.argmax(over))
        extent = f"{width} wide" if side % 2 == 0 else f"{height} high"
        name = self.names[self.image[row]]
        return f"{_SIDES[side]} {box[side]:.10g} is outside {name} ({extent}) by {over[side]:.4g} px"

    def _gone(self, row: int) -> str:
        width, height = self.size[row].tolist()
        corners = ", ".join(f"{value:.10g}" for value in self.box[row])
        return f"the box {corners} lies wholly outside {self.names[self.image[row]]} ({width}×{height} px)"


class _LabelNumbers:
    """Class numbers of rows: given classes fix names and order; otherwise the listed labels, then the others sorted."""

    def __init__(self, rows: Rows, classes: tuple[str, ...] | None, usable: NDArray[np.bool_]) -> None:
        self.problems: list[Problem] = []
        used = {rows.labels[number] for number in np.unique(rows.label[usable]) if number >= 0} - {""}
        self.nameless = _nameless(rows, used) if classes is None else frozenset()
        listed = rows.listed_classes
        self.classes = classes or (*listed, *sorted_labels(used - {*listed, *self.nameless}))
        numbers = {name: number for number, name in enumerate(self.classes)}
        lookup = np.array([numbers.get(label, -1) for label in rows.labels] + [-1], np.int64)
        self.number: NDArray[np.int64] = lookup[rows.label]
        remedies = {label: self._remedy(label) for label in rows.labels if label not in numbers}
        for row in np.flatnonzero(usable & (self.number < 0)).tolist():
            file, line = rows.where(row)
            label = rows.labels[rows.label[row]] if rows.label[row] >= 0 else ""
            what = f"the label {label!r} is not a known class" if label else "the label is empty"
            if label in self.nameless:
                what = f"class {label} has no name here, and classes of other annotations have"
            remedy = remedies[label] if label else "Write the class of the box"
            self.problems.append(Problem(file, line, what, remedy))

    def _remedy(self, label: str) -> str:
        if label in self.nameless:
            return "Put a classes.txt with the names beside these labels"
        shown = ", ".join(self.classes[:10]) + (" …" if len(self.classes) > 10 else "")
        return f"The classes are {shown}.{nearest(label, self.classes)}"


def _nameless(rows: Rows, used: set[str]) -> frozenset[str]:
    """Class numbers of YOLO that nothing names, if other classes have names: which of these they mean stays open."""
    numbers = {rows.labels[number] for number in np.unique(rows.label[rows.fractions]) if number >= 0}
    nameless = {label for label in numbers - {*rows.listed_classes} if label.isdecimal()}
    is_mixed = bool(rows.listed_classes) or any(not label.isdecimal() for label in used)
    return frozenset(nameless) if is_mixed else frozenset()


def _similar_labels(
    rows: Rows, number: NDArray[np.int64], usable: NDArray[np.bool_], classes: tuple[str, ...]
) -> list[Problem]:
    """Classes that differ only in case or blanks are most often one that was misspelt."""
    chosen = np.flatnonzero(usable & (number >= 0))
    numbers, first, counts = np.unique(number[chosen], return_index=True, return_counts=True)
    usual: dict[str, str] = {}
    problems = []
    for place in np.argsort(-counts, kind="stable"):
        label = classes[numbers[place]]
        other = usual.setdefault("".join(label.lower().split()), label)
        if other != label:
            file, line = rows.where(int(chosen[first[place]]))
            what = f"the label {label!r} ({counts[place]:,} ×) differs from {other!r} only in case or blanks"
            remedy = "Write them alike if they are one class; here they are two"
            problems.append(Problem(file, line, what, remedy, warning=True))
    return problems


def sorted_labels(labels: set[str]) -> tuple[str, ...]:
    """In the order of the alphabet; by value when all of them are whole numbers."""
    if all(label.isdecimal() for label in labels):
        return tuple(sorted(labels, key=int))
    return tuple(sorted(labels))


def _duplicates(
    rows: Rows,
    box: NDArray[np.float64],
    usable: NDArray[np.bool_],
    image: NDArray[np.int64],
    label: NDArray[np.int64],
) -> list[Problem]:
    """Rows that say what an earlier row said already: same image, label and corners."""
    chosen = np.flatnonzero(usable)
    if not len(chosen):
        return []
    values = np.column_stack([image[chosen], label[chosen], box[chosen] + 0.0])  # + 0.0 makes −0 equal to 0
    keys = np.ascontiguousarray(values, np.float64).view(f"V{values.shape[1] * 8}").ravel()
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    earlier = chosen[first[places]]
    problems = []
    for row, original in zip(chosen[earlier != chosen].tolist(), earlier[earlier != chosen].tolist(), strict=True):
        file, line = rows.where(row)
        what = f"the row repeats {_place(rows, original, file)}: same image, box and label"
        problems.append(Problem(file, line, what, "Remove one of them", warning=True))
    return problems


def _place(rows: Rows, row: int, file: str) -> str:
    other, line = rows.where(row)
    return f"line {line}" if other == file else f"{other} line {line}"
