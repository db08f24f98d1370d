"""A sample as a picture: boxes where they are, labels in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.reporting.pictures import CAPTION_HEIGHT, COLOURS, caption, draw_sample

BOXED = ps.Schema(
    (ps.Field("image", "image"), ps.Field("boxes", "boxes"), ps.Field("box_label", "labels", "int64")),
    ("Alive", "Dead"),
)


def boxed(*boxes: tuple[float, ...], labels: tuple[int, ...] = (), side: int = 400) -> dict[str, Any]:
    return {
        "key": "plot.tif#0_0",
        "image": np.full((side, side, 3), 128, np.uint8),
        "boxes": np.array(boxes, np.float32).reshape(-1, 4),
        "box_label": np.array(labels or [0] * len(boxes), np.int64),
    }


def test_a_box_is_drawn_where_it_is() -> None:
    picture = draw_sample(boxed((100, 50, 200, 150)), BOXED)
    assert picture.shape == (400 + CAPTION_HEIGHT, 400, 3)
    for x, y in ((100, 100), (199, 100), (150, 50), (150, 149)):
        assert tuple(picture[y, x]) == COLOURS[0]
    assert tuple(picture[100, 150]) == (128, 128, 128)


def test_a_small_image_is_enlarged_with_its_boxes() -> None:
    picture = draw_sample(boxed((8, 8, 24, 24), side=32), BOXED)
    assert picture.shape[1] == 320
    assert tuple(picture[160, 80]) == COLOURS[0] and tuple(picture[160, 160]) == (128, 128, 128)


def test_classes_have_colours_of_their_own() -> None:
    picture = draw_sample(boxed((20, 50, 80, 100), (120, 50, 180, 100), labels=(0, 1)), BOXED)
    assert tuple(picture[75, 20]) == COLOURS[0] and tuple(picture[75, 120]) == COLOURS[1]


def test_drawing_leaves_the_sample_as_it_was() -> None:
    sample = boxed((100, 50, 200, 150))
    sample["image"].flags.writeable = False
    draw_sample(sample, BOXED)
    assert (sample["image"] == 128).all()


def test_a_caption_says_the_labels_in_words() -> None:
    assert caption(boxed((1, 1, 5, 5)), BOXED) == "plot.tif#0_0  1 box"
    assert caption(boxed(), BOXED) == "plot.tif#0_0  0 boxes"
    labelled = ps.Schema((ps.Field("image", "image"), ps.Field("label", "class")), ("cat", "dog"))
    assert caption({"label": 1}, labelled) == "dog"
    assert caption({"label": -1}, labelled) == "no label"


@pytest.mark.parametrize(
    ("values", "words"),
    [([0, 1, 1], "walk, groom"), ([1, 0, 0], "background"), ([-1, -1, -1], "not labelled"), ([0, 0, 0], "none")],
)
def test_a_caption_names_the_behaviours_of_a_frame(values: list[int], words: str) -> None:
    schema = ps.Schema((ps.Field("labels", "labels", "int8", (3,)),), ("background", "walk", "groom"))
    assert caption({"labels": np.array(values, np.int8)}, schema) == words


def test_a_name_in_any_script_can_be_drawn() -> None:
    assert draw_sample({**boxed(), "key": "größe/日本.tif"}, BOXED).shape[1] == 400


def test_a_sample_without_an_image_is_refused() -> None:
    with pytest.raises(ps.OptionError, match="no image to draw"):
        draw_sample({"x": 1}, ps.Schema((ps.Field("x", "number", "int64"),)))
