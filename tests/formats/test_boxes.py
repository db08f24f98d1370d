"""Boxes as a source, and every finding about rows and images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.formats.boxes.annotations import read_annotations
from picture_making import write_picture

HEADER = "image_path,xmin,ymin,xmax,ymax,label\n"


def boxes(folder: Path, rows: str, **options: Any) -> ps.Boxes:
    """A source over a table beside two pictures of 40×30 px."""
    write_picture(folder / "a.png")
    write_picture(folder / "b.png", seed=1)
    (folder / "boxes.csv").write_text(HEADER + rows)
    return ps.Boxes(folder / "boxes.csv", **options)


def findings(source: ps.Boxes) -> list[tuple[int | None, str]]:
    return [(problem.row, problem.what) for problem in source.problems()]


def test_a_sample_has_pixels_boxes_and_labels(tmp_path: Path) -> None:
    source = boxes(tmp_path, "a.png,1,2,3,4,Tree\nb.png,5,6,7,8,Bush\na.png,2,3,4,5,Bush\n")
    sample = source[0]
    assert len(source) == 2
    assert sample["image"].shape == (30, 40, 3)
    assert sample["boxes"].tolist() == [[1, 2, 3, 4], [2, 3, 4, 5]]
    assert sample["box_label"].tolist() == [1, 0]
    assert (sample["key"], sample["group"]) == ("a.png", "a.png")
    assert [field.kind for field in source.schema.fields] == ["image", "boxes", "labels"]


FINDINGS = {
    "outside": ("a.png,1,2,44,4,T", "xmax 44 is outside a.png (40 wide) by 4 px"),
    "outside by a rounding": ("a.png,1,2,40.5,4,T", "xmax 40.5 is outside a.png (40 wide) by 0.5 px"),
    "outside above": ("a.png,1,-2,4,4,T", "ymin -2 is outside a.png (30 high) by 2 px"),
    "wholly outside": ("a.png,50,2,54,4,T", "the box 50, 2, 54, 4 lies wholly outside a.png (40×30 px)"),
    "swapped in x": ("a.png,9,2,4,4,T", "corners are swapped: xmax 4 is less than xmin 9"),
    "swapped in y": ("a.png,1,9,4,4,T", "corners are swapped: ymax 4 is less than ymin 9"),
    "zero size": ("a.png,1,2,1,4,T", "the box has no area: it is 0 px wide and 2 px high"),
    "an empty label": ("a.png,1,2,3,4,", "the label is empty"),
    "an unknown label": ("a.png,1,2,3,4,Tee", "the label 'Tee' is not a known class"),
    "no number": ("a.png,1,two,3,4,T", "ymin 'two' is not a number"),
    "not finite": ("a.png,1,2,inf,4,T", "xmax is inf, not a finite number"),
    "nan": ("a.png,nan,2,3,4,T", "xmin is nan, not a finite number"),
    "a missing number": ("a.png,1,2,3,,T", "ymax is empty"),
    "no image": (",1,2,3,4,T", "image_path is empty"),
    "too few fields": ("a.png,1,2", "the line has 3 fields, the first line has 6"),
    "duplicate": ("a.png,5,6,7,8,T", "the row repeats line 2: same image, box and label"),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_each_finding_is_named_by_its_line(tmp_path: Path, name: str) -> None:
    row, what = FINDINGS[name]
    source = boxes(tmp_path, f"a.png,5,6,7,8,T\n\n{row}\nb.png,1,1,2,2,T\n", classes=["T"])
    assert findings(source) == [(4, what)]
    assert all(problem.remedy for problem in source.problems())
    assert source.annotations(1)["boxes"].tolist() == [[1, 1, 2, 2]]
    if not all(problem.warning for problem in source.problems()):
        with pytest.raises(ps.DataError, match="line 4"):  # also for the good one: nobody uses half of a table
            source[1]


def test_all_problems_are_found_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    rows = "".join(row + "\n" for row, _ in FINDINGS.values())
    source = boxes(tmp_path, rows + "a.png,5,6,7,8,T\n", classes=["T"])
    lines = [problem.row for problem in source.problems()]
    assert lines == sorted(lines, key=lambda line: line or 0)
    assert {what for _, what in findings(source)} >= {
        what for name, (_, what) in FINDINGS.items() if name != "duplicate"
    }


def test_clipping_cuts_boxes_and_still_reports_those_that_vanish(tmp_path: Path) -> None:
    source = boxes(tmp_path, "a.png,-3,2,44,40,T\na.png,50,2,54,4,T\nb.png,1,2,3,4,T\n", clip_boxes=True)
    assert source.annotations(0)["boxes"].tolist() == [[0, 2, 40, 30]]
    assert findings(source) == [(3, FINDINGS["wholly outside"][1])]


def test_the_nearest_class_is_named(tmp_path: Path) -> None:
    source = boxes(tmp_path, "a.png,1,2,3,4,Tre\nb.png,1,2,3,4,Tree\n", classes="Bush,Tree")
    assert [problem.remedy for problem in source.problems()] == ["The classes are Bush, Tree. Did you mean 'Tree'?"]


def test_missing_images_are_named_once_with_the_twin_that_is_there(tmp_path: Path) -> None:
    source = boxes(tmp_path, "b.png,1,2,3,4,T\nA.jpg,1,2,3,4,T\nA.jpg,2,2,3,4,T\n")
    (problem,) = source.problems()
    assert (problem.row, "'A.jpg' does not exist" in problem.what) == (3, True)
    assert problem.remedy.endswith("Did you mean 'a.png'?")
    assert len(source) == 2
    with pytest.raises(ps.HopError, match=r"sample 1 \(A.jpg\): read failed"):
        source[1]


@pytest.mark.parametrize("path", ["../secret.png", "/etc/secret.png", "sub/../../secret.png", "C:\\secret.png"])
def test_a_path_cannot_leave_its_folder(tmp_path: Path, path: str) -> None:
    write_picture(tmp_path / "secret.png")
    source = boxes(tmp_path / "data", f"b.png,1,2,3,4,T\n{path},1,2,3,4,T\n")
    assert [(problem.row, "leaves the folder" in problem.what) for problem in source.problems()] == [(3, True)]
    with pytest.raises(ps.DataError, match="leaves the folder"):
        source[1]


def test_a_path_may_leave_its_folder_when_allowed(tmp_path: Path) -> None:
    write_picture(tmp_path / "secret.png")
    source = boxes(tmp_path / "data", "../secret.png,1,2,3,4,T\n", allow_outside=True)
    assert source.problems() == []
    assert source[0]["image"].shape == (30, 40, 3)


def test_an_absolute_path_inside_the_folder_is_fine(tmp_path: Path) -> None:
    assert boxes(tmp_path, f"{tmp_path / 'a.png'},1,2,3,4,T\n").problems() == []


def test_names_with_blanks_backslashes_and_other_letters_work(tmp_path: Path) -> None:
    write_picture(tmp_path / "sub" / "Bäume am Fluß.png")
    source = boxes(tmp_path, "sub\\Bäume am Fluß.png,1,2,3,4,T\n")
    assert source.problems() == []
    assert source.annotations(0)["key"] == "sub/Bäume am Fluß.png"


def test_images_are_looked_for_under_the_given_folder(tmp_path: Path) -> None:
    write_picture(tmp_path / "flights" / "x.png")
    source = boxes(tmp_path, "x.png,1,2,3,4,T\n", images=tmp_path / "flights")
    assert source.problems() == []
    with pytest.raises(ps.DataError, match="no such folder"):
        boxes(tmp_path, "x.png,1,2,3,4,T\n", images=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-200], "the end of the PNG is missing"),
        (lambda data: b"", "the file is empty"),
        (lambda data: b"\0" * len(data), "begins with zeros"),
        (lambda data: b"hello world, no image here", "it is no JPEG"),
    ],
)
def test_a_damaged_image_is_found_by_its_header_and_named_on_reading(tmp_path: Path, damage: Any, said: str) -> None:
    boxes(tmp_path, "")
    (tmp_path / "a.png").write_bytes(damage((tmp_path / "a.png").read_bytes()))
    source = ps.Boxes(_table(tmp_path, "a.png,1,2,3,4,T\nb.png,1,2,3,4,T\n"))
    assert [(problem.file, said in problem.what) for problem in source.damage()] == [(str(tmp_path / "a.png"), True)]
    assert source.problems() == []
    with pytest.raises(ps.HopError, match=r"sample 0 \(a.png\)"):
        source[0]


def _table(folder: Path, rows: str) -> Path:
    (folder / "boxes.csv").write_text(HEADER + rows)
    return folder / "boxes.csv"


def test_many_negatives_are_warned_about(tmp_path: Path) -> None:
    half = boxes(tmp_path, "a.png,1,2,3,4,T\nb.png,0,0,0,0,T\n")
    assert half.problems() == []
    assert half.negatives == 1
    source = boxes(tmp_path, "a.png,0,0,0,0,T\nb.png,0,0,0,0,T\n")
    assert [(problem.warning, problem.what) for problem in source.problems()] == [(True, "2 of 2 images have no boxes")]


def test_groups_come_from_a_pattern_or_a_column(tmp_path: Path) -> None:
    write_picture(tmp_path / "osbs_1.png")
    source = boxes(tmp_path, "osbs_1.png,1,2,3,4,T\na.png,1,2,3,4,T\n", group_from="{site}_*")
    assert source.column("group").tolist() == ["osbs", "a.png"]
    assert [problem.what for problem in source.problems()] == ["its name does not fit the pattern '{site}_*'"]
    assert boxes(tmp_path, "a.png,1,2,3,4,T\n", group_from="label").column("group").tolist() == ["T"]


def test_an_unknown_column_names_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="there are key, group"):
        boxes(tmp_path, "a.png,1,2,3,4,T\n").column("split")


@pytest.mark.parametrize("classes", [["B", "A"], "B,A", " B , A ", "classes.txt"])
def test_classes_are_a_list_a_text_or_a_file(tmp_path: Path, classes: Any) -> None:
    (tmp_path / "classes.txt").write_text("B\n\nA\n")
    given = tmp_path / "classes.txt" if classes == "classes.txt" else classes
    source = boxes(tmp_path, "a.png,1,2,3,4,A\n", classes=given)
    assert source.classes == ("B", "A")
    assert source[0]["box_label"].tolist() == [1]


@pytest.mark.parametrize("classes", ["", [], "A,A"])
def test_useless_classes_are_refused(tmp_path: Path, classes: Any) -> None:
    with pytest.raises(ps.OptionError, match="classes="):
        boxes(tmp_path, "a.png,1,2,3,4,A\n", classes=classes)


def test_a_path_that_is_not_there_and_a_format_that_is_none_raise(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="no such file or folder"):
        ps.Boxes(tmp_path / "nothing.csv")
    (tmp_path / "boxes.docx").write_text("x")
    with pytest.raises(ps.DataError, match="Expected CSV"):
        ps.Boxes(tmp_path / "boxes.docx")
    with pytest.raises(ps.DataError, match="holds no annotations"):
        ps.Boxes(_empty(tmp_path / "empty"))
    with pytest.raises(ps.DataError, match="no annotations"):
        ps.Boxes(3)


def _empty(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_given_files_all_appear_and_other_images_are_problems(tmp_path: Path) -> None:
    files = [write_picture(tmp_path / "x" / name) for name in ("a.png", "b.png", "c.png")]
    table = _table(tmp_path, "x/b.png,1,2,3,4,T\n../elsewhere/a.png,5,2,7,4,T\nz.png,1,2,3,4,T\n")
    found = read_annotations(table, files=files)
    assert found.names == ("a.png", "b.png", "c.png")
    assert found.files == tuple(files)
    assert np.diff(found.starts).tolist() == [1, 1, 0]
    assert [(problem.row, problem.what) for problem in found.problems] == [
        (4, "the image 'z.png' is not among the 3 files that are read")
    ]


def test_given_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    files = [write_picture(tmp_path / folder / "a.png") for folder in ("one", "two")]
    found = read_annotations(_table(tmp_path, "two/a.png,1,2,3,4,T\na.png,1,2,3,4,T\n"), files=files)
    assert found.names == ("one/a.png", "two/a.png")
    assert np.diff(found.starts).tolist() == [0, 1]
    assert [(problem.row, "may be" in problem.what) for problem in found.problems] == [(3, True)]


def test_a_raster_that_only_gdal_reads_has_a_size_when_it_is_given(tmp_path: Path) -> None:
    inner = write_picture(tmp_path / "a.png")
    vrt = tmp_path / "a.vrt"
    band = '<VRTRasterBand dataType="Byte" band="1"><SimpleSource><SourceFilename relativeToVRT="1">{}</SourceFilename>'
    vrt.write_text(
        '<VRTDataset rasterXSize="40" rasterYSize="30">'
        + band.format(inner.name)
        + "<SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>"
    )
    found = read_annotations(_table(tmp_path, "a.vrt,1,2,3,4,T\n"), files=[vrt], allow_drivers=("VRT",))
    assert found.sizes.tolist() == [[40, 30]]
    assert found.unreadable == {}


def test_a_hundred_thousand_broken_rows_are_all_named_by_line(tmp_path: Path) -> None:
    write_picture(tmp_path / "one.png", 64, 48)
    kinds = ("5,5,1,1,Tree", "x,1,2,3,Tree", "1,1,nan,9,Tree", "1,1,900,9,Tree", "1,1,9,9,")
    rows = [f"one.png,{kinds[number % len(kinds)]}" for number in range(100_000)]
    (tmp_path / "boxes.csv").write_text("\n".join(["image_path,xmin,ymin,xmax,ymax,label", *rows]) + "\n")
    result = ps.check(ps.Boxes(tmp_path / "boxes.csv"))
    named = {problem.row for problem in result.errors}
    assert named == set(range(2, 100_002))
    with pytest.raises(ps.DataError, match=r"boxes\.csv line 2: .*\n(.*\n){4}… and .* more; penstock check --json"):
        ps.pack(ps.Boxes(tmp_path / "boxes.csv"), tmp_path / "one.pack")


def test_a_second_table_is_the_split_for_validation(tmp_path: Path) -> None:
    boxes(tmp_path, "a.png,1,2,3,4,Tree\n")
    (tmp_path / "val.csv").write_text(HEADER + "b.png,1,2,3,4,Bush\n")
    source = ps.Boxes(tmp_path / "boxes.csv", val=tmp_path / "val.csv")
    assert source.problems() == []
    assert source.column("split").tolist() == ["train", "val"] and source.classes == ("Bush", "Tree")
    pack = ps.pack(source, tmp_path / "both.pack", progress=False)
    assert (len(pack.split("train")), len(pack.split("val"))) == (1, 1)


def test_an_image_in_both_tables_is_a_problem_of_the_second(tmp_path: Path) -> None:
    boxes(tmp_path, "a.png,1,2,3,4,Tree\nb.png,1,2,3,4,Tree\n")
    (tmp_path / "val.csv").write_text(HEADER + "b.png,5,6,9,9,Tree\n")
    (problem,) = ps.Boxes(tmp_path / "boxes.csv", val=tmp_path / "val.csv").problems()
    assert (Path(problem.file).name, problem.row) == ("val.csv", 2)
    assert problem.what == "the image b.png is for validation here, and for training elsewhere"


def test_a_table_with_splits_of_its_own_takes_no_second(tmp_path: Path) -> None:
    boxes(tmp_path, "a.png,1,2,3,4,Tree\n")
    (tmp_path / "split.csv").write_text("image_path,xmin,ymin,xmax,ymax,label,split\nb.png,1,2,3,4,Tree,val\n")
    with pytest.raises(ps.DataError, match=r"split\.csv: it names splits \(val\), and so does val"):
        ps.Boxes(tmp_path / "split.csv", val=tmp_path / "boxes.csv")
