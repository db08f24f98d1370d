"""Samples of detection as pictures: what is true and what was found, drawn over the image by the page itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.reporting.markup import Markup, tag
from penstock.reporting.thumbnails import picture_source
from penstock.runs.run import Line

# Drawn in this order: what was found lies above what is true.
COLOURS = (("true", "#ffe119"), ("found", "#e6194b"))


def has_boxes(row: Line) -> bool:
    """Whether a row of the most wrong samples tells of boxes."""
    boxes = row.get("boxes")
    return isinstance(boxes, Mapping) and all(
        _is_number(row.get(side)) and row[side] > 0 for side in ("width", "height")
    )


def boxed_picture(folder: Path, row: Line, description: str) -> Markup | None:
    """The image with its boxes; None where the Run has no picture of it."""
    source = picture_source(folder, row.get("thumbnail"))
    if source is None:
        return None
    width, height = row["width"], row["height"]
    image = tag("image", href=source, width=width, height=height)
    outlines = [_outline(box, colour) for kind, colour in COLOURS for box in _boxes(row["boxes"].get(kind))]
    return tag(
        "svg", image, outlines, viewBox=f"0 0 {width} {height}", role="img", aria_label=description, class_="boxed"
    )


def _boxes(values: Any) -> list[list[float]]:
    """What of a file that anybody may have changed is a box."""
    some = values if isinstance(values, list) else []
    return [box for box in some if isinstance(box, list) and len(box) == 4 and all(map(_is_number, box))]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _outline(box: list[float], colour: str) -> Markup:
    x1, y1, x2, y2 = box
    size = {"width": f"{max(0, x2 - x1):g}", "height": f"{max(0, y2 - y1):g}"}
    return tag(
        "rect",
        x=f"{x1:g}",
        y=f"{y1:g}",
        **size,
        fill="none",
        stroke=colour,
        stroke_width=2,
        vector_effect="non-scaling-stroke",
    )
