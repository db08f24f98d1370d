"""Vector layers on rasters: any CRS, any affine transform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import rasterio
import shapely
from affine import Affine
from pyproj import Transformer

import penstock as ps
from penstock.formats.boxes.annotations import read_annotations

UTM = "EPSG:32610"
NORTH_UP = Affine(0.5, 0, 500_000, 0, -0.5, 4_500_000)
TRANSFORMS = {
    "north up": NORTH_UP,
    "non-square pixels": Affine(0.5, 0, 500_000, 0, -0.25, 4_500_000),
    "rotated": Affine.translation(500_000, 4_500_000) @ Affine.rotation(30) @ Affine.scale(0.5, -0.5),
    "rotated, with non-square pixels": (
        Affine.translation(500_000, 4_500_000) @ Affine.rotation(30) @ Affine.scale(0.5, -0.25)
    ),
    "south up": Affine(0.5, 0, 500_000, 0, 0.5, 4_500_000),
}
BOXES = np.array([[2, 3, 12, 13], [20, 5, 39, 30]], np.float64)


def write_raster(path: Path, transform: Affine = NORTH_UP, crs: str | None = UTM) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    profile = {"driver": "GTiff", "width": 40, "height": 30, "count": 3, "dtype": "uint8"}
    with rasterio.open(path, "w", transform=transform, crs=crs, **profile) as raster:
        raster.write(np.random.default_rng(0).integers(0, 255, (3, 30, 40), dtype=np.uint8))
    return path


def on_the_map(box: Any, transform: Affine = NORTH_UP) -> shapely.Polygon:
    """A pixel box as a polygon in the raster's coordinates."""
    x1, y1, x2, y2 = box
    return shapely.Polygon([transform @ corner for corner in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))])


def layer(shapes: list[Any], crs: str | None = UTM, **columns: Any) -> gpd.GeoDataFrame:
    return gpd.GeoDataFrame({"label": ["Tree"] * len(shapes), **columns}, geometry=shapes, crs=crs)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("crs", [UTM, "EPSG:4326", "EPSG:3857"])
def test_features_come_back_to_the_pixels_they_were_drawn_on(tmp_path: Path, name: str, crs: str) -> None:
    transform = TRANSFORMS[name]
    write_raster(tmp_path / "flight.tif", transform)
    frame = layer([on_the_map(box, transform) for box in BOXES]).to_crs(crs)
    frame.to_file(tmp_path / "crowns.gpkg")
    found = read_annotations(tmp_path / "crowns.gpkg")
    np.testing.assert_allclose(found.boxes, BOXES, atol=0.01)
    assert found.names == ("flight.tif",)
    assert found.classes == ("Tree",)
    assert found.problems == ()


def test_a_raster_in_longitude_and_latitude_works(tmp_path: Path) -> None:
    transform = Affine(1e-5, 0, -123.0, 0, -1e-5, 40.0)
    write_raster(tmp_path / "flight.tif", transform, "EPSG:4326")
    layer([on_the_map(box, transform) for box in BOXES], "EPSG:4326").to_crs(UTM).to_file(tmp_path / "crowns.shp")
    np.testing.assert_allclose(read_annotations(tmp_path / "crowns.shp").boxes, BOXES, atol=0.01)


@pytest.mark.parametrize("ending", ["geojson", "json", "gpkg", "shp", "parquet", "fgb"])
def test_every_kind_of_layer_is_read(tmp_path: Path, ending: str) -> None:
    write_raster(tmp_path / "flight.tif")
    frame = layer([on_the_map(box) for box in BOXES])
    path = tmp_path / f"crowns.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending.endswith("json"):
        frame.to_crs("EPSG:4326").to_file(path, driver="GeoJSON", COORDINATE_PRECISION=12)
    else:
        frame.to_file(path)
    np.testing.assert_allclose(np.sort(read_annotations(path).boxes, axis=0), BOXES, atol=0.01)


def test_a_geo_data_frame_is_read_as_it_is(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "flight.tif")
    found = read_annotations(layer([on_the_map(box) for box in BOXES]), files=[raster])
    np.testing.assert_allclose(found.boxes, BOXES, atol=1e-3)


def test_a_geo_data_frame_without_crs_is_in_pixels(tmp_path: Path) -> None:
    write_raster(tmp_path / "flight.tif")
    frame = layer([shapely.box(*box) for box in BOXES], None, image_path=["flight.tif"] * 2)
    np.testing.assert_allclose(read_annotations(frame, images=tmp_path).boxes, BOXES)


def test_every_vertex_counts_in_a_rotated_raster(tmp_path: Path) -> None:
    transform = TRANSFORMS["rotated"]
    write_raster(tmp_path / "flight.tif", transform)
    triangle = shapely.Polygon([transform @ corner for corner in ((5, 5), (15, 9), (8, 20))])
    found = read_annotations(layer([triangle]), images=tmp_path)
    np.testing.assert_allclose(found.boxes, [[5, 5, 15, 20]], atol=1e-3)


