"""Boxes made by anything are compared with their truth, whatever files both are in."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import penstock as ps
from commands import run_here
from penstock.errors import DataError, OptionError
from penstock.formats.reading import ReadingOptions
from penstock.prediction.box_files import read_comparison
from picture_making import write_picture
from raster_making import noise, write_raster

HEADER = "image_path,xmin,ymin,xmax,ymax,label,score\n"
TRUTH = "image_path,xmin,ymin,xmax,ymax,label\na.png,0,0,10,10,Tree\na.png,20,0,30,10,Tree\nb.png,0,0,10,10,Tree\n"
PREDICTED = HEADER + "a.png,0,0,10,10,Tree,0.9\na.png,50,50,60,60,Tree,0.3\nb.png,1,0,10,10,Tree,0.8\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def voc(path: Path, image: str, boxes: list[tuple[int, ...]]) -> Path:
    names = ("xmin", "ymin", "xmax", "ymax")
    corners = ["".join(f"<{name}>{value}</{name}>" for name, value in zip(names, box, strict=True)) for box in boxes]
    objects = "".join(f"<object><name>Tree</name><bndbox>{corner}</bndbox></object>" for corner in corners)
    return write(path, f"<annotation><filename>{image}</filename>{objects}</annotation>")


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return write(tmp_path / "truth.csv", TRUTH)


def test_one_table_with_image_paths(tmp_path: Path, truth: Path) -> None:
    found = ps.evaluate(write(tmp_path / "found.csv", PREDICTED), truth=truth)
    assert found.scores["box_precision"] == 0.75 and found.scores["box_recall"] == 0.75
    assert found.table["image_path"].tolist() == ["a.png", "b.png"] and found.table["matches"].tolist() == [1, 1]
    assert ps.evaluate(tmp_path / "found.csv", truth=truth, min_score=0.5).scores["box_precision"] == 1


def test_data_frames_give_the_same(tmp_path: Path, truth: Path) -> None:
    path = write(tmp_path / "found.csv", PREDICTED)
    assert ps.evaluate(pd.read_csv(path), truth=pd.read_csv(truth)).scores == pytest.approx(
        ps.evaluate(path, truth=truth).scores, nan_ok=True
    )


def test_a_folder_of_tables_named_like_the_images_of_voc_files(tmp_path: Path) -> None:
    write(tmp_path / "found/a.csv", ",xmin,ymin,xmax,ymax,score,label\n0,0,0,10,10,0.9,Tree\n")
    write(tmp_path / "found/b.csv", ",xmin,ymin,xmax,ymax,score,label\n")
    voc(tmp_path / "xml/a.xml", "a.tif", [(0, 0, 10, 10)])
    voc(tmp_path / "xml/b.xml", "b.tif", [(0, 0, 10, 10)])
    voc(tmp_path / "xml/c.xml", "c.tif", [])
    found = ps.evaluate(tmp_path / "found", truth=f"{tmp_path}/xml/*.xml")
    assert found.scores["box_recall"] == 0.5 and found.scores["box_precision"] == 1
    assert found.scores["empty_frame_accuracy"] == 1 and found.details["not_in_truth"] == []


def test_yolo_with_scores_takes_the_size_of_its_images(tmp_path: Path) -> None:
    write_picture(tmp_path / "images/a.png", width=100, height=50)
    write(tmp_path / "yolo/a.txt", "0 0.5 0.5 0.2 0.4 0.75\n")
    truth = write(tmp_path / "truth.csv", "image_path,xmin,ymin,xmax,ymax,label\na.png,40,15,60,35,0\n")
    found = ps.evaluate(tmp_path / "yolo", truth=truth, images=tmp_path / "images", min_score=0.7)
    assert found.scores["box_f1"] == 1
    with pytest.raises(DataError, match="no image called a"):
        ps.evaluate(tmp_path / "yolo", truth=truth)


def test_a_layer_takes_the_place_of_its_raster(tmp_path: Path) -> None:
    from rasterio import Affine

    from penstock.results.box_tables import box_table
    from penstock.results.georeferences import Georeference

    place = Georeference("EPSG:32611", (0.1, 0, 5e5, 0, -0.1, 4e6))
    write_raster(tmp_path / "a.tif", noise(3, 60, 80), crs=place.crs, transform=Affine(*place.transform))
    boxes = np.array([[5.0, 5, 20, 20], [30, 30, 50, 50]])
    table = box_table(boxes, ["Tree"] * 2, np.array([0.9, 0.6]), ["a.tif"] * 2, places={"a.tif": place})
    table.save(tmp_path / "found.gpkg")
    truth = write(tmp_path / "truth.csv", "image_path,xmin,ymin,xmax,ymax,label\na.tif,5,5,20,20,Tree\n")
    found = ps.evaluate(tmp_path / "found.gpkg", truth=truth).scores
    assert found["box_precision"] == 0.5 and found["box_recall"] == 1 and found["ap50"] == 1
    unnamed = table.drop(columns="image_path")
    assert ps.evaluate(unnamed, truth=truth, images=tmp_path).scores == pytest.approx(found, nan_ok=True)
    (tmp_path / "a.tif").unlink()
    with pytest.raises(DataError, match="'a.tif' does not exist"):
        ps.evaluate(tmp_path / "found.gpkg", truth=truth)


@pytest.mark.parametrize("text", ["", HEADER, "xmin,ymin,xmax,ymax\n", HEADER + "a.png,0,0,0,0,Tree,\n"])
def test_no_predictions_are_no_error(tmp_path: Path, truth: Path, text: str) -> None:
    found = ps.evaluate(write(tmp_path / "found.csv", text), truth=truth, min_score=0.2).scores
    assert found["box_recall"] == 0 and math.isnan(found["box_precision"])


def test_images_of_the_same_name_in_two_folders_stay_apart(tmp_path: Path) -> None:
    rows = "{0}/a.png,0,0,10,10,Tree\n{1}/a.png,50,50,60,60,Tree\n"
    truth = write(tmp_path / "truth.csv", "image_path,xmin,ymin,xmax,ymax,label\n" + rows.format("north", "south"))
    found = ps.evaluate(write(tmp_path / "found.csv", HEADER[:-7] + "\n" + rows.format("north", "south")), truth=truth)
    assert found.scores["box_recall"] == 1
    swapped = write(tmp_path / "swapped.csv", HEADER[:-7] + "\n" + rows.format("south", "north"))
    assert ps.evaluate(swapped, truth=truth).scores["box_recall"] == 0
    bare = write(tmp_path / "bare.csv", HEADER[:-7] + "\na.png,0,0,10,10,Tree\n")
    with pytest.raises(DataError, match="'a.png' may be .*north/a.png or .*south/a.png"):
        ps.evaluate(bare, truth=truth)


def test_two_images_are_not_taken_for_one(tmp_path: Path, truth: Path) -> None:
    found = write(tmp_path / "found.csv", HEADER + "x/a.png,0,0,10,10,Tree,1\ny/a.png,0,0,10,10,Tree,1\n")
    with pytest.raises(DataError, match="would both be 'a.png'"):
        ps.evaluate(found, truth=truth)


def test_names_without_anything_in_common_are_an_error(tmp_path: Path, truth: Path) -> None:
    found = write(tmp_path / "found.csv", HEADER + "plot_1.png,0,0,10,10,Tree,1\n")
    with pytest.raises(DataError, match="no image with predictions is in the truth: 'plot_1.png' here, 'a.png' there"):
        ps.evaluate(found, truth=truth)


def test_images_that_the_truth_lacks_count_when_asked(tmp_path: Path, truth: Path) -> None:
    path = write(tmp_path / "found.csv", PREDICTED + "other.png,0,0,10,10,Tree,0.9\n")
    left_out, counted = (ps.evaluate(path, truth=truth, count_empty=count) for count in (False, True))
    assert left_out.scores["box_precision"] == 0.75 and counted.scores["box_precision"] == 0.5
    assert left_out.details["not_in_truth"] == ["other.png"]
    assert math.isnan(counted.scores["empty_frame_accuracy"])


def test_all_problems_of_a_file_are_said_at_once(tmp_path: Path, truth: Path) -> None:
    rows = "a.png,10,0,0,10,Tree,0.5\na.png,0,x,10,10,Tree,0.5\na.png,0,0,10,10,Tree,0.5\n"
    with pytest.raises(DataError) as raised:
        ps.evaluate(write(tmp_path / "found.csv", HEADER + rows), truth=truth)
    assert sorted(problem.row for problem in raised.value.problems) == [2, 3]


def test_a_row_without_a_score_among_others_is_a_problem(tmp_path: Path, truth: Path) -> None:
    rows = "a.png,0,0,10,10,Tree,0.5\na.png,20,0,30,10,Tree,\n"
    with pytest.raises(DataError, match="line 3: the row has no score"):
        ps.evaluate(write(tmp_path / "found.csv", HEADER + rows), truth=truth)


def test_a_table_without_labels_has_the_only_class_of_the_truth(tmp_path: Path, truth: Path) -> None:
    found = write(tmp_path / "found.csv", "image_path,xmin,ymin,xmax,ymax\na.png,0,0,10,10\n")
    assert ps.evaluate(found, truth=truth).scores["Tree_recall"] == pytest.approx(1 / 3)


def test_wrong_options_are_refused(tmp_path: Path, truth: Path) -> None:
    with pytest.raises(OptionError, match="iou=1"):
        ps.evaluate(truth, truth=truth, iou=1)
    with pytest.raises(OptionError, match="min_score=0.5 needs predictions with scores"):
        ps.evaluate(truth, truth=truth, min_score=0.5)
    with pytest.raises(OptionError, match="pass truth too"):
        ps.evaluate("runs/trees", min_score=0.5)


def test_the_command_writes_null_for_what_cannot_be_said(tmp_path: Path, truth: Path) -> None:
    done = run_here("evaluate", write(tmp_path / "found.csv", HEADER), "--truth", truth, "--json")
    assert done.exit_code == 0 and done.json["box_recall"] == 0 and done.json["box_precision"] is None
    assert done.json["samples"] == 2 and done.json["scores"]["box_recall"] == 0


def test_the_command_says_what_the_truth_lacks(tmp_path: Path, truth: Path) -> None:
    path = write(tmp_path / "found.csv", PREDICTED + "other.png,0,0,10,10,Tree,0.9\n")
    done = run_here("evaluate", path, "--truth", truth, "-o", tmp_path / "images.csv")
    assert "box_precision" in done.out and "1 image with predictions not in the truth, such as other.png." in done.err
    assert pd.read_csv(tmp_path / "images.csv")["image_path"].tolist() == ["a.png", "b.png", "other.png"]


def test_boxes_are_compared_without_torch(tmp_path: Path, truth: Path) -> None:
    path = write(tmp_path / "found.csv", PREDICTED)
    code = f"""
