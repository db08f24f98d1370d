"""COCO JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.formats.boxes.annotations import AnnotatedImages, read_annotations
from picture_making import write_picture


def coco(folder: Path, annotations: list[dict[str, Any]], **changes: Any) -> AnnotatedImages:
    for number, name in enumerate(("a.png", "b.png")):
        write_picture(folder / name, seed=number)
    document = {
        "images": [{"id": 7, "file_name": "a.png"}, {"id": 8, "file_name": "b.png"}],
        "categories": [{"id": 1, "name": "Tree"}, {"id": 5, "name": "Bush"}],
        "annotations": annotations,
        **changes,
    }
    (folder / "coco.json").write_text(json.dumps(document))
    return read_annotations(folder / "coco.json")


def test_boxes_are_x_y_width_height_with_or_without_polygons(tmp_path: Path) -> None:
    polygon = [[1, 2, 11, 2, 11, 22]]
    found = coco(
        tmp_path,
        [
            {"image_id": 7, "category_id": 1, "bbox": [1, 2, 10, 20]},
            {"image_id": 7, "category_id": 5, "bbox": [2, 2, 10, 20], "segmentation": polygon},
            {"image_id": 7, "category_id": 1, "segmentation": [[3, 4, 9, 4, 9, 8], [20, 4, 22, 4, 22, 10]]},
        ],
    )
    assert found.boxes.tolist() == [[1, 2, 11, 22], [2, 2, 12, 22], [3, 4, 22, 10]]
    assert [found.classes[label] for label in found.labels] == ["Tree", "Bush", "Tree"]
    assert found.names == ("a.png", "b.png")
    assert np.diff(found.starts).tolist() == [3, 0]
    assert found.problems == ()


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        ({"image_id": 9, "category_id": 1, "bbox": [1, 2, 3, 4]}, "image_id 9 is not in the list of images"),
        ({"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4]}, "category_id 3 is not in the list of categories"),
        ({"image_id": 7, "category_id": 1, "bbox": [1, 2, 3]}, "bbox [1, 2, 3] is not four finite numbers"),
        ({"image_id": 7, "category_id": 1, "bbox": [1, 2, float("nan"), 4]}, "is not four finite numbers"),
        ({"image_id": 7, "category_id": 1, "bbox": "1,2,3,4"}, "is not four finite numbers"),
        ({"image_id": 7, "category_id": 1}, "there is neither bbox nor segmentation"),
        ({"image_id": 7, "category_id": 1, "segmentation": {"counts": "x"}}, "run-length encoded"),
        ({"image_id": 7, "category_id": 1, "bbox": [1, 2, -3, 4]}, "corners are swapped"),
    ],
)
def test_each_broken_annotation_is_named_by_its_number(tmp_path: Path, annotation: dict[str, Any], said: str) -> None:
    good = {"image_id": 8, "category_id": 1, "bbox": [1, 2, 3, 4]}
    found = coco(tmp_path, [good, annotation])
    assert [problem.row for problem in found.problems] == [2]
    assert said in found.problems[0].what
    assert "coco.json record 2: " in str(found.problems[0])
    assert len(found.boxes) == 1


def test_crowd_regions_are_left_out_and_said(tmp_path: Path) -> None:
    crowd = {"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4], "iscrowd": 1}
    found = coco(tmp_path, [crowd, {"image_id": 8, "category_id": 1, "bbox": [1, 2, 3, 4]}])
    assert len(found.boxes) == 1
    assert [(problem.warning, problem.what[:15]) for problem in found.problems] == [(True, "1 crowd regions")]


def test_a_file_without_categories_has_their_numbers_as_names(tmp_path: Path) -> None:
    found = coco(tmp_path, [{"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4]}], categories=[])
    assert found.classes == ("3",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"images": [], "annotations": [}', "is no whole JSON"),
        ("[1, 2]", "holds a list, not an object"),
        ('{"image": []}', "has no list 'images'; its keys are image"),
        ('{"images": 3}', "'images' is no list"),
    ],
)
def test_another_json_is_said_to_be_one(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ps.DataError, match=r"x\.json") as caught:
        read_annotations(tmp_path / "x.json")
    assert said in str(caught.value)