def test_points_of_a_layer_take_the_buffer_in_pixels(tmp_path: Path) -> None:
    write_raster(tmp_path / "flight.tif")
    frame = layer([shapely.Point(NORTH_UP @ (20, 10)), shapely.Point(NORTH_UP @ (1, 29))])
    found = read_annotations(frame, images=tmp_path, point_buffer=4)
    np.testing.assert_allclose(found.boxes, [[16, 6, 24, 14], [0, 25, 5, 30]], atol=1e-3)
    assert found.problems == ()


def test_an_image_column_places_features(tmp_path: Path) -> None:
    for name in ("one.tif", "two.tif"):
        write_raster(tmp_path / name)
    frame = layer([on_the_map(box) for box in BOXES], image_path=["two.tif", "two.tif"])
    found = read_annotations(frame, images=tmp_path)
    assert found.names == ("two.tif",)
    np.testing.assert_allclose(found.boxes, BOXES, atol=1e-3)


def neighbours(folder: Path) -> list[Path]:
    """Two rasters side by side, the second beginning where the first ends, in another zone's system."""
    return [write_raster(folder / "west.tif"), write_raster(folder / "east.tif", NORTH_UP @ Affine.translation(40, 0))]


def test_a_feature_on_the_border_goes_to_the_raster_that_holds_its_centre(tmp_path: Path) -> None:
    files = neighbours(tmp_path)
    frame = layer([on_the_map((34, 5, 42, 9)), on_the_map((36, 15, 50, 20))])
    found = read_annotations(frame, files=files)
    np.testing.assert_allclose(found.boxes_of(0), [[34, 5, 40, 9]], atol=1e-3)
    np.testing.assert_allclose(found.boxes_of(1), [[0, 15, 10, 20]], atol=1e-3)
    assert found.problems == ()


def test_a_feature_over_the_edge_of_everything_is_cut_there(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "flight.tif")
    found = read_annotations(layer([on_the_map((-20, 5, 6, 9))]), files=[raster])
    np.testing.assert_allclose(found.boxes, [[0, 5, 6, 9]], atol=1e-3)
    assert [problem.what for problem in found.problems if not problem.warning] == []


def test_features_outside_every_raster_are_counted(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "flight.tif")
    frame = layer([on_the_map((2, 3, 12, 13)), on_the_map((200, 300, 210, 310)), None])
    found = read_annotations(frame, files=[raster])
    assert [(problem.row, problem.what, problem.warning) for problem in found.problems] == [
        (None, "1 of 3 features outside every raster, left out", True),
        (2, "the feature has no geometry", False),
    ]


def test_rasters_in_different_systems_each_get_their_own(tmp_path: Path) -> None:
    corner = Transformer.from_crs(UTM, "EPSG:32611", always_xy=True).transform(500_000, 4_500_000)
    other = write_raster(tmp_path / "zone11.tif", Affine(0.5, 0, corner[0], 0, -0.5, corner[1]), "EPSG:32611")
    first = write_raster(tmp_path / "zone10.tif")
    found = read_annotations(layer([on_the_map((2, 3, 6, 7))]), files=[first, other])
    np.testing.assert_allclose(found.boxes_of(0), [[2, 3, 6, 7]], atol=0.01)
    assert len(found.boxes_of(1)) == 1


def test_a_layer_without_crs_is_a_problem_with_a_remedy(tmp_path: Path) -> None:
    write_raster(tmp_path / "flight.tif")
    layer([on_the_map(BOXES[0])]).to_file(tmp_path / "crowns.shp")
    (tmp_path / "crowns.prj").unlink()
    with pytest.raises(ps.DataError, match=r"no coordinate system.*\.prj"):
        read_annotations(tmp_path / "crowns.shp")


def test_a_raster_without_crs_is_a_problem_with_a_remedy(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "flight.tif", crs=None)
    found = read_annotations(layer([on_the_map(BOXES[0])]), files=[raster])
    assert any("flight.tif" in p.file and "no coordinate system" in p.what for p in found.problems)
    named = read_annotations(layer([on_the_map(BOXES[0])], image_path=["flight.tif"]), files=[raster])
    assert any("no coordinate system" in problem.what for problem in named.problems)


def test_a_damaged_layer_and_one_without_rasters_are_said(tmp_path: Path) -> None:
    (tmp_path / "crowns.gpkg").write_bytes(b"nothing")
    with pytest.raises(ps.DataError, match="it is no GeoJSON, GeoPackage"):
        read_annotations(tmp_path / "crowns.gpkg")
    with pytest.raises(ps.DataError, match="no raster in"):
        read_annotations(layer([on_the_map(BOXES[0])]), images=tmp_path)


