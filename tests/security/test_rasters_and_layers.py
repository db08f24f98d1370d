"""A raster or layer that is not what its name says reads no other file and asks no server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio

import penstock as ps
from commands import run_here
from penstock.codecs.headers import UnreadableImage
from penstock.codecs.map_files import RefusedFile, gdal, open_raster, read_layer
from penstock.geometry import as_boxes
from penstock.prediction.boxes.finding_boxes import read_area
from penstock.prediction.boxes.options import FindingOptions
from penstock.prediction.boxes.scenes import open_scene
from penstock.reporting.box_plots import plot_boxes
from penstock.results.box_tables import box_table
from raster_making import noise, write_raster, write_table

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
SECRET = b"root:x:0:0:root:/root:/bin/sh\n" * 40


def raw_vrt(secret: Path, side: int = 20) -> str:
    """A text that GDAL reads as a raster whose pixels are the bytes of another file."""
    bands = "".join(
        f'<VRTRasterBand dataType="Byte" band="{band}" subClass="VRTRawRasterBand"><SourceFilename relativeToVRT="0">'
        f"{secret}</SourceFilename><PixelOffset>1</PixelOffset><LineOffset>{side}</LineOffset></VRTRasterBand>"
        for band in (1, 2, 3)
    )
    return f'<VRTDataset rasterXSize="{side}" rasterYSize="{side}">{bands}</VRTDataset>'


def linked_vrt(source: str, side: int = 20) -> str:
    bands = "".join(
        f'<VRTRasterBand dataType="Byte" band="{band}"><SimpleSource><SourceFilename>{source}</SourceFilename>'
        f"<SourceBand>{band}</SourceBand></SimpleSource></VRTRasterBand>"
        for band in (1, 2, 3)
    )
    return f'<VRTDataset rasterXSize="{side}" rasterYSize="{side}">{bands}</VRTDataset>'


def wms(address: str) -> str:
    return (
        f'<GDAL_WMS><Service name="TMS"><ServerUrl>{address}/${{z}}/${{x}}/${{y}}.png</ServerUrl></Service><DataWindow>'
        "<UpperLeftX>0</UpperLeftX><UpperLeftY>9</UpperLeftY><LowerRightX>9</LowerRightX><LowerRightY>0</LowerRightY>"
        "<SizeX>20</SizeX><SizeY>20</SizeY><TileLevel>1</TileLevel></DataWindow><BandsCount>3</BandsCount></GDAL_WMS>"
    )


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "passwd"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    return path


def test_a_tif_that_is_a_vrt_is_refused_by_every_reader(tmp_path: Path, secret: Path) -> None:
    path = tmp_path / "x.tif"
    path.write_text(raw_vrt(secret))
    with rasterio.open(path) as plain:  # what GDAL itself would do
        assert plain.read(1).tobytes().startswith(b"root:x:0:0")
    (problem,) = ps.Rasters(path).problems()
    assert "VRT" in problem.what
    assert "allow_drivers=['VRT']" in problem.remedy
    with pytest.raises(ps.DataError, match="VRT"):
        ps.pack(ps.Rasters(path), tmp_path / "x.pack")
    with pytest.raises(ps.DataError, match="VRT"):
        open_scene(path, None)
    with pytest.raises(ps.DataError, match="VRT"):
        plot_boxes(box_table(as_boxes([1, 1, 5, 5]), ["a"], np.ones(1), ["x.tif"]), tmp_path / "p.png", folder=tmp_path)
    table = write_table(tmp_path / "t.csv", ["x.tif,1,2,3,4,oak"])
    with pytest.raises(UnreadableImage, match="it is no image"):
        ps.Boxes(table).read(0)


def test_requests_reach_no_server_whatever_a_raster_says(tmp_path: Path, listener: Any) -> None:
    remote = f"/vsicurl/{listener.address}/v.tif"
    for name, text in {
        "vrt": linked_vrt(remote),
        "wms": wms(listener.address),
        "streamed": linked_vrt(f"/vsicurl_streaming/{listener.address}/v.tif"),
    }.items():
        path = tmp_path / f"{name}.tif"
        path.write_text(text)
        assert ps.Rasters(path).problems(), name
        with pytest.raises(ps.DataError):
            open_scene(path, None)
    assert listener.requests == []


def test_overviews_named_by_metadata_are_not_fetched(tmp_path: Path, listener: Any) -> None:
    named = write_raster(tmp_path / "named.tif", noise(3, 1200, 1200))
    with rasterio.open(named, "r+") as file:
        file.update_tags(ns="OVERVIEWS", OVERVIEW_FILE=f"/vsicurl/{listener.address}/x.ovr")
    beside = write_raster(tmp_path / "beside.tif", noise(3, 1200, 1200))
    (tmp_path / "beside.tif.aux.xml").write_text(
        '<PAMDataset><Metadata domain="OVERVIEWS"><MDI key="OVERVIEW_FILE">'
        f"/vsicurl/{listener.address}/y.tif</MDI></Metadata></PAMDataset>"
    )
    side = write_raster(tmp_path / "side.tif", noise(3, 1200, 1200))
    (tmp_path / "side.tif.ovr").write_text(linked_vrt(f"/vsicurl/{listener.address}/z.tif", 600))
    for path in (named, beside, side):
        (problem,) = ps.Rasters(path, scale="2-98").problems()
        assert "overviews" in problem.what or "VRT" in problem.what
    assert listener.requests == []


def test_own_overviews_are_still_used(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 600, 600))
    with rasterio.Env(TIFF_USE_OVR="YES"), rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4])  # beside it, as a.tif.ovr
    assert (tmp_path / "a.tif.ovr").is_file()
    with gdal(), open_raster(path) as file:
        assert file.overviews(1) == [2, 4]
    assert ps.Rasters(path, scale="2-98").problems() == []


def test_a_vrt_opens_when_its_driver_is_allowed_but_never_the_network(tmp_path: Path, listener: Any) -> None:
    bands = noise(3, 50, 60)
    write_raster(tmp_path / "a.tif", bands)
    good, bad = tmp_path / "good.vrt", tmp_path / "bad.vrt"
    good.write_text(linked_vrt(str(tmp_path / "a.tif"), 50))
    bad.write_text(linked_vrt(f"/vsicurl/{listener.address}/v.tif"))
    source = ps.Rasters(good, allow_drivers=["vrt"])
    assert source.problems() == []
    assert np.array_equal(source[0]["image"][:, :, 0], bands[0][:, :50])
    assert open_scene(good, None, FindingOptions(allow_drivers="VRT").allow_drivers).width == 50
    (problem,) = ps.Rasters(bad, allow_drivers=["VRT"]).problems()
    assert "/v.tif' is not a file on this machine" in problem.what
    assert listener.requests == []


def test_an_unknown_driver_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match="Did you mean 'GTiff'"):
        ps.Rasters(write_raster(tmp_path / "a.tif", noise(3, 9, 9)), allow_drivers=["GTif"])


def test_virtual_paths_of_gdal_are_no_files(tmp_path: Path) -> None:
    for path in ("/vsicurl/http/127.0.0.1/x.tif", "/vsimem/x.tif", "/vsizip/x.zip/x.tif"):
        with pytest.raises(RefusedFile):
            open_raster(Path(path))
        with pytest.raises(RefusedFile):
            read_layer(Path(path))


FEATURE = {"type": "Feature", "properties": {"label": "a"}, "geometry": {"type": "Point", "coordinates": [1, 1]}}


def hostile_layers(address: str) -> dict[str, str]:
    """Texts in which OGR finds a server to ask."""
    link = {"type": "link", "properties": {"href": f"{address}/crs", "type": "ogcwkt"}}
    hidden = json.dumps({"type": "FeatureCollection", "crs": link, "features": [FEATURE]}).replace("link", "\\u006cink")
    inner = {**FEATURE, "geometry": {**FEATURE["geometry"], "crs": link}}  # type: ignore[dict-item]
    twice = json.dumps({"type": "FeatureCollection", "crs": link, "features": [FEATURE]})
    remote = f"/vsicurl/{address}/x.geojson"
    return {
        "link": twice,
        "url": twice.replace('"link"', '"URL"'),
        "hidden": hidden,
        "quotes": twice.replace('"', "'"),
        "cased": twice.replace('"type": "link"', '"type": "link", "Type": "name"'),
        "comment": "{/* */" + twice[1:],
        "inner": json.dumps({"type": "FeatureCollection", "features": [inner]}),
        "pipeline": json.dumps({"type": "gdal_streamed_alg", "command_line": f"gdal vector pipeline ! read {remote}"}),
        "vrt": f'<OGRVRTDataSource><OGRVRTLayer name="x"><SrcDataSource>{remote}</SrcDataSource></OGRVRTLayer>'
        "</OGRVRTDataSource>",
        "wfs": f"<OGRWFSDataSource><URL>{address}/wfs</URL></OGRWFSDataSource>",
    }


@pytest.mark.parametrize("ending", [".geojson", ".gpkg", ".shp", ".fgb"])
def test_a_layer_asks_no_server(tmp_path: Path, listener: Any, ending: str) -> None:
    write_raster(tmp_path / "a.tif", noise(3, 20, 20), crs="EPSG:32611", transform=rasterio.Affine(1, 0, 0, 0, -1, 20))
    for name, text in hostile_layers(listener.address).items():
        path = tmp_path / f"{name}{ending}"
        path.write_text(text)
        with pytest.raises(ps.DataError):
            ps.Boxes(path, point_buffer=1)
        with pytest.raises(ps.DataError):
            read_area(path)
    assert listener.requests == []


def test_honest_layers_are_read_also_with_escapes_and_words_such_as_link(tmp_path: Path) -> None:
    name = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32611"}}
    marked = {**FEATURE, "properties": {"type": "link", "url": "http://x", "label": "caf\u00e9"}}
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": name, "features": [marked]}))
    layers, frame = read_layer(path)
    assert len(layers) == 1
    assert frame["label"].tolist() == ["café"]
    for ending in (".gpkg", ".shp", ".fgb"):
        frame.drop(columns="type").to_file(tmp_path / f"a{ending}")
        assert read_layer(tmp_path / f"a{ending}")[1]["label"].tolist() == ["café"]


def test_an_allowed_driver_is_allowed_wherever_a_raster_is_opened(tmp_path: Path) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    place = {"crs": "EPSG:32610", "transform": rasterio.Affine(0.5, 0, 0, 0, -0.5, 25)}
    write_raster(tmp_path / "whole.tif", noise(3, 50, 50), **place)
    vrt = linked_vrt(str(tmp_path / "whole.tif"), 50).replace(
        "<VRTRasterBand", "<SRS>EPSG:32610</SRS><GeoTransform>0,0.5,0,25,0,-0.5</GeoTransform><VRTRasterBand", 1
    )
    (tmp_path / "a.vrt").write_text(vrt)
    columns = {"label": ["oak"], "score": [0.9], "image_path": ["a.vrt"]}
    layer = tmp_path / "p.gpkg"
    geopandas.GeoDataFrame(columns, geometry=[shapely.box(1, 10, 11, 20)], crs="EPSG:32610").to_file(layer)
    truth = write_table(tmp_path / "t.csv", ["a.vrt,2,10,22,30,oak"])
    points = tmp_path / "points.csv"
    points.write_text("image_path,x,y,label\na.vrt,12,20,oak\n")
    allowed: dict[str, Any] = {"allow_drivers": "VRT"}

    with pytest.raises(ps.DataError, match="VRT"):
        ps.evaluate(layer, truth=truth)
    assert ps.evaluate(layer, truth=truth, **allowed).scores["box_recall"] == 1
    told = run_here("evaluate", layer, "--truth", truth, "--allow-driver", "VRT", "--json")
    assert told.exit_code == 0 and told.json["box_recall"] == 1

    told = run_here("report", layer, "--allow-driver", "VRT", "-o", tmp_path / "p.html")
    assert told.exit_code == 0 and "<img" in (tmp_path / "p.html").read_text()

    table = box_table(as_boxes([1, 1, 5, 5]), ["oak"], np.ones(1), ["a.vrt"])
    assert plot_boxes(table, tmp_path / "p.png", folder=tmp_path, **allowed).is_file()

    told = run_here("export", tmp_path / "a.vrt", "--to", "directory", "-o", tmp_path / "d", "--allow-driver", "VRT")
    assert told.exit_code == 0
    assert ps.open(tmp_path / "a.vrt", **allowed)[0]["image"].shape == (50, 50, 3)

    source = ps.Rasters(tmp_path / "a.vrt", boxes=points, point_buffer="5m", **allowed)
    assert source.problems() == [] and source[0]["boxes"].tolist() == [[2, 10, 22, 30]]
    crops = ps.split_raster(
        tmp_path / "a.vrt", layer, patch_size=50, patch_overlap=0.0, save_dir=tmp_path / "crops", **allowed
    )
    assert len(crops) == 1
