"""Pascal VOC."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.formats.boxes.annotations import read_annotations
from picture_making import write_picture

OBJECT = """  <object>
    <name>{name}</name>
    <bndbox><xmin>{0}</xmin><ymin>{1}</ymin><xmax>{2}</xmax><ymax>{3}</ymax></bndbox>
    <part><name>leaf</name><bndbox><xmin>0</xmin><ymin>0</ymin><xmax>1</xmax><ymax>1</ymax></bndbox></part>
  </object>
"""


def write_voc(path: Path, objects: str = "", filename: str = "a.png") -> Path:
    path.write_text(f"<annotation>\n  <filename>{filename}</filename>\n{objects}</annotation>\n")
    return path


def test_numbers_are_kept_as_written_and_parts_are_left_alone(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png")
    objects = OBJECT.format(1, 2, 11, 22, name="Tree") + OBJECT.format(1.5, 2, 40, 30, name="Bush")
    found = read_annotations(write_voc(tmp_path / "a.xml", objects))
    assert found.boxes.tolist() == [[1, 2, 11, 22], [1.5, 2, 40, 30]]
    assert [found.classes[label] for label in found.labels] == ["Tree", "Bush"]
    assert found.rows.tolist() == [3, 8]
    assert found.problems == ()


def test_a_file_without_objects_is_a_negative(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png")
    write_picture(tmp_path / "b.png")
    write_voc(tmp_path / "a.xml", OBJECT.format(1, 2, 11, 22, name="Tree"))
    write_voc(tmp_path / "b.xml", filename="b.png")
    found = read_annotations(tmp_path)
    assert np.diff(found.starts).tolist() == [1, 0]
    assert found.problems == ()


def test_an_image_that_was_renamed_is_found_by_the_stem_of_the_file(tmp_path: Path) -> None:
    write_picture(tmp_path / "b.png")
    assert read_annotations(write_voc(tmp_path / "b.xml", filename="IMG_001.jpg")).files == (tmp_path / "b.png",)


def test_two_images_with_the_stem_are_not_guessed_between(tmp_path: Path) -> None:
    write_picture(tmp_path / "b.png")
    write_picture(tmp_path / "b.jpg")
    found = read_annotations(write_voc(tmp_path / "b.xml", filename="IMG_001.jpg"))
    assert any("b.jpg, b.png" in problem.what for problem in found.problems)


@pytest.mark.parametrize(
    ("corners", "said"),
    [
        (("x", 2, 3, 4), "xmin 'x' is not a finite number"),
        (("", 2, 3, 4), "xmin is missing"),
        ((1, 2, "inf", 4), "xmax"),
    ],
)
def test_a_corner_that_is_no_number_is_named_by_its_line(
    tmp_path: Path, corners: tuple[object, ...], said: str
) -> None:
    write_picture(tmp_path / "a.png")
    (problem,) = read_annotations(write_voc(tmp_path / "a.xml", OBJECT.format(*corners, name="Tree"))).problems
    assert problem.row == 3
    assert said in problem.what


def test_damaged_and_foreign_files_are_problems(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png")
    write_picture(tmp_path / "b.png")
    (tmp_path / "a.xml").write_text("<annotation>\n<object>")
    (tmp_path / "b.xml").write_text("<gpx></gpx>")
    found = [problem for problem in read_annotations(tmp_path).problems if not problem.warning]
    assert [(problem.row, problem.what) for problem in found] == [
        (2, "is no whole XML: no element found"),
        (None, "is no Pascal VOC file: its first element is <gpx>, expected <annotation>"),
    ]
    with pytest.raises(ps.DataError, match="no whole XML"):
        ps.read_pascal_voc(tmp_path / "a.xml")


def test_read_pascal_voc_gives_the_six_columns(tmp_path: Path) -> None:
    objects = OBJECT.format(1, 2, 11, 22, name="Tree") + OBJECT.format(1, 2, 3, 4, name="Bush")
    frame = ps.read_pascal_voc(write_voc(tmp_path / "a.xml", objects))
    assert list(frame.columns) == ["image_path", "xmin", "ymin", "xmax", "ymax", "label"]
    assert frame.to_numpy().tolist() == [["a.png", 1, 2, 11, 22, "Tree"], ["a.png", 1, 2, 3, 4, "Bush"]]


def test_read_pascal_voc_of_a_file_without_objects_is_an_empty_table(tmp_path: Path) -> None:
    frame = ps.read_pascal_voc(write_voc(tmp_path / "a.xml"))
    assert frame.shape == (0, 6)


def test_the_real_tile_has_574_rows(shared_data: Path) -> None:
    frame = ps.read_pascal_voc(shared_data / "trees_neon" / "2019_YELL_2_528000_4978000_image_crop2.xml")
    assert len(frame) == 574
    assert set(frame.label) == {"Tree"}


def test_the_real_plots_have_3867_boxes_and_name_the_missing_images(shared_data: Path) -> None:
    found = read_annotations(shared_data / "neon_eval" / "xml", images=shared_data / "neon_eval" / "rgb")
    assert (len(found), len(found.boxes)) == (125, 3867)
    missing = [problem for problem in found.problems if "does not exist" in problem.what]
    assert len(missing) == 25
    assert np.count_nonzero(found.sizes[:, 0] == 0) == 25


@pytest.mark.parametrize("name", ["a.txt", "float_annotations.txt"])
def test_a_text_file_with_voc_inside_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    write_picture(tmp_path / "a.png")
    path = write_voc(tmp_path / name, OBJECT.format(1, 2, 11, 22, name="Tree"))
    path.write_text('<?xml version="1.0"?>\n' + path.read_text())
    assert read_annotations(path).boxes.tolist() == [[1, 2, 11, 22]]
    assert len(ps.open(path)) == 1


def test_objects_that_are_not_where_voc_has_them_are_no_negative(tmp_path: Path) -> None:
    write_picture(tmp_path / "0.png")
    objects = "<object><possibleresult><name>Ship</name></possibleresult><points><point>0,0</point></points></object>"
    text = f"<annotation><size><width>2</width></size><objects>{objects}</objects></annotation>"
    (tmp_path / "0.xml").write_text(text)
    found = read_annotations(tmp_path / "0.xml")
    (problem,) = (one for one in found.problems if not one.warning)
    assert (
        problem.what
        == "is no Pascal VOC file: its objects are in annotation/objects/object, expected annotation/object"
    )
