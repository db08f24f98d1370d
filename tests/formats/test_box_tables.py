"""Tables of boxes in every form that people have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import penstock as ps
from penstock.formats.boxes.annotations import AnnotatedImages, read_annotations
from picture_making import write_picture

HEADER = "image_path,xmin,ymin,xmax,ymax,label\n"
EXPECTED = [[1, 2, 11, 22], [5.5, 6, 30, 28]]


def table(folder: Path, text: str | bytes, name: str = "boxes.csv") -> Path:
    """A table beside two pictures of 40×30 px."""
    write_picture(folder / "a.png")
    write_picture(folder / "b.png", seed=1)
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder: Path, text: str | bytes, name: str = "boxes.csv", **options: Any) -> AnnotatedImages:
    return read_annotations(table(folder, text, name), **options)


def problems(folder: Path, text: str | bytes, **options: Any) -> list[tuple[int | None, str]]:
    return [(problem.row, problem.what) for problem in read(folder, text, **options).problems]


FORMS = {
    "corner and size": "image,x,y,w,h,label\na.png,1,2,10,20,Tree\na.png,5.5,6,24.5,22,Bush\n",
    "corner, width and height": "filename,x,y,width,height,class\na.png,1,2,10,20,Tree\na.png,5.5,6,24.5,22,Bush\n",
    "centre and size": "image,x_center,y_center,w,h,label\na.png,6,12,10,20,Tree\na.png,17.75,17,24.5,22,Bush\n",
    "as documented": (
        "image_path, xmin, ymin, xmax, ymax, label\na.png, 1, 2, 11, 22, Tree\na.png, 5.5, 6, 30, 28, Bush"
    ),
    "another order": "label,ymax,xmax,ymin,xmin,image_path\nTree,22,11,2,1,a.png\nBush,28,30,6,5.5,a.png\n",
    "x before y": "image_path,xmin,xmax,ymin,ymax,label\na.png,1,11,2,22,Tree\na.png,5.5,30,6,28,Bush\n",
    "upper case": "IMAGE_PATH,XMIN,YMIN,XMAX,YMAX,LABEL\na.png,1,2,11,22,Tree\na.png,5.5,6,30,28,Bush\n",
    "an index column": ",image_path,xmin,ymin,xmax,ymax,label\n0,a.png,1,2,11,22,Tree\n1,a.png,5.5,6,30,28,Bush\n",
    "headerless": "a.png,1,2,11,22,Tree\na.png,5.5,6,30,28,Bush\n",
    "semicolons and decimal commas": (
        "image;xmin;ymin;xmax;ymax;class\na.png;1,0;2;11;22;Tree\na.png;5,5;6;30;28;Bush\n"
    ),
    "headerless with decimal commas": "a.png;1,0;2;11;22;Tree\na.png;5,5;6;30;28;Bush\n",
    "tabs": "file\tx1\ty1\tx2\ty2\tcategory\na.png\t1\t2\t11\t22\tTree\na.png\t5.5\t6\t30\t28\tBush\n",
    "windows line ends": "image_path,xmin,ymin,xmax,ymax,label\r\na.png,1,2,11,22,Tree\r\na.png,5.5,6,30,28,Bush\r\n",
    "old line ends": "image_path,xmin,ymin,xmax,ymax,label\ra.png,1,2,11,22,Tree\ra.png,5.5,6,30,28,Bush",
    "a byte order mark": (
        b"\xef\xbb\xbfimage_path,xmin,ymin,xmax,ymax,label\na.png,1,2,11,22,Tree\na.png,5.5,6,30,28,Bush"
    ),
    "UTF-16": "image_path,xmin,ymin,xmax,ymax,label\na.png,1,2,11,22,Tree\na.png,5.5,6,30,28,Bush\n".encode("utf-16"),
    "quotes after blanks": (
        'image_path, xmin, ymin, xmax, ymax, label\n"a.png", 1, 2, 11, 22, "Tree"\na.png, 5.5, 6, 30, 28, "Bush"\n'
    ),
    "WKT": (
        'image_path,geometry,label\na.png,"POLYGON ((1 2, 11 2, 11 22, 1 22, 1 2))",Tree\n'
        'a.png,"MULTIPOLYGON (((5.5 6, 30 6, 30 28, 5.5 6)))",Bush\n'
    ),
    "more columns": (
        "image_path,width,height,xmin,ymin,xmax,ymax,label,score\n"
        "a.png,9,9,1,2,11,22,Tree,1\na.png,9,9,5.5,6,30,28,Bush,1"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_accepted_form_gives_the_same_boxes(tmp_path: Path, form: str) -> None:
    found = read(tmp_path, FORMS[form])
    assert found.problems == ()
    assert found.boxes.tolist() == EXPECTED
    assert found.boxes.dtype == np.float32
    assert [found.classes[label] for label in found.labels] == ["Tree", "Bush"]
    assert found.classes == ("Bush", "Tree")
    assert found.names == ("a.png",)
    assert found.sizes.tolist() == [[40, 30]]


def test_a_data_frame_and_parquet_give_the_same_as_the_csv(tmp_path: Path) -> None:
    path = table(tmp_path, FORMS["as documented"])
    frame = pd.read_csv(path, skipinitialspace=True)
    frame.to_parquet(tmp_path / "boxes.parquet")
    for given in (frame, tmp_path / "boxes.parquet"):
        found = read_annotations(given, images=tmp_path)
        assert found.boxes.tolist() == EXPECTED
        assert found.problems == ()


def test_a_row_of_a_data_frame_is_named_by_its_index(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png")
    columns = {"image_path": "a.png", "xmin": [1, 9], "ymin": 1, "xmax": [5, 3], "ymax": 5, "label": "Tree"}
    frame = pd.DataFrame(columns, index=[70, 80])
    (problem,) = read_annotations(frame, images=tmp_path).problems
    assert str(problem).startswith("DataFrame record 80: corners are swapped: xmax 3 is less than xmin 9")


def test_negatives_are_zero_rows_and_rows_without_coordinates(tmp_path: Path) -> None:
    text = "image_path,xmin,ymin,xmax,ymax,label\na.png,1,2,11,22,Tree\nb.png,0,0,0,0,Tree\nc.png,,,,,\n"
    write_picture(tmp_path / "c.png")
    found = read(tmp_path, text)
    assert found.names == ("a.png", "b.png", "c.png")
    assert np.diff(found.starts).tolist() == [1, 0, 0]
    assert found.negatives == 2
    assert found.boxes_of(1).shape == (0, 4)
    assert [problem.what for problem in found.problems] == ["2 of 3 images have no boxes"]
    assert all(problem.warning for problem in found.problems)


def test_headerless_negatives_are_understood_in_the_first_line(tmp_path: Path) -> None:
    found = read(tmp_path, "a.png,,,,,\nb.png,1,2,11,22,Tree\n")
    assert found.names == ("a.png", "b.png")
    assert np.diff(found.starts).tolist() == [0, 1]
    assert found.problems == ()


def test_the_label_of_a_negative_row_is_no_class(tmp_path: Path) -> None:
    found = read(tmp_path, "image_path,xmin,ymin,xmax,ymax,label\na.png,1,2,11,22,Tree\nb.png,0,0,0,0,none\n")
    assert found.classes == ("Tree",)


def test_points_become_boxes_that_end_at_the_border(tmp_path: Path) -> None:
    found = read(tmp_path, "x,y\n20,10\n1,29\n", name="a.csv", point_buffer=4)
    assert found.names == ("a.png",)
    assert found.boxes.tolist() == [[16, 6, 24, 14], [0, 25, 5, 30]]
    assert found.classes == ("object",)
    assert found.problems == ()


def test_a_point_outside_its_image_is_a_problem(tmp_path: Path) -> None:
    found = read(tmp_path, "x,y\n20,10\n41,5\n", name="a.csv", point_buffer=4)
    assert len(found.boxes) == 1
    assert [(problem.row, "wholly outside a.png" in problem.what) for problem in found.problems] == [(3, True)]


def test_points_need_a_buffer(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="point_buffer"):
        read(tmp_path, "x,y\n20,10\n", name="a.csv")
    with pytest.raises(ps.OptionError, match="above 0, or metres"):
        read(tmp_path, "x,y\n20,10\n", name="a.csv", point_buffer=-1)


def test_wkt_points_take_the_buffer_too(tmp_path: Path) -> None:
    found = read(tmp_path, "image_path,geometry,label\na.png,POINT (20 10),Tree\n", point_buffer=2)
    assert found.boxes.tolist() == [[18, 8, 22, 12]]


def test_broken_wkt_is_named_by_its_line(tmp_path: Path) -> None:
    assert problems(tmp_path, "image_path,geometry,label\na.png,POLYGON ((1 2),Tree\n") == [
        (2, "geometry 'POLYGON ((1 2)' is not WKT")
    ]


def test_a_single_given_class_names_the_boxes_of_a_table_without_labels(tmp_path: Path) -> None:
    found = read(tmp_path, "image_path,xmin,ymin,xmax,ymax\na.png,1,2,3,4\n", classes="Crown")
    assert found.classes == ("Crown",)
    assert found.labels.tolist() == [0]


def test_numeric_labels_become_their_text_in_order_of_value(tmp_path: Path) -> None:
    text = "image_path,xmin,ymin,xmax,ymax,label\na.png,1,2,3,4,10\na.png,2,2,3,4,2\n"
    assert read(tmp_path, text).classes == ("2", "10")
    frame = pd.read_csv(tmp_path / "boxes.csv")
    assert read_annotations(frame.astype({"label": float}), images=tmp_path).classes == ("2", "10")


def test_an_empty_table_beside_others_is_about_the_image_of_its_stem(tmp_path: Path) -> None:
    found = read_annotations([table(tmp_path, "", "a.csv"), table(tmp_path, "xmin,ymin,xmax,ymax\n1,2,9,9\n", "b.csv")])
    assert sorted(found.names) == ["a.png", "b.png"] or sorted(file.name for file in found.files) == ["a.png", "b.png"]
    assert len(found.boxes) == 1 and found.negatives == 1


def test_splits_and_groups_are_taken_from_their_columns(tmp_path: Path) -> None:
    text = "image_path,xmin,ymin,xmax,ymax,label,split,site\na.png,1,2,3,4,T,train,X\nb.png,1,2,3,4,T,val,Y\n"
    found = read(tmp_path, text, group_column="site")
    assert found.splits == ("train", "val")
    assert found.groups == ("X", "Y")
    with pytest.raises(ps.DataError, match=r"no column 'sight'.*Did you mean 'site'"):
        read(tmp_path, text, group_column="sight")


def test_an_image_in_two_splits_is_a_problem(tmp_path: Path) -> None:
    text = "image_path,xmin,ymin,xmax,ymax,label,split\na.png,1,2,3,4,T,train\na.png,2,2,3,4,T,val\n"
    assert problems(tmp_path, text) == [(3, "split is 'val', and 'train' in line 2")]


def test_rows_in_different_coordinate_systems_are_a_problem(tmp_path: Path) -> None:
    text = "image_path,xmin,ymin,xmax,ymax,label,crs\na.png,1,2,3,4,T,EPSG:32610\na.png,2,2,3,4,T,EPSG:4326\n"
    assert problems(tmp_path, text) == [
        (3, "the rows are in different coordinate systems: EPSG:32610, EPSG:4326"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("image_path,xmn,ymin,xmax,ymax,label\na,1,2,3,4,T\n", "xmin is missing. Did you mean 'xmn'?"),
        ("image_path,xmin,ymin,xmax,ymax,lable\na,1,2,3,4,T\n", "label is missing. Did you mean 'lable'?"),
        ("date,temperature\n1,2\n", "the columns are date, temperature. Expected image_path, xmin"),
        ("imge_path,xmin,ymin,xmax,ymax,label\na,1,2,3,4,T\n", "image_path is missing. Did you mean 'imge_path'?"),
    ],
)
def test_a_table_of_another_kind_is_said_with_the_columns_that_were_meant(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ps.DataError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)


def test_several_tables_are_read_together(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        table(tmp_path / folder, FORMS["as documented"])
    found = read_annotations(str(tmp_path / "*/boxes.csv"))
    assert found.names == ("one/a.png", "two/a.png")
    assert found.boxes.tolist() == EXPECTED * 2
    assert [found.tables[number] for number in found.table_numbers] == [
        str(tmp_path / folder / "boxes.csv") for folder in ("one", "one", "two", "two")
    ]


def test_a_folder_with_annotations_of_several_kinds_asks_for_a_pattern(shared_data: Path) -> None:
    with pytest.raises(ps.DataError, match=r"several kinds.*pattern"):
        read_annotations(shared_data / "trees_neon")


def test_real_tables_are_read(shared_data: Path) -> None:
    trees = shared_data / "trees_neon"
    odd = read_annotations(trees / "2018_SJER_3_252000_4107000_image_477_truth.csv")
    assert odd.classes == ("0",)
    assert odd.boxes[0].tolist() == [1, 103, 82, 235]
    assert len(odd.boxes) == 7
    assert len(read_annotations(trees / "OSBS_029.csv").boxes) == 61
    assert odd.problems == ()


def test_real_points_are_read_by_the_stem_of_their_table(shared_data: Path) -> None:
    points = shared_data / "urban_trees_points"
    found = read_annotations(points / "csv", images=points / "images", point_buffer=10)
    assert len(found) == 12
    assert len(found.boxes) == 859
    assert found.problems == ()
    assert found.boxes.min() >= 0
    assert found.boxes.max() <= 256


def test_an_empty_table_alone_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match=r"boxes\.csv: the file is empty\. Write a header"):
        read(tmp_path, "")


def test_labels_that_differ_only_in_case_are_warned_about(tmp_path: Path) -> None:
    rows = "a.png,1,2,9,9,Tree\na.png,2,2,9,9,Tree\nb.png,1,2,9,9,tree\nb.png,3,2,9,9, Bush\n"
    found = read(tmp_path, HEADER + rows)
    (problem,) = found.problems
    assert problem.warning and problem.row == 4 and found.classes == ("Bush", "Tree", "tree")
    assert problem.what == "the label 'tree' (1 ×) differs from 'Tree' only in case or blanks"


@pytest.mark.parametrize("text", [HEADER + "a.png,0.1,0.2,0.5,1,T\n", "image,x,y,w,h,label\na.png,0.1,0.2,0.5,0.6,T\n"])
def test_fractions_in_a_table_are_not_taken_for_pixels(tmp_path: Path, text: str) -> None:
    ((row, what),) = problems(tmp_path, text)
    assert row is None and what.startswith("all coordinates lie between 0 and 1")


def test_an_image_that_is_not_there_is_told_the_nearest_image_not_the_table(tmp_path: Path) -> None:
    write_picture(tmp_path / "OSBS_029.png")
    (tmp_path / "OSBS_29.csv").write_text(HEADER + "OSBS_29.png,1,2,9,9,Tree\n")
    (problem, *_) = read_annotations(tmp_path / "OSBS_29.csv").problems
    assert problem.remedy.endswith("Did you mean 'OSBS_029.png'?")
