"""Pictures of the most wrong samples of detection, with their boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.codecs.images import encode_image
from penstock.reporting.pictures import boxed_picture, has_boxes

ROW: dict[str, Any] = {"width": 40, "height": 30, "thumbnail": "thumbs/a.jpg"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "thumbs").mkdir()
    (tmp_path / "thumbs" / "a.jpg").write_bytes(encode_image(np.zeros((30, 40, 3), np.uint8), "jpeg"))
    return tmp_path


def test_true_and_found_boxes_lie_over_the_image(folder: Path) -> None:
    row = {**ROW, "boxes": {"true": [[1, 2, 11, 22.5]], "found": [[3, 4, 10, 20], [0, 0, 5, 5]]}}
    assert has_boxes(row)
    picture = str(boxed_picture(folder, row, 'two "boxes"'))
    assert 'viewBox="0 0 40 30"' in picture
    assert picture.count("<rect") == 3
    assert 'x="1" y="2" width="10" height="20.5"' in picture
    assert "data:image/jpeg;base64," in picture
    assert "&quot;boxes&quot;" in picture


def test_what_is_no_box_is_left_out(folder: Path) -> None:
    strange: list[Any] = [[1, 2, 3], "x", [1, 2, 3, "<b>"], [1, 2, float("nan"), 4], [1, 1, 2, 2]]
    picture = str(boxed_picture(folder, {**ROW, "boxes": {"true": strange, "found": None}}, ""))
    assert picture.count("<rect") == 1


def test_rows_of_other_tasks_and_missing_pictures_have_none(folder: Path) -> None:
    assert not has_boxes({"truth": "cat"})
    assert not has_boxes({"boxes": {}, "width": 0, "height": 3})
    assert boxed_picture(folder, {**ROW, "thumbnail": "../a.jpg", "boxes": {}}, "") is None