@pytest.mark.filterwarnings("ignore:Non closed ring")
@pytest.mark.parametrize(
    "damage",
    [(b"[1, 2]]]", b"[1, 3]]]"), (b'"label"', b'"la\xffbel"')],
    ids=["an open ring", "a name that is no UTF-8"],
)
def test_a_layer_with_damage_inside_is_said(damage: tuple[bytes, bytes], tmp_path: Path) -> None:
    text = (
        b'{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"label": "Tree"}, '
        b'"geometry": {"type": "Polygon", "coordinates": [[[1, 2], [9, 2], [9, 8], [1, 2]]]}}]}'
    )
    (tmp_path / "crowns.geojson").write_bytes(text.replace(*damage))
    with pytest.raises(ps.DataError, match="crowns.geojson: is no readable layer"):
        read_annotations(tmp_path / "crowns.geojson")


def test_real_rasters_take_a_layer_in_longitude_and_latitude(shared_data: Path) -> None:
    path = shared_data / "trees_neon" / "OSBS_029.tif"
    truth = read_annotations(path.with_suffix(".csv"))
    with rasterio.open(path) as raster:
        shapes = [on_the_map(box.astype(float), raster.transform) for box in truth.boxes]
        frame = layer(shapes, raster.crs.to_wkt()).to_crs("EPSG:4326")
    found = read_annotations(frame, files=[path])
    np.testing.assert_allclose(found.boxes, truth.boxes, atol=0.05)


def test_points_of_a_layer_become_boxes_of_metres(tmp_path: Path) -> None:
    write_raster(tmp_path / "a.tif")  # half a metre in a pixel
    points = gpd.GeoDataFrame({"label": ["Tree"]}, geometry=[shapely.Point(500_010, 4_499_993)], crs=UTM)
    points.to_file(tmp_path / "points.gpkg")
    found = read_annotations(tmp_path / "points.gpkg", files=[tmp_path / "a.tif"], point_buffer="2m")
    assert found.problems == () and found.boxes.tolist() == [[16, 10, 24, 18]]
    assert ps.Rasters(tmp_path / "a.tif", boxes=tmp_path / "points.gpkg", point_buffer="2 m").counts()["boxes"] == 1


def test_points_in_pixels_become_boxes_of_metres_by_the_georeference_of_their_image(tmp_path: Path) -> None:
    write_raster(tmp_path / "a.tif")
    write_raster(tmp_path / "b.tif", Affine(0.25, 0, 500_000, 0, -0.25, 4_500_000))
    write_raster(tmp_path / "c.tif", crs=None)
    (tmp_path / "points.csv").write_text("image_path,x,y,label\na.tif,20,15,T\nb.tif,20,15,T\nc.tif,20,15,T\n")
    found = read_annotations(tmp_path / "points.csv", point_buffer="2m")
    assert found.boxes.tolist() == [[16, 11, 24, 19], [12, 7, 28, 23]]
    (problem,) = [problem for problem in found.problems if not problem.warning]
    assert problem.file.endswith("c.tif") and "no georeference (CRS)" in problem.what and "pixels" in problem.remedy


@pytest.mark.parametrize("buffer", ["2 km", "m", "-1m", 0, True, "nan"])
def test_a_buffer_is_a_number_of_pixels_or_metres(tmp_path: Path, buffer: Any) -> None:
    with pytest.raises(ps.OptionError, match="pixels above 0, or metres such as 2m"):
        read_annotations(write_raster(tmp_path / "a.tif"), point_buffer=buffer)


@pytest.mark.parametrize(
    "shape", [None, shapely.Polygon(), shapely.Point(np.nan, np.nan)], ids=["null", "empty", "nan"]
)
def test_a_feature_that_names_its_raster_and_has_no_geometry_is_a_problem(tmp_path: Path, shape: Any) -> None:
    raster = write_raster(tmp_path / "flight.tif")
    frame = layer([on_the_map(BOXES[0]), shape], image_path=["flight.tif"] * 2)
    found = read_annotations(frame, files=[raster], point_buffer=2)
    assert len(found.boxes) == 1
    (problem,) = (problem for problem in found.problems if not problem.warning)
    assert (problem.row, problem.what) == (1, "the feature has no geometry")


def test_a_feature_without_geometry_in_a_file_is_named_with_its_file_and_number(tmp_path: Path) -> None:
    write_raster(tmp_path / "flight.tif")
    frame = layer([on_the_map(BOXES[0]), None], image_path=["flight.tif"] * 2)
    frame.to_file(tmp_path / "crowns.gpkg")
    (problem,) = read_annotations(tmp_path / "crowns.gpkg").problems
    assert (Path(problem.file).name, problem.row) == ("crowns.gpkg", 2)
