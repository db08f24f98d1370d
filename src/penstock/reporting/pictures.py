"""Samples as pictures: images with their boxes and labels, and thumbnails."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.opencv import opencv
from penstock.codecs.resizing import resized
from penstock.errors import OptionError
from penstock.geometry import scaled
from penstock.reporting.page import Markup, tag
from penstock.runs.run import Line
from penstock.samples import Sample, Schema
from penstock.storage.plain_files import read_file
from penstock.wording import counted

# A sample as a picture: its image with boxes and labels drawn on it.


# Smaller images are enlarged to this, so that a 32-pixel one can be looked at.
SMALLEST_SIDE = 320

# Distinct on vegetation, skin and grey floors alike; the class number picks one.
COLOURS = ((230, 25, 75), (255, 225, 25), (0, 130, 200), (245, 130, 48), (145, 30, 180), (70, 240, 240), (240, 50, 230))
CAPTION_HEIGHT = 26


def draw_sample(sample: Sample, schema: Schema) -> NDArray[np.uint8]:
    """The image of a sample as RGB, with boxes on it and its labels in words below it."""
    image = schema.image
    if image is None:
        raise OptionError("the samples of this pack have no image to draw.")
    pixels = np.array(sample[image.name])
    factor = max(1, -(-SMALLEST_SIDE // max(1, min(pixels.shape[:2]))))
    picture = resized(pixels, pixels.shape[1] * factor, pixels.shape[0] * factor, nearest=True)
    for field in schema.fields:
        if field.kind == "boxes":
            labels = np.asarray(sample.get(box_label_field(schema), np.zeros(len(sample[field.name]), int)))
            draw_boxes(picture, scaled(sample[field.name], factor, factor), labels, schema.classes)
    return with_caption(picture, caption(sample, schema))


def box_label_field(schema: Schema) -> str:
    """The field that numbers the class of each box."""
    return "box_label" if "box_label" in schema else ""


def caption(sample: Sample, schema: Schema) -> str:
    """A sample's labels in words."""
    words = [str(sample["key"])] if sample.get("key") else []
    for field in schema.fields:
        value = sample.get(field.name)
        if field.kind == "class":
            words.append(_class_name(int(sample[field.name]), schema.classes))
        elif field.kind == "boxes":
            count = len(np.asarray(value))
            words.append(counted(count, "box"))
        elif field.kind == "labels" and field.name == "labels":
            words.append(_frame_labels(np.asarray(value), schema.classes))
    return "  ".join(words)


def _class_name(number: int, classes: Sequence[str]) -> str:
    return classes[number] if 0 <= number < len(classes) else "no label"


def _frame_labels(values: NDArray[Any], classes: Sequence[str]) -> str:
    if (values < 0).all():
        return "not labelled"
    present = [name for name, value in zip(classes, values, strict=True) if value == 1]
    return ", ".join(present) or "none"


def draw_boxes(
    picture: NDArray[np.uint8], boxes: NDArray[np.floating], labels: NDArray[Any], classes: Sequence[str]
) -> None:
    """Boxes onto a picture, in the colour of their class; with the name where there are several."""
    cv2 = opencv()
    several = len(set(labels.tolist())) > 1
    for (x1, y1, x2, y2), label in zip(boxes, labels, strict=True):
        colour = COLOURS[int(label) % len(COLOURS)]
        first, second = (round(float(x1)), round(float(y1))), (round(float(x2)) - 1, round(float(y2)) - 1)
        cv2.rectangle(picture, first, second, colour, 2)
        if several:
            _write(picture, _class_name(int(label), classes), (first[0] + 2, max(12, first[1] - 4)), colour, 0.4)


def with_caption(picture: NDArray[np.uint8], text: str) -> NDArray[np.uint8]:
    """A picture with a line of words below it."""
    strip = np.full((CAPTION_HEIGHT, picture.shape[1], 3), 24, np.uint8)
    fitting = max(8, picture.shape[1] // 8)
    shown = text if len(text) <= fitting else "..." + text[-fitting + 3 :]
    _write(strip, shown, (6, 18), (235, 235, 235), 0.45)
    return np.vstack([picture, strip])


def _write(picture: NDArray[np.uint8], text: str, place: tuple[int, int], colour: tuple[int, ...], size: float) -> None:
    cv2 = opencv()
    # OpenCV's font has only ASCII.
    plain = text.encode("ascii", "replace").decode()
    # A dark rim keeps the letters legible on any ground.
    cv2.putText(picture, plain, place, cv2.FONT_HERSHEY_SIMPLEX, size, (24, 24, 24), 3, cv2.LINE_AA)
    cv2.putText(picture, plain, place, cv2.FONT_HERSHEY_SIMPLEX, size, colour, 1, cv2.LINE_AA)


# Small pictures of a Run, inside of a page.


MOST_BYTES = 300_000  # a thumbnail has a few thousand; what is larger was not made by a training
KINDS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}


def thumbnail(folder: Path, name: Any, description: str) -> Markup:
    """A picture of a Run, or a frame that says that there is none."""
    source = picture_source(folder, name)
    if source is None:
        return tag("div", "no picture", class_="blank", role="img", aria_label=f"No picture: {description}")
    return tag("img", src=source, alt=description)


def picture_source(folder: Path, name: Any) -> str | None:
    """A picture of a Run as an address that holds it; None where there is none."""
    content = _picture(folder, name) if isinstance(name, str) else None
    kind = None if content is None else next((kind for head, kind in KINDS.items() if content.startswith(head)), None)
    return None if content is None or kind is None else f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _picture(folder: Path, name: str) -> bytes | None:
    """The bytes of a file in the Run; a name that leads out of it is not followed."""
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return read_file(path)
    except (OSError, ValueError):  # such as a name that no system has
        return None


# Samples of detection as pictures: what is true and what was found, drawn over the image by the page itself.


# Drawn in this order: what was found lies above what is true.
BOX_COLOURS = (("true", "#ffe119"), ("found", "#e6194b"))


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
    outlines = [_outline(box, colour) for kind, colour in BOX_COLOURS for box in _boxes(row["boxes"].get(kind))]
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
