"""Boxes in rasters, images and sources, by a detector that learned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("torchvision")
pytest.importorskip("rasterio")
pytest.importorskip("geopandas")

import penstock as ps  # noqa: E402
from commands import run_here  # noqa: E402
from penstock.codecs.images import encode_image  # noqa: E402
from penstock.results.box_scores import ImageBoxes, score_boxes  # noqa: E402
from scene_making import Scenes, scene  # noqa: E402

CORNERS = ["xmin", "ymin", "xmax", "ymax"]


def f1_of(table: Any, boxes: Any) -> float:
    none = np.zeros(len(table), np.int64)
    found = ImageBoxes.of([table[CORNERS].to_numpy()], [none], [table["score"].to_numpy()])
    true = ImageBoxes.of([boxes], [np.zeros(len(boxes), np.int64)])
    return score_boxes(found, true, image_count=1, classes=["Tree"]).box_f1


def assert_same(one: Any, other: Any) -> None:
    """The same boxes in the same order, up to float arithmetic."""
    assert len(one) == len(other) > 0
    np.testing.assert_allclose(one[CORNERS], other[CORNERS], atol=0.01)
    np.testing.assert_allclose(one["score"], other["score"], atol=1e-4)
    assert one["label"].tolist() == other["label"].tolist()


def test_a_small_detector_learns_to_find_crowns(crowns_run: ps.Run) -> None:
    found = ps.evaluate(crowns_run, Scenes(27, first=9000, sizes=(128, 150)))
    assert found.scores["box_f1"] >= 0.9
    assert found.samples == 27
    logged = [line for line in crowns_run.metrics() if "box_recall" in line]
    assert len(logged) == 16
    assert {"box_precision", "box_f1", "ap50", "Fir_recall", "val_loss"} <= set(logged[-1])


def test_the_table_of_an_evaluation_has_the_names_of_files_also_without_rows(
    crowns_run: ps.Run, tmp_path: Path
) -> None:
    import pandas as pd

    data = Scenes(4, first=9000, sizes=(128, 150))
    found = ps.evaluate(crowns_run, data).table
    assert {*CORNERS, "label", "score"} <= set(found.columns) and len(found) > 0
    with pytest.warns(DeprecationWarning, match="'x1' is called 'xmin'"):
        assert found["x1"].tolist() == found["xmin"].tolist()
    nothing = ps.evaluate(ps.load(crowns_run).changed(score_threshold=1.0), data)
    assert len(nothing.table) == 0
    for ending, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        empty: Any = read(nothing.save(tmp_path / f"nothing{ending}"))
        assert list(empty.columns) == ["image_path", *CORNERS, "label", "score"] and len(empty) == 0


def test_a_raster_gives_a_table_on_the_map(crowns_run: ps.Run, raster: Callable[..., Path], tmp_path: Path) -> None:
    pixels, boxes, _ = scene(3, 700, most=60)
    path = raster(pixels)
    crowns: Any = ps.predict(crowns_run, path)
    assert f1_of(crowns, boxes) >= 0.9
    assert crowns.crs.to_epsg() == 32617
    west, south, east, north = crowns.geometry.iloc[0].bounds
    x1, y1, x2, y2 = crowns[CORNERS].iloc[0]
    expected = (500_000 + x1 / 10, 4_000_000 - y2 / 10, 500_000 + x2 / 10, 4_000_000 - y1 / 10)
    assert (west, south, east, north) == pytest.approx(expected, abs=1e-7)
    saved = ps.predict(crowns_run, path, output=tmp_path / "crowns.gpkg")
    assert saved == tmp_path / "crowns.gpkg"
    assert saved.is_file()


def test_arrays_are_looked_at_window_by_window_as_files_of_the_same_pixels(crowns_run: ps.Run, tmp_path: Path) -> None:
    sizes = (700, 1300)  # looked at as a whole, and cut into windows
    arrays = [scene(3, size, most=60)[0] for size in sizes]
    files = [tmp_path / f"{size}.png" for size in sizes]
    for file, pixels in zip(files, arrays, strict=True):
        file.write_bytes(encode_image(pixels, "png"))
    columns = [*CORNERS, "label", "score"]
    for options in ({}, {"tile_px": 256, "overlap": 0.2, "score_threshold": 0.2}):
        expected: Any = ps.predict(crowns_run, files, **options)
        found: Any = ps.predict(crowns_run, arrays, **options)
        assert len(found) > 40 and found[columns].equals(expected[columns])
        names = {str(file): f"image {number}" for number, file in enumerate(files)}
        assert found["image_path"].tolist() == expected["image_path"].map(names).tolist()
    saved: Any = ps.predict(crowns_run, arrays[0], output=tmp_path / "crowns.csv")
    assert len(saved.read_text().splitlines()) > 20


def test_options_that_need_a_file_or_a_map_are_refused_for_arrays(crowns_run: ps.Run, tmp_path: Path) -> None:
    pixels = scene(3, 200, most=9)[0]
    with pytest.raises(ps.OptionError, match="bands, gsd: images in memory"):
        ps.predict(crowns_run, pixels, bands=(1, 2, 3), gsd=0.1)
    with pytest.raises(ps.OptionError, match=r"1 of 1 image has no georeference \(CRS\), such as image 0"):
        ps.predict(crowns_run, pixels, output=tmp_path / "crowns.gpkg")
    with pytest.raises(ps.DataError, match="image 0: expected an array"):
        ps.predict(crowns_run, pixels.astype(float))


def test_a_layer_of_images_with_and_without_a_georeference_is_refused_before_looking(
    crowns_run: ps.Run, raster: Callable[..., Path], tmp_path: Path
) -> None:
    pixels = scene(3, 200, most=9)[0]
    files = [raster(pixels), raster(pixels, name="unplaced.tif", crs=None)]
    with pytest.raises(ps.OptionError, match=r"1 of 2 images has no georeference \(CRS\), such as .*unplaced\.tif"):
        ps.predict(crowns_run, files, output=tmp_path / "crowns.gpkg")
    assert not list(tmp_path.glob("crowns*"))


def test_images_in_two_zones_are_brought_to_one_and_that_is_said(
    crowns_run: ps.Run, raster: Callable[..., Path], tmp_path: Path
) -> None:
    pixels = scene(3, 200, most=9)[0]
    files = [raster(pixels), raster(pixels, name="east.tif", crs="EPSG:32618")]
    told: list[ps.Problem] = []
    crowns: Any = ps.predict(crowns_run, files, on_problem=told.append)
    assert crowns.crs.to_epsg() == 32617 and not crowns.geometry.isna().any()
    (problem,) = told
    assert problem.warning and "1 image in EPSG:32618" in problem.what and "brought to EPSG:32617" in problem.what


def test_the_answer_is_the_same_for_every_worker_count_batch_size_and_tiling(
    crowns_run: ps.Run, raster: Callable[..., Path]
) -> None:
    pixels = scene(4, 600, most=50)[0]
    path = raster(pixels)
    striped = raster(pixels, name="striped.tif", blockysize=1)
    tiled = raster(pixels, name="tiled.tif", tiled=True, blockxsize=128, blockysize=128)
    plain = ps.predict(crowns_run, path, tile_px=256)
    assert_same(plain, ps.predict(crowns_run, path, tile_px=256, workers=3))
    assert_same(plain, ps.predict(crowns_run, striped, tile_px=256))
    assert_same(plain, ps.predict(crowns_run, tiled, tile_px=256, workers=2))


def test_two_devices_find_the_same_boxes(crowns_run: ps.Run, raster: Callable[..., Path]) -> None:
    path = raster(scene(4, 300, most=20)[0])
    both = ps.predict(crowns_run, path, tile_px=128, device=["cpu", "cpu"])
    assert_same(ps.predict(crowns_run, path, tile_px=128), both)
    source = Scenes(3, first=300)
    assert ps.predict(crowns_run, source, device="cpu,cpu").equals(ps.predict(crowns_run, source))


def test_no_more_boxes_than_asked_for_are_answered_best_first(crowns_run: ps.Run, raster: Callable[..., Path]) -> None:
    path = raster(scene(4, 300, most=20)[0])
    every = ps.predict(crowns_run, path, tile_px=128)
    few = ps.predict(ps.load(crowns_run).changed(detections_per_image=3), path, tile_px=128)
    assert few["score"].tolist() == every["score"].tolist()[:3]


def test_a_model_that_was_saved_answers_the_same(crowns_run: ps.Run, tmp_path: Path) -> None:
    model = ps.load(crowns_run)
    again = ps.load(model.save(tmp_path / "crowns.safetensors"))
    assert again.task == model.task
    source = Scenes(3, first=300)
    assert ps.predict(again, source).equals(ps.predict(model, source))


def test_thresholds_can_be_changed_on_a_loaded_model(crowns_run: ps.Run) -> None:
    model = ps.load(crowns_run)
    source = Scenes(6, first=700)
    every, sure = ps.predict(model, source, score_threshold=0.1), ps.predict(model, source, score_threshold=0.8)
    assert len(sure) < len(every)
    assert sure["score"].min() >= 0.8
    strict = model.changed(score_threshold=0.8)
    assert strict.thresholds["score"] == 0.8
    assert ps.predict(strict, source).equals(sure)
    with pytest.raises(ps.OptionError, match="score_threshold"):
        model.changed(score_treshold=0.5)


def test_a_finer_raster_is_brought_to_the_resolution_of_the_model(
    crowns_run: ps.Run, raster: Callable[..., Path]
) -> None:
    pixels, boxes, _ = scene(5, 400, most=25)
    fine = raster(pixels.repeat(4, axis=0).repeat(4, axis=1), gsd=0.025)
    model = ps.load(crowns_run).changed(gsd=0.1)
    assert f1_of(ps.predict(model, fine), boxes * 4) >= 0.85
    assert f1_of(ps.predict(model, fine, gsd="none"), boxes * 4) < 0.5


def test_nothing_is_looked_for_outside_of_the_polygons(
    crowns_run: ps.Run, raster: Callable[..., Path], tmp_path: Path
) -> None:
    import geopandas
    import shapely

    path = raster(scene(6, 512, most=40)[0])
    left = shapely.box(500_000, 4_000_000 - 51.2, 500_000 + 25.6, 4_000_000)
    area = geopandas.GeoDataFrame(geometry=[left], crs="EPSG:32617").to_crs("EPSG:4326")
    area.to_file(tmp_path / "area.gpkg")
    everything = ps.predict(crowns_run, path, tile_px=256)
    within = ps.predict(crowns_run, path, tile_px=256, within=tmp_path / "area.gpkg")
    assert_same(within, everything[(everything["xmin"] + everything["xmax"]) / 2 < 256].reset_index(drop=True))
    with pytest.raises(ps.DataError, match="cannot be read as a layer"):
        ps.predict(crowns_run, path, within=tmp_path / "missing.gpkg")


def test_photos_folders_and_lists_are_looked_at(crowns_run: ps.Run, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(encode_image(scene(40 + number, 150)[0], "png"))
    table: Any = ps.predict(crowns_run, tmp_path)
    assert list(table.image_sizes.values()) == [(150, 150)] * 3
    files = sorted(tmp_path.glob("*.png"))
    assert ps.predict(crowns_run, files[1:]).equals(table[table["image_path"] != str(files[0])].reset_index(drop=True))
    judged = ps.predict(crowns_run, Scenes(3, first=40, size=150))
    assert len(judged) == len(table)


def test_where_nothing_is_found_the_table_is_empty_and_can_be_saved(
    crowns_run: ps.Run, raster: Callable[..., Path], tmp_path: Path
) -> None:
    path = raster(np.full((300, 300, 3), 120, np.uint8))
    for ending in (".gpkg", ".geojson", ".csv", ".json", ".parquet"):
        table: Any = ps.predict(crowns_run, path)
        assert len(table) == 0
        assert {"label", "score", "image_path", "geometry", *CORNERS} == set(table.columns)
        assert table.save(tmp_path / f"none{ending}").is_file()


def test_files_that_cannot_be_read_are_named_or_skipped(crowns_run: ps.Run, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no picture")
    (tmp_path / "good.png").write_bytes(encode_image(scene(40)[0], "png"))
    with pytest.raises(ps.HopError, match="bad.png"):
        ps.predict(crowns_run, tmp_path)
    table = ps.predict(crowns_run, tmp_path, on_bad_sample="skip")
    assert set(table["image_path"]) == {str(tmp_path / "good.png")}
    assert list(table.attrs["problems"]) == [str(tmp_path / "bad.png")]


def test_wrong_options_are_refused(crowns_run: ps.Run, tmp_path: Path) -> None:
    for wrong in ({"tile_px": 10}, {"overlap": 1.0}, {"precision": "64"}, {"gsd": -1}, {"tilepx": 400}):
        with pytest.raises(ps.OptionError):
            ps.predict(crowns_run, Scenes(1), **wrong)
    with pytest.raises(ps.OptionError, match="must end in"):
        ps.predict(crowns_run, Scenes(1), output=tmp_path / "boxes.xlsx")


def test_the_command_writes_a_layer_and_a_picture(
    crowns_run: ps.Run, raster: Callable[..., Path], tmp_path: Path
) -> None:
    path = raster(scene(3, 300, most=12)[0])
    layer, picture = tmp_path / "crowns.geojson", tmp_path / "crowns.png"
    done = run_here("predict", crowns_run.folder, path, "-o", layer, "--plot", picture)
    assert done.exit_code == 0, done.err
    assert len(json.loads(layer.read_text())["features"]) == len(ps.predict(crowns_run, path))
    assert picture.read_bytes().startswith(b"\x89PNG")
