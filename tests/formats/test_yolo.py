"""YOLO text files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.formats.boxes.annotations import AnnotatedImages, read_annotations
from picture_making import write_picture


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def dataset(root: Path) -> Path:
    write_picture(root / "images" / "a.png")
    write_picture(root / "images" / "b.png")
    write(root / "labels" / "a.txt", "1 0.5 0.5 0.5 0.2\n\n0 0.25 0.5 0.5 1\n")
    write(root / "labels" / "b.txt", "")
    write(root / "classes.txt", "Tree\nBush\n")
    return root


def test_fractions_become_pixels_and_numbers_become_names_in_their_order(tmp_path: Path) -> None:
    found = read_annotations(dataset(tmp_path))
    np.testing.assert_allclose(found.boxes, [[10, 12, 30, 18], [0, 0, 20, 30]], rtol=1e-6)
    assert found.classes == ("Tree", "Bush")
    assert found.labels.tolist() == [1, 0]
    assert found.names == ("images/a.png", "images/b.png")
    assert np.diff(found.starts).tolist() == [2, 0]
    assert found.rows.tolist() == [1, 3]
    assert found.splits is None
    assert found.problems == ()


def test_a_folder_of_labels_finds_its_twin(tmp_path: Path) -> None:
    found = read_annotations(dataset(tmp_path) / "labels")
    assert found.files[0] == tmp_path / "images" / "a.png"
    assert found.classes == ("Tree", "Bush")


@pytest.mark.parametrize("layout", ["{split}/{kind}", "{kind}/{split}"])
def test_folders_called_train_and_val_are_splits(tmp_path: Path, layout: str) -> None:
    for split in ("train", "val"):
        write_picture(tmp_path / layout.format(split=split, kind="images") / f"{split}.jpg")
        write(tmp_path / layout.format(split=split, kind="labels") / f"{split}.txt", "0 0.5 0.5 0.5 0.2")
    found = read_annotations(tmp_path)
    assert found.splits == ("train", "val")
    assert found.classes == ("0",)
    assert found.names[0] == layout.format(split="train", kind="images") + "/train.jpg"


def test_texts_beside_their_images_work(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.jpg")
    write(tmp_path / "a.txt", "0 0.5 0.5 0.5 0.2")
    found = read_annotations(tmp_path, classes=["Palm"])
    assert found.names == ("a.jpg",)
    assert found.classes == ("Palm",)
    assert len(found.boxes) == 1


def test_images_without_a_text_are_negatives_and_said(tmp_path: Path) -> None:
    write_picture(dataset(tmp_path) / "images" / "c.png")
    found = read_annotations(tmp_path)
    assert found.names == ("images/a.png", "images/b.png", "images/c.png")
    assert [problem.what for problem in found.problems] == [
        "1 image has no label file: taken as without boxes",
        "2 of 3 images have no boxes",
    ]


@pytest.mark.parametrize("layout", ["images", ""])
def test_two_images_that_share_a_label_file_are_a_problem_that_names_both(tmp_path: Path, layout: str) -> None:
    write(tmp_path / ("labels" if layout else "") / "a.txt", "0 0.5 0.5 0.5 0.2")
    pictures = [write_picture(tmp_path / layout / name) for name in ("a.jpg", "a.png")]
    (problem,) = [one for one in read_annotations(tmp_path).problems if not one.warning]
    assert problem.file.endswith("a.txt")
    assert problem.what == f"2 images share this label file: {pictures[0]}, {pictures[1]}"
    with pytest.raises(ps.DataError, match=r"2 images share this label file: .*a\.jpg, .*a\.png"):
        ps.pack(ps.Boxes(tmp_path), tmp_path / "a.pack")


def test_two_images_of_one_stem_without_a_label_file_are_two_negatives(tmp_path: Path) -> None:
    for name in ("c.jpg", "c.png"):
        write_picture(dataset(tmp_path) / "images" / name)
    found = read_annotations(tmp_path)
    assert found.names == ("images/a.png", "images/b.png", "images/c.jpg", "images/c.png")
    assert not [problem for problem in found.problems if not problem.warning]


def test_a_text_without_its_image_is_a_problem(tmp_path: Path) -> None:
    (dataset(tmp_path) / "images" / "a.png").unlink()
    problems = read_annotations(tmp_path).problems
    assert "there is no image called a" in problems[0].what
    assert problems[0].file.endswith("a.txt")


def test_a_polygon_takes_its_bounds(tmp_path: Path) -> None:
    write(dataset(tmp_path) / "labels" / "a.txt", "0 0.1 0.2 0.5 0.4 0.3 0.9\n")
    np.testing.assert_allclose(read_annotations(tmp_path).boxes, [[4, 6, 20, 27]], rtol=1e-6)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("inf 0.5 0.5 0.1 0.1", "class inf does not exist"),
        ("nan 0.5 0.5 0.1 0.1", "class nan does not exist"),
        ("0 0.5 0.5 0.5", "the line has 4 numbers, expected 5"),
        ("0 0.5 0.5 0.5 x", "'x' is not a finite number"),
        ("0 0.5 0.5 0.5 nan", "'nan' is not a finite number"),
        ("2 0.5 0.5 0.5 0.5", "class 2 does not exist: there are 2, from 0 to 1"),
        ("-1 0.5 0.5 0.5 0.5", "does not exist"),
        ("0 0.9 0.5 0.5 0.5", "xmax 46 is outside images/a.png (40 wide) by 6 px"),
        ("0 0.5 0.5 0 0.5", "the box has no area"),
    ],
)
def test_each_broken_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    write(dataset(tmp_path) / "labels" / "a.txt", f"0 0.5 0.5 0.5 0.2\n{line}\n")
    (problem,) = read_annotations(tmp_path).problems
    assert (problem.row, Path(problem.file).name) == (2, "a.txt")
    assert said in problem.what


def test_boxes_at_the_border_may_pass_it_by_rounding(tmp_path: Path) -> None:
    write(dataset(tmp_path) / "labels" / "a.txt", "0 0.166667 0.833333 0.333335 0.333335\n")
    found = read_annotations(tmp_path)
    assert found.problems == ()
    assert found.boxes[0, 0] == 0
    assert found.boxes[0, 3] == 30


@pytest.mark.parametrize("names", ["names: [Tree, Bush]", "names:\n  0: Tree\n  1: Bush"])
def test_names_come_from_data_yaml(tmp_path: Path, names: str) -> None:
    (dataset(tmp_path) / "classes.txt").unlink()
    write(tmp_path / "data.yaml", names)
    assert read_annotations(tmp_path).classes == ("Tree", "Bush")


def test_given_classes_fix_the_order_of_listed_names(tmp_path: Path) -> None:
    found = read_annotations(dataset(tmp_path), classes="Bush,Tree")
    assert found.classes == ("Bush", "Tree")
    assert found.labels.tolist() == [0, 1]


def test_the_real_palms_have_3311_boxes(shared_data: Path) -> None:
    source = ps.Boxes(shared_data / "palms_yolo")
    assert (len(source), len(source.annotated.boxes)) == (200, 3311)
    assert source.classes == ("PalmTree",)
    assert dict(zip(*np.unique(source.column("split"), return_counts=True), strict=True)) == {"train": 160, "val": 40}
    assert [problem for problem in source.problems() if not problem.warning] == []


def picture_set(root: Path, line: str, classes: str | None) -> Path:
    """A dataset of one picture, named like its folder, with one box."""
    write_picture(root / "images" / f"{root.name}.png")
    write(root / "labels" / f"{root.name}.txt", line)
    if classes is not None:
        write(root / "classes.txt", classes)
    return root


BOX = "0.5 0.5 0.5 0.2"


def labels_by_name(found: AnnotatedImages) -> list[str]:
    return [found.classes[number] for number in found.labels]


def test_joined_datasets_keep_the_listed_order_of_their_classes(tmp_path: Path) -> None:
    one = picture_set(tmp_path / "one", f"1 {BOX}", "Tree\nRock\nBush\n")
    two = picture_set(tmp_path / "two", f"1 {BOX}", "Tree\nRock\nBush\n")
    assert read_annotations([one, two]).classes == ("Tree", "Rock", "Bush")
    assert read_annotations(one, val=two).classes == ("Tree", "Rock", "Bush")


def test_joined_datasets_with_other_lists_are_joined_by_name(tmp_path: Path) -> None:
    one = picture_set(tmp_path / "one", f"1 {BOX}", "Tree\nRock\n")
    two = picture_set(tmp_path / "two", f"0 {BOX}", "Palm\nTree\n")
    found = read_annotations([one, two])
    assert found.classes == ("Tree", "Rock", "Palm")
    assert labels_by_name(found) == ["Rock", "Palm"]


def test_names_that_are_not_listed_come_after_the_listed_ones(tmp_path: Path) -> None:
    one = picture_set(tmp_path / "one", f"1 {BOX}", "Tree\nRock\n")
    write_picture(tmp_path / "c.png")
    rows = "c.png,1,2,8,9,Palm\nc.png,3,2,8,9,Bush\nc.png,5,2,8,9,Tree\n"
    table = write(tmp_path / "c.csv", f"image_path,xmin,ymin,xmax,ymax,label\n{rows}")
    found = read_annotations(one, val=table)
    assert found.classes == ("Tree", "Rock", "Bush", "Palm")
    assert labels_by_name(found) == ["Rock", "Palm", "Bush", "Tree"]
    assert found.problems == ()


def test_label_files_of_several_folders_take_the_names_of_their_own_folder(tmp_path: Path) -> None:
    one = picture_set(tmp_path / "one", f"0 {BOX}", "Tree\nRock\n")
    two = picture_set(tmp_path / "two", f"0 {BOX}", "Palm\nTree\n")
    found = read_annotations([one / "labels" / "one.txt", two / "labels" / "two.txt"])
    assert found.classes == ("Tree", "Rock", "Palm")
    assert labels_by_name(found) == ["Tree", "Palm"]


def test_numbers_without_names_beside_classes_with_names_are_a_problem(tmp_path: Path) -> None:
    one = picture_set(tmp_path / "one", f"1 {BOX}", "Tree\nRock\n")
    two = picture_set(tmp_path / "two", f"1 {BOX}", None)
    found = read_annotations(one, val=two)
    assert found.classes == ("Tree", "Rock")
    (problem,) = found.problems
    assert Path(problem.file).name == "two.txt"
    assert "class 1 has no name" in problem.what
    assert "classes.txt" in problem.remedy


def test_several_datasets_without_names_keep_their_numbers(tmp_path: Path) -> None:
    one = picture_set(tmp_path / "one", f"10 {BOX}", None)
    two = picture_set(tmp_path / "two", f"2 {BOX}", None)
    found = read_annotations([one, two])
    assert found.classes == ("2", "10")
    assert found.problems == ()


def test_keypoints_after_a_box_are_not_taken_for_a_polygon(tmp_path: Path) -> None:
    write_picture(tmp_path / "images" / "a.png")
    label = write(tmp_path / "labels" / "a.txt", "0 0.5 0.5 0.5 0.2 0.1 0.1 0.9 0.9\n")
    write(tmp_path / "data.yaml", "names: [mouse]\nkpt_shape: [2, 2]\n")
    found = read_annotations(tmp_path)
    assert found.problems == ()
    np.testing.assert_allclose(found.boxes, [[10, 12, 30, 18]], rtol=1e-6)
    label.write_text("0 0.5 0.5 0.5 0.2 0.9\n")
    (problem,) = (one for one in read_annotations(tmp_path).problems if not one.warning)
    assert problem.what == "the line has 6 numbers, expected 5, and 4 numbers of keypoints as kpt_shape says"


def test_names_with_gaps_are_a_problem(tmp_path: Path) -> None:
    write_picture(tmp_path / "images" / "a.png")
    write(tmp_path / "labels" / "a.txt", "2 0.5 0.5 0.5 0.2\n")
    write(tmp_path / "data.yaml", "names:\n  0: mouse\n  2: rat\n")
    (problem,) = (one for one in read_annotations(tmp_path).problems if not one.warning)
    assert (Path(problem.file).name, problem.what[:27]) == ("data.yaml", "names is neither a list nor")


def test_labels_of_dota_are_called_so(tmp_path: Path) -> None:
    write_picture(tmp_path / "images" / "a.png")
    write(tmp_path / "labels" / "a.txt", "imagesource:x\ngsd:1.0\n10 10 20 12 18 20 8 18 plane 0\n")
    found = [problem.what for problem in read_annotations(tmp_path).problems if not problem.warning]
    assert found == ["this is a line of DOTA: four corners and a class"] * 3
