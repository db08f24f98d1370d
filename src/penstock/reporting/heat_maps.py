"""Confusion matrices: a table of coloured cells, or a picture where classes are many."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.reporting.page import Markup, joined, shortened, tag
from penstock.reporting.wording import percent
from penstock.wording import counted

MOST_CELLS_ACROSS = 24  # with more classes numbers would no longer be read
TINT = (178, 114, 0)  # blue, as OpenCV orders colours; its opacity is the share
WHITE_FROM = 0.55  # the strength from which letters on the tint are white


def confusion_counts(value: Any, class_count: int) -> NDArray[np.float64] | None:
    """Counts of true class × answered class; None where a file holds no such matrix."""
    try:
        counts = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if counts.shape != (class_count, class_count) or not class_count or not np.isfinite(counts).all():
        return None
    return counts if (counts >= 0).all() else None


def row_shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each true class, the share of each answer."""
    shares: NDArray[np.float64] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return shares


def confusion_map(counts: NDArray[np.float64], classes: Sequence[str]) -> Markup:
    """Rows are what was true, columns what was answered."""
    if len(classes) <= MOST_CELLS_ACROSS:
        return _cells(counts, classes)
    return _picture(counts)


def _cells(counts: NDArray[np.float64], classes: Sequence[str]) -> Markup:
    shares = row_shares(counts)
    head = tag("tr", tag("td", class_="corner"), [_column_name(name) for name in classes])
    rows = [
        tag("tr", tag("th", shortened(name, 28), scope="row"), _row(counts[number], shares[number], number, classes))
        for number, name in enumerate(classes)
    ]
    content = tag("table", tag("thead", head), tag("tbody", rows), class_="confusion")
    return _framed(tag("div", content, class_="scroll", tabindex="0", role="region", aria_label="Confusion matrix"))


def _column_name(name: str) -> Markup:
    return tag("th", tag("span", shortened(name, 20)), scope="col")


def _row(counts: NDArray[np.float64], shares: NDArray[np.float64], truth: int, classes: Sequence[str]) -> Markup:
    tints = np.where(np.arange(len(classes)) == truth, shares, np.sqrt(shares))  # rare mistakes are to be seen
    return joined(
        tag(
            "td",
            f"{count:,.0f}" if count else tag("span", "0", class_="zero"),
            class_=_cell_class(number == truth, float(tint)),
            style=f"--share:{tint:.3f}",
            title=f"{classes[truth]} answered as {classes[number]}: {count:,.0f} ({percent(float(share))})",
        )
        for number, (count, share, tint) in enumerate(zip(counts, shares, tints, strict=True))
    )


def _cell_class(is_right: bool, tint: float) -> str:
    return ("right" if is_right else "wrong") + (" strong" if tint >= WHITE_FROM else "")


def _picture(counts: NDArray[np.float64]) -> Markup:
    """One pixel for each cell, enlarged by the browser; the page's ground shows through where there is nothing."""
    from penstock.codecs.opencv import opencv

    pixels = np.empty((*counts.shape, 4), np.uint8)
    pixels[..., :3] = TINT
    # The root lets rare answers be seen beside the diagonal.
    pixels[..., 3] = np.round(255 * np.sqrt(row_shares(counts)))
    _, encoded = opencv().imencode(".png", pixels)
    source = f"data:image/png;base64,{base64.b64encode(encoded.tobytes()).decode()}"
    picture = tag("img", src=source, class_="pixels", width=counts.shape[1], height=counts.shape[0], alt=_words(counts))
    return _framed(picture)


def _words(counts: NDArray[np.float64]) -> str:
    right = float(np.trace(counts) / max(counts.sum(), 1))
    return (
        f"Confusion matrix of {counted(len(counts), 'class')}; {percent(right)} stand on the diagonal, "
        f"where answers are right"
    )


def _framed(content: Markup) -> Markup:
    across = tag("p", "answered →", class_="axis")
    return tag("figure", tag("figcaption", "↓ true", across), content, class_="matrix")


def most_confused(counts: NDArray[np.float64], most: int) -> list[tuple[int, int, float]]:
    """The pairs that were taken for each other most often: true class, answer, and how many."""
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    pairs = [divmod(int(place), len(counts)) for place in order]
    return [(truth, answer, float(wrong[truth, answer])) for truth, answer in pairs if wrong[truth, answer] > 0]
