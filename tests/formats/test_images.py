"""Images by folder, by name and by table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest

import penstock as ps
from commands import run_here
from picture_making import write_picture


def pets(root: Path) -> Path:
    for number, name in enumerate(("dog/2.jpg", "cat/10.png", "cat/9.jpg", "cat/more/1.webp")):
        write_picture(root / name, seed=number)
    (root / "cat" / "Thumbs.db").write_text("x")
    (root / "cat" / "notes.txt").write_text("x")
    (root / "cat" / ".hidden.jpg").write_text("x")
    return root


def test_sub_folders_are_classes_in_order_and_other_files_are_ignored(tmp_path: Path) -> None:
    source = ps.Images(pets(tmp_path))
    assert source.classes == ("cat", "dog")
    assert source.column("key").tolist() == ["cat/9.jpg", "cat/10.png", "cat/more/1.webp", "dog/2.jpg"]
    assert source.column("label").tolist() == [0, 0, 0, 1]
    assert source[3]["label"] == 1
    assert source[3]["image"].shape == (30, 40, 3)
    assert source.problems() == []


def test_folders_called_train_and_val_are_splits(tmp_path: Path) -> None:
    pets(tmp_path / "train")
    pets(tmp_path / "val")
    source = ps.Images(tmp_path)
    assert source.classes == ("cat", "dog")
    assert source.column("split").tolist() == ["train"] * 4 + ["val"] * 4
    assert source.annotations(0)["split"] == "train"


def test_a_plain_folder_has_no_label(tmp_path: Path) -> None:
    write_picture(tmp_path / "1.jpg")
    source = ps.Images(tmp_path)
    assert [field.name for field in source.schema.fields] == ["image"]
    assert "label" not in source[0]
    with pytest.raises(KeyError, match="there are key, group"):
        source.column("label")


def test_labels_can_be_left_out(tmp_path: Path) -> None:
    source = ps.Images(pets(tmp_path), labels="none")
    assert len(source) == 4
    assert "label" not in source.schema
    with pytest.raises(ps.OptionError, match="labels='nun' is not one of auto, folders, none"):
        ps.Images(tmp_path, labels="nun")


def test_images_beside_class_folders_are_problems(tmp_path: Path) -> None:
    write_picture(pets(tmp_path) / "stray.jpg")
    (problem,) = ps.Images(tmp_path).problems()
    assert "lies beside the class folders" in problem.what


def test_an_empty_class_folder_is_warned_about(tmp_path: Path) -> None:
    (pets(tmp_path) / "bird").mkdir()
    source = ps.Images(tmp_path)
    assert source.classes == ("cat", "dog")
    assert [problem.warning for problem in source.problems()] == [True]


def test_labels_come_from_names_up_to_the_first_dot(tmp_path: Path) -> None:
    for name in ("cat.0.jpg", "dog.17.jpg", "cat.1.x.jpg", "bird.jpg"):
        write_picture(tmp_path / name)
    source = ps.Images(tmp_path, label_from_name="{label}.*")
    assert source.classes == ("bird", "cat", "dog")
    assert source.column("label").tolist() == [0, 1, 1, 2]


def test_a_name_that_does_not_fit_is_a_problem(tmp_path: Path) -> None:
    for name in ("cat_0.jpg", "odd.jpg"):
        write_picture(tmp_path / name)
    source = ps.Images(tmp_path, label_from_name="{label}_*")
    assert [Path(problem.file).name for problem in source.problems()] == ["odd.jpg"]
    assert source.column("label").tolist() == [0, -1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("path_name", "label_name"), [("path", "label"), ("Image Path", "class"), ("file", "category")]
)
def test_a_table_names_images_labels_splits_and_groups(
    tmp_path: Path, ending: str, path_name: str, label_name: str
) -> None:
    frame = pd.DataFrame(
        {
            path_name: ["dog/2.jpg", "cat/9.jpg"],
            label_name: ["dog", "cat"],
            "split": ["val", "train"],
            "group": ["x", "y"],
        }
    )
    pets(tmp_path)
    table = tmp_path / f"images.{ending}"
    frame.to_csv(table, index=False) if ending == "csv" else frame.to_parquet(table)
    source = ps.Images(table)
    assert source.column("key").tolist() == ["dog/2.jpg", "cat/9.jpg"]
    assert source.column("label").tolist() == [1, 0]
    assert source.column("split").tolist() == ["val", "train"]
    assert source.column("group").tolist() == ["x", "y"]
    assert source.problems() == []


def test_every_broken_row_of_a_table_is_named(tmp_path: Path) -> None:
    (pets(tmp_path) / "images.csv").write_text(
        "path,label\ncat/9.jpg,cat\nnone.jpg,cat\n,cat\ndog/2.jpg,\ncat/10.png,catt\n../x.jpg,cat\ncat/9.jpg,cat\n"
    )
    source = ps.Images(tmp_path / "images.csv", classes="cat,dog")
    found = {problem.row: problem.what for problem in source.problems()}
    assert sorted(found) == [3, 4, 5, 6, 7, 8]
    for line, said in {3: "does not exist", 4: "path is empty", 5: "label is empty", 6: "'catt'", 7: "leaves"}.items():
        assert said in found[line]
    assert found[8] == "the image is listed before, in line 2"


def test_a_table_of_images_elsewhere(tmp_path: Path) -> None:
    pets(tmp_path / "photos")
    (tmp_path / "images.csv").write_text("path,label\ncat/9.jpg,cat\n")
    assert len(ps.Images(tmp_path / "images.csv", images=tmp_path / "photos")) == 1


def test_a_table_of_another_kind_is_said_with_its_columns(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("pth,label\na,b\n")
    with pytest.raises(ps.DataError, match=r"the columns are pth, label.*path is missing. Did you mean 'pth'"):
        ps.Images(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text("")
    with pytest.raises(ps.DataError, match="the file is empty"):
        ps.Images(tmp_path / "x.csv")


def test_places_without_images_raise(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="there are no images"):
        ps.Images(tmp_path)
    with pytest.raises(ps.DataError, match="no such file or folder"):
        ps.Images(tmp_path / "nowhere")


def test_given_classes_fix_the_order_and_other_folders_are_problems(tmp_path: Path) -> None:
    assert ps.Images(pets(tmp_path), classes="dog,cat").column("label").tolist() == [1, 1, 1, 0]
    source = ps.Images(tmp_path, classes=["dog", "cats"])
    assert {problem.remedy for problem in source.problems()} == {"The classes are dog, cats. Did you mean 'cats'?"}


def test_groups_come_from_names(tmp_path: Path) -> None:
    for name in ("a/rex_1.jpg", "a/rex_2.jpg", "b/tom_1.jpg"):
        write_picture(tmp_path / name)
    assert ps.Images(tmp_path, group_from="{animal}_*").column("group").tolist() == ["rex", "rex", "tom"]
    assert ps.Images(tmp_path, group_from="{folder}/*").column("group").tolist() == ["a", "a", "b"]
    with pytest.raises(ps.OptionError, match="table"):
        ps.Images(tmp_path, group_from="animal")


@pytest.mark.parametrize("kind", ["jpg", "png", "webp", "tiff", "bmp", "gif"])
def test_the_content_decides_not_the_ending(tmp_path: Path, kind: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (12, 16, 3), dtype=np.uint8)
    done, encoded = cv2.imencode(f".{kind}", pixels)
    assert done
    for ending in (kind, "jpg"):
        (tmp_path / f"picture.{ending}").write_bytes(encoded.tobytes())
    source = ps.Images(tmp_path)
    assert all(source[index]["image"].shape == (12, 16, 3) for index in range(len(source)))
    assert source.damage() == []


def test_constructing_opens_no_image(tmp_path: Path) -> None:
    pets(tmp_path)
    for file in (tmp_path / "cat").glob("*.jpg"):
        file.write_bytes(b"broken")
    source = ps.Images(tmp_path)
    assert source.problems() == []
    assert [Path(problem.file).name for problem in source.damage()] == ["9.jpg"]
    with pytest.raises(ps.HopError, match=r"sample 0 \(cat/9.jpg\): decode failed: it is no JPEG"):
        source[0]


def test_origin_notices_a_change(tmp_path: Path) -> None:
    source = ps.Images(pets(tmp_path))
    before = source.origin(0)
    (tmp_path / "cat" / "9.jpg").write_bytes(b"other")
    assert source.origin(0) != before


def test_real_pets_have_two_classes(shared_data: Path) -> None:
    source = ps.Images(shared_data / "pets_cat_dog")
    assert source.classes == ("cat", "dog")
    assert len(source) == 160
    assert source.damage() == []


def bad_options() -> list[dict[str, Any]]:
    return [{"label_from_name": "{label}_*", "labels": "none"}, {"images": "x"}]


@pytest.mark.parametrize("options", bad_options())
def test_options_that_exclude_each_other_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ps.OptionError):
        ps.Images(pets(tmp_path), **options)


def test_columns_of_a_table_that_are_not_used_are_named(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png")
    (tmp_path / "t.csv").write_text("path,label,age,site\na.png,cat,3,north\n")
    source = ps.Images(tmp_path / "t.csv")
    assert list(source.left_out) == ["age", "site"]
    warned = ps.check(source)
    assert warned.ok and "not used: 'age', 'site'" in str(warned)
    assert list(ps.Images(tmp_path / "t.csv", group_from="site").left_out) == ["age"]
    packed = run_here("pack", "images", tmp_path / "t.csv", "-o", tmp_path / "t.pack")
    assert packed.exit_code in (None, 0) and "not used: 'age', 'site'" in packed.out + packed.err
    assert "left out   age" in run_here("info", tmp_path / "t.csv").out
