"""Tables of found boxes: exact on the map, complete when empty, and saved in every format."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.formats.boxes.annotation_files import read_rows
from penstock.formats.reading import ReadingOptions
from penstock.results.box_tables import FOUND_COLUMNS, BoxTable, box_table
from penstock.results.box_writing import ENDINGS
from penstock.results.georeferences import Georeference

# Rotated, not square, and not the right way up.
TURNED = Georeference("EPSG:32611", (0.1, 0.02, 500_000.0, 0.03, -0.2, 4_100_000.0))
NORTH_UP = Georeference("EPSG:32611", (0.1, 0.0, 500_000.0, 0.0, -0.1, 4_100_000.0))
BOXES = np.array([[1.25, 2.5, 30.125, 40.0], [100.0, 50.0, 130.5, 90.75]])


def table(count: int = 2, place: Georeference | None = None) -> BoxTable:
    return box_table(
        BOXES[:count],
        ["Tree", "Bird"][:count],
        np.array([0.9, 0.25])[:count],
        ["a.tif"] * count,
        classes=["Bird", "Tree"],
        image_sizes={"a.tif": (200, 100), "b.tif": (50, 60)},
        places={"a.tif": place} if place else None,
    )


@given(
    st.tuples(*[st.floats(-3, 3)] * 4).filter(lambda abde: abs(abde[0] * abde[3] - abde[1] * abde[2]) > 0.01),
    st.tuples(st.floats(-1e7, 1e7), st.floats(-1e7, 1e7)),
)
@settings(max_examples=100, deadline=None)
def test_a_round_trip_over_the_map_stays_within_a_millionth_of_a_pixel(
    abde: tuple[float, float, float, float], corner: tuple[float, float]
) -> None:
    a, b, d, e = abde
    place = Georeference("EPSG:32611", (a, b, corner[0], d, e, corner[1]))
    np.testing.assert_allclose(place.boxes(place.outlines(BOXES)), BOXES, rtol=0, atol=1e-6)


def test_the_corner_of_the_first_pixel_is_the_corner_of_the_raster() -> None:
    outline = NORTH_UP.outlines(np.array([[0.0, 0.0, 1.0, 2.0]]))[0]
    np.testing.assert_allclose(
        outline, [[5e5, 4.1e6], [5e5 + 0.1, 4.1e6], [5e5 + 0.1, 4.1e6 - 0.2], [5e5, 4.1e6 - 0.2]]
    )


def test_a_transform_onto_a_line_is_refused() -> None:
    with pytest.raises(OptionError, match="onto a line"):
        Georeference("EPSG:32611", (0.1, 0.1, 0, 0.1, 0.1, 0))


@pytest.mark.parametrize("place", [None, TURNED], ids=["photo", "map"])
def test_chosen_rows_are_a_table_that_saves_too(place: Georeference | None, tmp_path: Path) -> None:
    chosen = table(place=place).query("score > 0.5")
    assert type(chosen) is type(table(place=place)) and chosen.classes == ("Bird", "Tree")
    chosen.save(tmp_path / "chosen.csv")
    assert pd.read_csv(tmp_path / "chosen.csv")["label"].tolist() == ["Tree"]


@pytest.mark.parametrize("count", [2, 0])
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_keeps_boxes_and_also_none(tmp_path: Path, ending: str, count: int) -> None:
    import geopandas as gpd

    found = table(count, TURNED)
    assert list(found.columns) == [*FOUND_COLUMNS, "geometry"] and found.crs == "EPSG:32611"
    path = found.save(tmp_path / f"crowns{ending}")
    assert path.exists() and not [each for each in tmp_path.iterdir() if each.name.startswith(".")]
    if ending == ".csv":
        read = pd.read_csv(path)
        assert list(read.columns) == ["xmin", "ymin", "xmax", "ymax", "label", "score", "image_path"]
        np.testing.assert_array_equal(read.to_numpy()[:, :4].astype(float), BOXES[:count])
    elif ending == ".json":
        assert len(json.loads(path.read_text())["annotations"]) == count
    else:
        read = gpd.read_parquet(path) if ending == ".parquet" else gpd.read_file(path)
        assert len(read) == count and read.crs == ("EPSG:4326" if ending == ".geojson" else "EPSG:32611")
        if count:
            outlines = np.array([np.array(shape.exterior.coords)[:4] for shape in read.to_crs(found.crs).geometry])
            np.testing.assert_allclose(TURNED.boxes(outlines), BOXES, rtol=0, atol=1e-6)
            np.testing.assert_allclose(read["score"], [0.9, 0.25])
            assert read["label"].tolist() == ["Tree", "Bird"]


def test_coco_lists_images_without_boxes_and_all_classes(tmp_path: Path) -> None:
    document = json.loads(table(1).save(tmp_path / "crowns.json").read_text())
    assert [(image["file_name"], image["width"]) for image in document["images"]] == [("a.tif", 200), ("b.tif", 50)]
    assert [category["name"] for category in document["categories"]] == ["Bird", "Tree"]
    (box,) = document["annotations"]
    assert box["bbox"] == [1.25, 2.5, 28.875, 37.5] and box["category_id"] == 2 and box["score"] == 0.9


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_what_is_saved_is_read_again_with_scores(tmp_path: Path, ending: str) -> None:
    rows = read_rows(table().save(tmp_path / f"crowns{ending}"), ReadingOptions())
    boxed = ~np.isnan(rows.box[:, 0])
    np.testing.assert_allclose(rows.box[boxed], BOXES)
    np.testing.assert_allclose(rows.score[boxed], [0.9, 0.25])
    assert [rows.labels[label] for label in rows.label[boxed]] == ["Tree", "Bird"]


@pytest.mark.parametrize("ending", [".gpkg", ".geojson", ".shp"])
def test_a_photo_is_on_no_map(tmp_path: Path, ending: str) -> None:
    with pytest.raises(OptionError, match=r"no georeference \(CRS\). Write .csv"):
        table().save(tmp_path / f"crowns{ending}")
    assert not list(tmp_path.iterdir())


def test_images_in_two_coordinate_systems_meet_in_that_of_the_first() -> None:
    places = {"a.tif": NORTH_UP, "b.tif": Georeference("EPSG:4326", (1e-6, 0, -117.0, 0, -1e-6, 37.0))}
    found = box_table(BOXES, ["Tree"] * 2, np.ones(2), ["a.tif", "b.tif"], places=places)
    assert found.crs == "EPSG:32611"
    expected = places["b.tif"].outlines(BOXES[1:])[0].mean(axis=0)
    centre = found.geometry.to_crs("EPSG:4326").iloc[1].centroid
    np.testing.assert_allclose([centre.x, centre.y], expected, atol=1e-9)


def test_which_images_changed_their_coordinate_system_or_have_none_is_noted() -> None:
    places = {"a.tif": NORTH_UP, "b.tif": Georeference("EPSG:32612", NORTH_UP.transform)}
    found = box_table(BOXES, ["Tree"] * 2, np.ones(2), ["a.tif", "c.png"], places=places)
    assert found.attrs["notes"] == [
        "1 image in EPSG:32612, such as b.tif, brought to EPSG:32611, the coordinate system of a.tif",
        "1 image without a georeference (CRS), such as c.png: no geometry",
    ]
    alone = box_table(BOXES, ["Tree"] * 2, np.ones(2), ["a.tif", "a.tif"], places={"a.tif": NORTH_UP})
    assert "notes" not in alone.attrs


@pytest.mark.parametrize("ending", [".gpkg", ".geojson", ".shp"])
def test_a_layer_never_holds_boxes_without_a_place(tmp_path: Path, ending: str) -> None:
    found = box_table(BOXES, ["Tree"] * 2, np.ones(2), ["a.tif", "c.png"], places={"a.tif": NORTH_UP})
    with pytest.raises(
        OptionError, match=r"1 of 2 boxes belong to 1 image without a georeference \(CRS\), such as c\.png"
    ):
        found.save(tmp_path / f"crowns{ending}")
    assert not list(tmp_path.iterdir())
    found.save(tmp_path / "crowns.csv")


def test_wrong_names_and_tables_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="must end in .gpkg"):
        table().save(tmp_path / "crowns.kml")
    with pytest.raises(OptionError, match="there is no folder"):
        table().save(tmp_path / "missing" / "crowns.csv")
    with pytest.raises(OptionError, match="no column score"):
        table().drop(columns="score").save(tmp_path / "crowns.csv")
    with pytest.raises(OptionError, match="equally many"):
        box_table(BOXES, ["Tree"], np.ones(2), ["a.tif"] * 2)
    assert not list(tmp_path.iterdir())


def test_a_layer_that_was_there_is_replaced_as_a_whole(tmp_path: Path) -> None:
    import geopandas as gpd

    for count in (2, 1):
        table(count, TURNED).save(tmp_path / "crowns.gpkg")
        table(count, TURNED).save(tmp_path / "crowns.shp")
    assert len(gpd.read_file(tmp_path / "crowns.gpkg")) == len(gpd.read_file(tmp_path / "crowns.shp")) == 1


OLD = {"x1": "xmin", "y1": "ymin", "x2": "xmax", "y2": "ymax"}
PLACES = pytest.mark.parametrize("place", [None, TURNED], ids=["photo", "map"])


@PLACES
@pytest.mark.parametrize(
    "changed",
    [
        lambda found: found,
        lambda found: found.copy(),
        lambda found: copy.deepcopy(found),
        lambda found: pickle.loads(pickle.dumps(found)),
        lambda found: found[found["score"] > 0],
        lambda found: found.query("score > 0").sort_values("ymin").reset_index(drop=True),
        lambda found: found.iloc[:2],
        lambda found: found.assign(area=1.0),
        lambda found: pd.concat([found, found], ignore_index=True),
        lambda found: found[["xmin", "ymin", "xmax", "ymax", "score"]],
        lambda found: found.drop(columns=["geometry"], errors="ignore"),
    ],
    ids=["made", "copy", "deepcopy", "pickle", "mask", "query", "slice", "assign", "concat", "columns", "plain"],
)
def test_old_column_names_read_the_new_columns_and_say_so(
    place: Georeference | None, changed: Callable[[Any], Any]
) -> None:
    found = changed(table(place=place))
    assert not set(OLD) & set(found.columns)
    for old, new in OLD.items():
        with pytest.warns(DeprecationWarning, match=f"{old!r} is called {new!r}") as seen:
            as_item, as_attribute = found[old], getattr(found, old)
        assert [one.filename for one in seen] == [__file__] * 2
        pd.testing.assert_series_equal(as_item, found[new])
        pd.testing.assert_series_equal(as_attribute, found[new])
    with pytest.warns(DeprecationWarning, match="'x1' is called 'xmin' and 'y2' is called 'ymax'"):
        assert list(found[["x1", "y2", "score"]].columns) == ["xmin", "ymax", "score"]


@PLACES
def test_setting_an_old_column_name_changes_the_column_and_adds_none(place: Georeference | None) -> None:
    found = table(place=place)
    columns = list(found.columns)
    with pytest.warns(DeprecationWarning, match="'x1' is called 'xmin'"):
        found["x1"] = [7.0, 8.0]
    with pytest.warns(DeprecationWarning, match="'y1' is called 'ymin'"):
        found.y1 = [9.0, 10.0]
    assert list(found.columns) == columns
    assert found["xmin"].tolist() == [7.0, 8.0] and found["ymin"].tolist() == [9.0, 10.0]


@PLACES
def test_a_column_that_the_user_calls_x1_is_just_that(place: Georeference | None) -> None:
    found = table(place=place).rename(columns={"xmin": "x1"})
    assert found["x1"].tolist() == found.x1.tolist() == [1.25, 100.0]
    with pytest.raises(KeyError, match="xmin"):
        found["xmin"]


def test_other_unknown_columns_are_still_errors() -> None:
    with pytest.raises(KeyError, match="x3"):
        table()["x3"]
    with pytest.raises(AttributeError, match="x3"):
        _ = table().x3
