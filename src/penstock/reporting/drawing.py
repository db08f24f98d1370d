"""A sample as a picture: its image with boxes and labels drawn on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.opencv import opencv
from penstock.codecs.resizing import resized
from penstock.errors import RecipeError
from penstock.geometry import scaled
from penstock.samples import Sample, Schema
from penstock.wording import counted

# Smaller images are enlarged to this, so that a 32-pixel one can be looked at.
SMALLEST_SIDE = 320

# Distinct on vegetation, skin and grey floors alike; the class number picks one.
COLOURS = ((230, 25, 75), (255, 225, 25), (0, 130, 200), (245, 130, 48), (145, 30, 180), (70, 240, 240), (240, 50, 230))
CAPTION_HEIGHT = 26


def draw_sample(sample: Sample, schema: Schema) -> NDArray[np.uint8]:
    """The image of a sample as RGB, with boxes on it and its labels in words below it."""
    image = schema.image
    if image is None:
        raise RecipeError("the samples of this pack have no image to draw.")
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
