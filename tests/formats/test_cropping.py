"""Crops of a raster as files, with the six-column table of their boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import penstock as ps
from penstock.codecs.images import decode_image
from penstock.errors import DataError, OptionError
from raster_making import noise, write_raster

COLUMNS = ["image_path", "xmin", "ymin", "xmax", "ymax", "label"]
ROWS = [
    ("a.tif", 10, 20, 30, 40, "oak"),
    ("a.tif", 110, 120, 130, 140, "pine"),
    ("a.tif", 95, 50, 105, 60, "oak"),
    ("other.tif", 1, 2, 3, 4, "elm"),
]


@pytest.fixture
def raster(tmp_path: Path) -> Path:
    (tmp_path / "flights").mkdir()
    return write_raster(tmp_path / "flights" / "a.tif", noise(3, 200, 200))


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=COLUMNS)


def test_crops_with_boxes_are_written_and_listed(raster: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    crops = tmp_path / "crops"
    found = ps.split_raster(raster, table, 100, 0, crops)
    assert found.columns.tolist() == COLUMNS
    assert found.values.tolist() == [
        ["a_0.png", 10, 20, 30, 40, "oak"],
        ["a_0.png", 95, 50, 100, 60, "oak"],
        ["a_3.png", 10, 20, 30, 40, "pine"],
    ]
    assert sorted(path.name for path in crops.iterdir()) == ["a.csv", "a_0.png", "a_3.png"]
    pd.testing.assert_frame_equal(pd.read_csv(crops / "a.csv"), found)
    pixels = decode_image((crops / "a_3.png").read_bytes())
    assert np.array_equal(pixels, ps.Rasters(raster, tile_px=100, overlap=0)[3]["image"])


def test_a_table_on_disk_of_many_images_does_the_same(raster: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    table.to_csv(tmp_path / "t.csv", index=False)
    of_file = ps.split_raster(raster, tmp_path / "t.csv", 100, 0, tmp_path / "one")
    pd.testing.assert_frame_equal(of_file, ps.split_raster(raster, table, 100, 0, tmp_path / "two"))


def test_what_was_written_is_a_source_of_boxes(raster: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    ps.split_raster(raster, table, 100, 0, tmp_path / "crops", allow_empty=True)
    boxes = ps.Boxes(tmp_path / "crops" / "a.csv")
    assert [problem for problem in boxes.problems() if not problem.warning] == []
    assert len(boxes) == 4
    assert sorted(len(boxes[index]["boxes"]) for index in range(4)) == [0, 0, 1, 2]


def test_empty_crops_are_zero_rows_of_the_first_class(raster: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    found = ps.split_raster(raster, table, 100, 0, tmp_path / "crops", allow_empty=True)
    empty = found[found.image_path == "a_1.png"]
    assert empty.values.tolist() == [["a_1.png", 0, 0, 0, 0, "oak"]]
    assert found.image_path.nunique() == 4


def test_without_annotations_all_crops_are_written_and_none_is_called_empty(raster: Path, tmp_path: Path) -> None:
    found = ps.split_raster(raster, patch_size=100, patch_overlap=0, save_dir=tmp_path / "crops")
    assert found.columns.tolist() == COLUMNS
    assert found.image_path.tolist() == [f"a_{number}.png" for number in range(4)]
    assert found.drop(columns="image_path").isna().all(axis=None)
    assert sorted(path.suffix for path in (tmp_path / "crops").iterdir()) == [".png"] * 4


def test_nothing_is_replaced_unasked(raster: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    crops = tmp_path / "crops"
    crops.mkdir()
    (crops / "a_3.png").write_text("mine")
    with pytest.raises(OptionError, match=r"1 of 3 files are already there.*overwrite=True"):
        ps.split_raster(raster, table, 100, 0, crops)
    assert [path.name for path in crops.iterdir()] == ["a_3.png"]
    ps.split_raster(raster, table, 100, 0, crops, overwrite=True)
    assert decode_image((crops / "a_3.png").read_bytes()).shape == (100, 100, 3)


def test_the_annotations_are_never_replaced(raster: Path, table: pd.DataFrame) -> None:
    beside = raster.with_suffix(".csv")
    table.to_csv(beside, index=False)
    before = beside.read_bytes()
    with pytest.raises(OptionError, match="is what the crops are made from"):
        ps.split_raster(raster, beside, 100, 0, raster.parent, overwrite=True)
    assert beside.read_bytes() == before


def test_bad_rows_stop_before_anything_is_written(raster: Path, tmp_path: Path) -> None:
    bad = pd.DataFrame([("a.tif", 10, 20, 300, 40, "oak"), ("a.tif", 9, 9, 5, 5, "oak")], columns=COLUMNS)
    with pytest.raises(DataError) as error:
        ps.split_raster(raster, bad, 100, 0, tmp_path / "crops")
    assert len(error.value.problems) == 2
    assert not (tmp_path / "crops").exists()


def test_options_of_rasters_are_taken(raster: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    found = ps.split_raster(raster, table, 100, 0, tmp_path / "crops", lost_boxes="drop", bands=2)
    assert len(found) == 2
    pixels = decode_image((tmp_path / "crops" / "a_0.png").read_bytes())
    assert np.array_equal(pixels[:, :, 0], pixels[:, :, 2])


def test_one_raster_at_a_time(tmp_path: Path) -> None:
    for wrong in (tmp_path, tmp_path / "missing.tif"):
        with pytest.raises(DataError, match="Name one raster"):
            ps.split_raster(wrong)


def test_the_yell_tile_gives_crops_with_all_crowns(shared_data: Path, tmp_path: Path) -> None:
    raster = shared_data / "trees_neon" / "2019_YELL_2_528000_4978000_image_crop2.png"
    found = ps.split_raster(raster, raster.with_suffix(".xml"), 500, 0.25, tmp_path)
    assert len(found) >= 574
    assert (found.xmax - found.xmin).min() > 0
    assert (found[["xmax", "ymax"]] <= 500).all(axis=None)


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_rows_that_name_the_raster_with_another_ending_are_taken(tmp_path: Path, suffix: str) -> None:
    raster = write_raster(tmp_path / f"a.{suffix}", noise(3, 200, 200))
    frame = pd.DataFrame([("a.jpg", 10, 20, 30, 40, "oak")], columns=COLUMNS)
    found = ps.split_raster(raster, frame, 100, 0, tmp_path / "crops")
    assert found.values.tolist() == [["a_0.png", 10, 20, 30, 40, "oak"]]


def test_annotations_of_other_images_alone_are_an_error_that_names_both(raster: Path, tmp_path: Path) -> None:
    frame = pd.DataFrame([("b.tif", 1, 2, 3, 4, "oak"), ("c.tif", 1, 2, 3, 4, "oak")], columns=COLUMNS)
    with pytest.raises(DataError, match=r"no row is about 'a\.tif': the names there are 'b\.tif', 'c\.tif'") as caught:
        ps.split_raster(raster, frame, 100, 0, tmp_path / "crops")
    assert "image_name" in str(caught.value)
    assert not (tmp_path / "crops").exists()


def test_two_names_with_the_stem_of_the_raster_must_be_told_apart(raster: Path, tmp_path: Path) -> None:
    frame = pd.DataFrame([("a.png", 1, 2, 9, 9, "oak"), ("a.jpg", 1, 2, 3, 4, "oak")], columns=COLUMNS)
    with pytest.raises(DataError, match=r"a\.png and a\.jpg.*image_name"):
        ps.split_raster(raster, frame, 100, 0, tmp_path / "crops")
    found = ps.split_raster(raster, frame, 100, 0, tmp_path / "crops", image_name="a.jpg")
    assert found.values.tolist() == [["a_0.png", 1, 2, 3, 4, "oak"]]


def test_image_name_chooses_rows_and_names_the_crops(raster: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    found = ps.split_raster(raster, table, 100, 0, tmp_path / "crops", image_name="other.tif")
    assert found.values.tolist() == [["other_0.png", 1, 2, 3, 4, "elm"]]
    assert sorted(path.name for path in (tmp_path / "crops").iterdir()) == ["other.csv", "other_0.png"]


def test_boxes_that_no_crop_keeps_are_an_error_not_an_empty_table(raster: Path, tmp_path: Path) -> None:
    frame = pd.DataFrame([("a.tif", 0, 0, 0, 0, "oak")], columns=COLUMNS)
    with pytest.raises(DataError, match=r"no box that a crop keeps.*allow_empty=True"):
        ps.split_raster(raster, frame, 100, 0, tmp_path / "crops")
    assert len(ps.split_raster(raster, frame, 100, 0, tmp_path / "crops", allow_empty=True)) == 4


def test_crops_are_numbered_down_the_columns_as_deepforest_does(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "a.tif", noise(3, 300, 200))  # 3 rows and 2 columns of tiles
    rows = [("a.tif", 10, 110, 30, 140, "second row"), ("a.tif", 110, 10, 130, 40, "second column")]
    found = ps.split_raster(raster, pd.DataFrame(rows, columns=COLUMNS), 100, 0, tmp_path / "crops")
    assert found[["image_path", "label"]].values.tolist() == [["a_1.png", "second row"], ["a_3.png", "second column"]]
    pixels = decode_image((tmp_path / "crops" / "a_3.png").read_bytes())
    assert np.array_equal(pixels, ps.Rasters(raster, tile_px=100, overlap=0)[1]["image"])


def test_the_keywords_and_places_of_every_deepforest_give_the_same(
    raster: Path, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.to_csv(raster.parent / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    image, boxes = str(raster), str(raster.parent / "t.csv")
    keywords = {"patch_size": 100, "patch_overlap": 0.0}
    calls = [
        ((), {"path_to_raster": image, "annotations_file": boxes, "base_dir": "c0", **keywords}),
        ((), {"path_to_raster": image, "annotations_file": boxes, "save_dir": "c1", "root_dir": tmp_path, **keywords}),
        ((), {"path_to_raster": "a.tif", "annotations_file": "t.csv", "save_dir": "c2", "root_dir": raster.parent}),
        ((boxes, image), {"save_dir": "c3", "allow_empty": False, "image_name": "a.tif", **keywords}),
        ((image, boxes, "c4", 100, 0.0), {}),
        ((image, boxes, "c5"), keywords),
        ((image, boxes, 100, 0.0, "c6"), {}),
    ]
    calls[2][1].update(keywords)
    expected = ps.split_raster(raster, table, save_dir="expected", patch_size=100, patch_overlap=0.0)
    for places, names in calls:
        pd.testing.assert_frame_equal(ps.split_raster(*places, **names), expected)
    for number in range(7):
        assert sorted(path.name for path in Path(f"c{number}").iterdir()) == ["a.csv", "a_0.png", "a_3.png"]


@pytest.mark.parametrize(
    ("places", "names", "words"),
    [
        ((), {}, "needs a raster.*path_to_raster"),
        (("a.tif",), {"path_to_raster": "a.tif"}, "raster and path_to_raster are the same"),
        (("a.tif", None, "crops"), {"save_dir": "others"}, "save_dir is given by place"),
        (("a.tif", None), {"base_dir": "crops", "save_dir": "others"}, "base_dir and save_dir are the same"),
        (("a.tif", "t.csv", None, "root", 400), {}, "third argument is NoneType.*by name"),
        (("a.tif",), {"patchsize": 400}, "no option 'patchsize'. Did you mean 'patch_size'"),
        (("a.tif",), {"tile_px": 400}, "'tile_px'; here it is 'patch_size'"),
        ((), {"numpy_image": np.zeros((9, 9, 3)), "path_to_raster": "a.tif"}, "save numpy_image as an image"),
        ((np.zeros((9, 9, 3)),), {}, "must be a path, not ndarray"),
        (("a.tif",), {"patch_size": "400"}, "patch_size='400' must be a whole number"),
        (("a.tif", None, "crops", "400"), {}, "patch_size='400' must be a whole number"),
        (("a.tif",), {"allow_empty": 1}, "allow_empty=1 must be True or False"),
    ],
)
def test_arguments_that_cannot_be_meant_are_named(
    places: tuple[object, ...], names: dict[str, object], words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        ps.split_raster(*places, **names)


def test_rasters_that_ignore_other_images_still_want_one_that_is_named(raster: Path) -> None:
    frame = pd.DataFrame([("b.tif", 1, 2, 3, 4, "oak")], columns=COLUMNS)
    problems = ps.Rasters(raster, boxes=frame, tile_px=100, ignore_other_images=True).problems()
    assert any(
        "no row is about any of the 1 image" in problem.what and "'b.tif'" in problem.what for problem in problems
    )


def test_crops_of_one_raster_stay_in_one_split(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        raster = write_raster(tmp_path / f"{name}.tif", noise(3, 200, 200))
        frame = pd.DataFrame([(f"{name}.tif", 60, 60, 140, 140, "oak")], columns=COLUMNS)
        ps.split_raster(raster, frame, 100, 0.2, tmp_path / "crops", min_kept=0.05)
    together = pd.concat([pd.read_csv(tmp_path / "crops" / f"{name}.csv") for name in "abc"])
    together.to_csv(tmp_path / "crops" / "all.csv", index=False)
    boxes = ps.Boxes(tmp_path / "crops" / "all.csv")
    assert len(set(boxes.column("group"))) == 3 and len(boxes) == 27
    assert "27 crops of 3 rasters" in boxes.notes()["groups"]
    assert boxes.counts()["rasters that crops were cut from"] == 3
    pack = ps.pack(boxes, tmp_path / "crops.pack", progress=False, split="train=0.5,val=0.5")
    train, val = (
        {part.annotations(index)["key"].split("_")[0] for index in range(len(part))}
        for part in (pack.split("train"), pack.split("val"))
    )
    assert train and val and not train & val


def test_crops_of_a_single_raster_are_not_divided(tmp_path: Path, raster: Path, table: pd.DataFrame) -> None:
    ps.split_raster(raster, table, 50, 0.2, tmp_path / "crops", allow_empty=True)
    boxes = ps.Boxes(tmp_path / "crops" / "a.csv")
    pack = ps.pack(boxes, tmp_path / "crops.pack", progress=False)
    assert len(pack.split("train")) == len(boxes) > 9
    assert (
        "too short to divide" in pack.manifest.notes["split"] and "crops of 1 raster" in pack.manifest.notes["groups"]
    )


def test_a_group_that_was_named_is_kept_for_crops(tmp_path: Path, raster: Path, table: pd.DataFrame) -> None:
    ps.split_raster(raster, table, 100, 0, tmp_path / "crops")
    boxes = ps.Boxes(tmp_path / "crops" / "a.csv", group_from="{group}.png")
    assert boxes.column("group").tolist() == ["a_0", "a_3"]