import sys
sys.modules["torch"] = None
from penstock.cli import main
main(["evaluate", {str(path)!r}, "--truth", {str(truth)!r}, "--json"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert json.loads(done.stdout)["box_recall"] == 0.75, done.stderr


def test_a_layer_in_another_folder_than_its_image_names_the_cure_and_works_with_it(tmp_path: Path) -> None:
    geopandas = pytest.importorskip("geopandas")
    rasterio = pytest.importorskip("rasterio")
    shapely = pytest.importorskip("shapely")
    (tmp_path / "data").mkdir()
    (tmp_path / "out").mkdir()
    image = tmp_path / "data" / "a.tif"
    profile = {"driver": "GTiff", "width": 40, "height": 30, "count": 1, "dtype": "uint8", "crs": "EPSG:32610"}
    with rasterio.open(image, "w", transform=rasterio.Affine(1, 0, 0, 0, -1, 30), **profile) as raster:
        raster.write(np.zeros((1, 30, 40), np.uint8))
    columns = {"label": ["Tree"], "score": [0.9], "image_path": [str(image)]}
    geopandas.GeoDataFrame(columns, geometry=[shapely.box(1, 10, 11, 28)], crs="EPSG:32610").to_file(
        tmp_path / "out" / "p.gpkg"
    )
    (tmp_path / "data" / "t.csv").write_text("image_path,xmin,ymin,xmax,ymax,label\na.tif,1,2,11,20,Tree\n")
    both = (tmp_path / "out" / "p.gpkg", None)
    with pytest.raises(ps.DataError, match=r"leaves the folder .*Pass images, .* or allow_outside=True"):
        ps.evaluate(*both, truth=tmp_path / "data" / "t.csv")
    for cure in ({"allow_outside": True}, {"images": tmp_path / "data"}):
        assert ps.evaluate(*both, truth=tmp_path / "data" / "t.csv", **cure).scores["box_recall"] == 1


def test_numbers_without_names_in_predictions_are_those_of_the_list_of_the_truth(tmp_path: Path) -> None:
    write_picture(tmp_path / "truth" / "images" / "a.png")
    write_picture(tmp_path / "truth" / "images" / "b.png")
    write(tmp_path / "truth" / "labels" / "a.txt", "0 0.5 0.5 0.5 0.2\n1 0.2 0.2 0.2 0.2\n")
    write(tmp_path / "truth" / "labels" / "b.txt", "")
    write(tmp_path / "truth" / "classes.txt", "Tree\nBush\n")
    found = write(tmp_path / "x" / "y" / "z" / "a.txt", "0 0.5 0.5 0.5 0.2 0.9\n1 0.2 0.2 0.2 0.2 0.9\n").parent
    both = read_comparison(found, tmp_path / "truth", ReadingOptions(images=tmp_path / "truth" / "images"))
    assert both.predictions.labels.tolist() == both.truth.labels.tolist()
