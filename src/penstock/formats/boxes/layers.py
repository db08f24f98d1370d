"""Vector layers (GeoJSON, GeoPackage, shapefile, GeoParquet, GeoDataFrame) onto the pixels of their rasters.

Every vertex of a feature goes into the raster's own coordinate system and through its inverse affine transform
(rotation and non-square pixels included); the box is the bounds of what comes out. A feature that names no image
goes to each raster that it overlaps; when there are several, to those that hold its centre (or, when none does, to
the one that it overlaps most), and is cut at their borders. Points become boxes with `point_buffer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import map_files
from penstock.codecs.headers import UnreadableImage
from penstock.codecs.map_files import RefusedFile, gdal_errors, layer_errors
from penstock.errors import DataError, Problem, require
from penstock.formats.boxes.box_tables import needed_buffer, table_images, table_labels, table_scores
from penstock.formats.boxes.locating import NotFound, make_finder
from penstock.formats.boxes.rows import ImageName, Rows, make_rows
from penstock.formats.paths import IMAGE_ENDINGS, files_below
from penstock.formats.reading import ReadingOptions
from penstock.formats.tables import Table, table_of_frame
from penstock.storage.plain_files import refuse_special
from penstock.wording import counted

if TYPE_CHECKING:
    import geopandas as gpd

LAYER_ENDINGS = frozenset({".geojson", ".gpkg", ".shp", ".fgb", ".geoparquet"})
_POINT_TYPE = 0


class Raster(NamedTuple):
    """Where the pixels of an image are on the map: pixel = inverse · map."""

    file: Path
    crs: str
    inverse: NDArray[np.floating]
    width: int
    height: int


@dataclass(frozen=True)
class Features:
    """Shapes with their coordinate system and the table of their attributes."""

    shapes: NDArray[Any]
    crs: Any
    table: Table


def read_layer(file: Path) -> Features:
    """The features of a file with one layer."""
    geopandas = require("geopandas", "geo", "Reading vector layers")
    if file.suffix.lower() in (".parquet", ".pq", ".geoparquet"):
        try:
            refuse_special(file)
            return features_of_frame(geopandas.read_parquet(file), file)
        except (OSError, ValueError) as error:
            raise DataError([Problem(str(file), None, f"is no readable layer: {error}", "Export it again")]) from error
    damage: tuple[type[Exception], ...] = (OSError, *layer_errors())
    try:
        layers, frame = map_files.read_layer(file)
        if frame is None:
            what = f"has {counted(len(layers), 'layer')} with geometry{': ' if layers else ''}{', '.join(layers)}"
            raise DataError([Problem(str(file), None, what, "Export the one with the annotations to its own file")])
        return features_of_frame(frame, file)
    except RefusedFile as refused:
        raise DataError([Problem(str(file), None, refused.what, refused.remedy)]) from refused
    except damage as error:
        raise DataError([Problem(str(file), None, f"is no readable layer: {error}", "Export it again")]) from error


def features_of_frame(frame: gpd.GeoDataFrame, file: Path | None = None) -> Features:
    """Features of a GeoDataFrame; those of a file are numbered from 1."""
    shapes = np.asarray(frame.geometry.values, object)
    table = table_of_frame(frame.drop(columns=frame.geometry.name))
    if file is not None:
        table = Table(str(file), file.parent, table.columns, np.arange(1, len(frame) + 1))
    return Features(shapes, frame.crs, table)


def is_geojson(document: dict[str, Any]) -> bool:
    return document.get("type") in ("FeatureCollection", "Feature")


def is_geoparquet(file: Path) -> bool:
    """Whether a Parquet file says that it has geometry."""
    from pyarrow import ArrowInvalid, parquet

    try:
        refuse_special(file)
        metadata = parquet.read_schema(file).metadata or {}
    except (OSError, ArrowInvalid):
        return False
    return b"geo" in metadata


def layer_rows(features: Features, options: ReadingOptions) -> Rows:
    """Rows of a layer: by its image column where it has one, by place otherwise."""
    if features.crs is None:
        what = "the layer has no coordinate system (CRS)"
        raise DataError([Problem(features.table.name, None, what, "Set it in your GIS, or add the .prj file")])
    column = features.table.find("image")
    return _placed_by_name(features, column, options) if column else _placed_by_extent(features, options)


def _placed_by_name(features: Features, column: str, options: ReadingOptions) -> Rows:
    """Each feature in the raster that it names; its box is kept as it falls, also over the border."""
    table = features.table
    image, images, problems = table_images(table, column, options)
    label, labels = table_labels(table, options)
    box = np.full((len(table), 4), np.nan)
    points = np.zeros(len(table), bool)
    broken = image < 0
    finder = make_finder(options)
    for number, name in enumerate(images):
        mine = np.flatnonzero(image == number)
        try:
            raster = open_raster(finder.find(name), options)
        except NotFound:
            broken[mine] = True  # reported with all the other images that are not there
            continue
        except DataError as error:
            problems += error.problems
            broken[mine] = True
            continue
        box[mine], points[mine] = _pixel_boxes(features.shapes[mine], features.crs, raster, options, table.name)
    unplaced = np.isinf(box).any(axis=1)
    problems += [
        Problem(table.name, int(table.lines[row]), "it cannot be brought into the raster's system", "Check the CRS")
        for row in np.flatnonzero(unplaced)
    ]
    broken |= unplaced
    lacking = np.isnan(box).any(axis=1) & ~broken
    problems += _without_geometry(table, np.flatnonzero(lacking))
    broken |= lacking
    box[broken] = np.nan
    return make_rows(
        tables=[table.name],
        images=images,
        labels=labels,
        line=table.lines,
        image=image,
        label=label,
        box=box,
        broken=broken,
        point=points,
        score=table_scores(table),
        problems=problems,
    )


def _placed_by_extent(features: Features, options: ReadingOptions) -> Rows:
    """Each feature in the rasters that it overlaps; all rasters are listed, also those without features."""
    table = features.table
    label, labels = table_labels(table, options)
    label = np.broadcast_to(np.asarray(label, np.int64), (len(table),))
    scores = np.broadcast_to(table_scores(table), (len(table),))
    rasters, problems = _open_rasters(_candidates(features, options), options)
    hits = _overlaps(features, rasters, options)
    kept = _owned(hits, rasters)
    lost = np.setdiff1d(np.arange(len(table)), hits.feature)
    problems += _lost_features(table, features.shapes, lost)
    shapely = require("shapely", "geo", "Reading vector layers")
    is_point = np.asarray(shapely.get_type_id(features.shapes) == _POINT_TYPE, bool)
    count = len(rasters)
    return make_rows(
        tables=[table.name],
        images=[ImageName(raster.file.name, raster.file.parent, file=raster.file) for raster in rasters],
        labels=labels,
        line=np.concatenate([table.lines[hits.feature[kept]], np.zeros(count, np.int64)]),
        image=np.concatenate([hits.raster[kept], np.arange(count)]),
        label=np.concatenate([label[hits.feature[kept]], np.full(count, -1)]),
        box=np.concatenate([hits.box[kept], np.full((count, 4), np.nan)]),
        point=np.concatenate([is_point[hits.feature[kept]], np.zeros(count, bool)]),
        clip=True,
        score=np.concatenate([scores[hits.feature[kept]], np.full(count, np.nan)]),
        problems=problems,
    )


class _Hits(NamedTuple):
    """Pairs of a feature and a raster that overlap, with the box of the feature in pixels of that raster."""

    feature: NDArray[np.int64]
    raster: NDArray[np.int64]
    box: NDArray[np.float64]


def _overlaps(features: Features, rasters: Sequence[Raster], options: ReadingOptions) -> _Hits:
    shapely = require("shapely", "geo", "Reading vector layers")
    found: list[_Hits] = []
    for crs in dict.fromkeys(raster.crs for raster in rasters):
        shapes = _reprojected(features.shapes, features.crs, crs)
        bounds = shapely.bounds(shapes)
        for number, raster in enumerate(rasters):
            if raster.crs == crs:
                near = np.flatnonzero(_near(bounds, raster, options))
                box, points = _shape_pixels(shapes[near], raster, options, features.table.name)
                inside = _touches(box, points, raster)
                found.append(_Hits(near[inside], np.full(int(inside.sum()), number), box[inside]))
    if not found:
        return _Hits(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 4)))
    return _Hits(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _near(bounds: NDArray[np.float64], raster: Raster, options: ReadingOptions) -> NDArray[np.bool_]:
    """Features whose bounds on the map meet those of the raster: a cheap first sieve."""
    corners = _affine(np.linalg.inv(raster.inverse), _corners(0, 0, raster.width, raster.height))
    low, high = corners.min(axis=0), corners.max(axis=0)
    near: NDArray[np.bool_] = ((bounds[:, 2:] >= low) & (bounds[:, :2] <= high)).all(axis=1)
    return near


def _touches(box: NDArray[np.float64], points: NDArray[np.bool_], raster: Raster) -> NDArray[np.bool_]:
    """A shape must share area with the raster; a point must lie in it."""
    size = np.array([raster.width, raster.height])
    centre = (box[:, :2] + box[:, 2:]) / 2
    shared = ((box[:, 2:] > 0) & (box[:, :2] < size)).all(axis=1)
    inside: NDArray[np.bool_] = np.where(points, ((centre >= 0) & (centre <= size)).all(axis=1), shared)
    return inside


def _owned(hits: _Hits, rasters: Sequence[Raster]) -> NDArray[np.bool_]:
    """Which pairs stay when a feature overlaps several rasters."""
    if not len(hits.feature):
        return np.zeros(0, bool)
    sizes = np.array([[raster.width, raster.height] for raster in rasters], np.float64)[hits.raster]
    centre = (hits.box[:, :2] + hits.box[:, 2:]) / 2
    holds_centre = ((centre >= 0) & (centre < sizes)).all(axis=1)
    has_owner = np.bincount(hits.feature, holds_centre) > 0
    inside = np.clip(hits.box, 0, np.tile(sizes, 2))
    share = (inside[:, 2] - inside[:, 0]) * (inside[:, 3] - inside[:, 1])
    share = share / np.maximum((hits.box[:, 2] - hits.box[:, 0]) * (hits.box[:, 3] - hits.box[:, 1]), 1e-12)
    order = np.lexsort((hits.raster, -share, hits.feature))
    largest = np.zeros(len(order), bool)
    largest[order[np.unique(hits.feature[order], return_index=True)[1]]] = True
    kept: NDArray[np.bool_] = np.where(has_owner[hits.feature], holds_centre, largest)
    return kept


def _lost_features(table: Table, shapes: NDArray[Any], lost: NDArray[np.int64]) -> list[Problem]:
    """Features in no raster: those without a shape are wrong, the others are only said."""
    shapely = require("shapely", "geo", "Reading vector layers")
    empty = shapely.is_missing(shapes[lost]) | shapely.is_empty(shapes[lost])
    problems = _without_geometry(table, lost[empty])
    outside = int(len(lost) - empty.sum())
    if outside:
        what = f"{outside:,} of {counted(len(table), 'feature')} outside every raster, left out"
        problems.append(Problem(table.name, None, what, "Add the rasters that they belong to", warning=True))
    return problems


def _without_geometry(table: Table, lacking: NDArray[np.int64]) -> list[Problem]:
    return [
        Problem(table.name, int(table.lines[number]), "the feature has no geometry", "Draw it, or remove the feature")
        for number in lacking
    ]


def _candidates(features: Features, options: ReadingOptions) -> list[Path]:
    if options.files is not None:
        return list(options.files)
    folder = options.images or features.table.folder
    files = files_below(folder, IMAGE_ENDINGS)
    if not files:
        what = f"the features name no image, and there is no raster in {folder}"
        raise DataError([Problem(features.table.name, None, what, "Pass images, the folder of the rasters")])
    return files


def _open_rasters(files: Sequence[Path], options: ReadingOptions) -> tuple[list[Raster], list[Problem]]:
    rasters, problems = [], []
    for file in files:
        try:
            rasters.append(open_raster(file, options))
        except DataError as error:
            problems += list(error.problems)
    return rasters, problems


def open_raster(file: Path, options: ReadingOptions) -> Raster:
    """The georeference of a raster; one without is a problem, because a layer cannot be placed on it."""
    require("rasterio", "geo", "Placing layers on rasters")
    damage: tuple[type[Exception], ...] = (UnreadableImage, OSError, *gdal_errors())
    try:
        with map_files.open_raster(file, allow_drivers=options.allow_drivers) as raster:
            crs, transform, size = raster.crs, raster.transform, (raster.width, raster.height)
    except RefusedFile as refused:
        raise DataError([Problem(str(file), None, refused.what, refused.remedy)]) from refused
    except damage as error:
        raise DataError([Problem(str(file), None, f"the raster cannot be read: {error}", "Replace it")]) from error
    if crs is None or transform.is_identity or transform.determinant == 0:
        lacks = "coordinate system (CRS)" if crs is None else "position on the map (affine transform)"
        remedy = "Georeference it, or give the boxes in pixels"
        raise DataError([Problem(str(file), None, f"the raster has no {lacks}, and the layer has one", remedy)])
    inverse = np.array(~transform, np.float64).reshape(3, 3)
    return Raster(file, crs.to_wkt(), inverse, *size)


def _reprojected(shapes: NDArray[Any], crs: Any, target: str) -> NDArray[Any]:
    geopandas = require("geopandas", "geo", "Reading vector layers")
    pyproj = require("pyproj", "geo", "Reading vector layers")
    try:
        moved = geopandas.GeoSeries(shapes, crs=crs).to_crs(target)
    except pyproj.exceptions.ProjError as error:
        what = f"the layer's coordinate system cannot be turned into that of a raster: {error}"
        raise DataError([Problem(str(crs), None, what, "Reproject the layer in your GIS")]) from error
    return np.asarray(moved.values, object)


def _pixel_boxes(
    shapes: NDArray[Any], crs: Any, raster: Raster, options: ReadingOptions, name: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return _shape_pixels(_reprojected(shapes, crs, raster.crs), raster, options, name)


def _shape_pixels(
    shapes: NDArray[Any], raster: Raster, options: ReadingOptions, name: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Bounds in pixels of shapes in the raster's system, from every vertex; NaN for a shape without any."""
    shapely = require("shapely", "geo", "Reading vector layers")
    vertices, owner = shapely.get_coordinates(shapes, return_index=True)
    pixels = _affine(raster.inverse, vertices)
    box = np.full((len(shapes), 4), np.nan)
    if len(owner):
        present, starts = np.unique(owner, return_index=True)
        box[present, :2] = np.minimum.reduceat(pixels, starts)
        box[present, 2:] = np.maximum.reduceat(pixels, starts)
    points = np.asarray(shapely.get_type_id(shapes) == _POINT_TYPE, bool)
    if points.any():
        box[points] += np.array([-1, -1, 1, 1]) * needed_buffer(options, name)
    return box, points


def _affine(matrix: NDArray[np.floating], points: NDArray[np.floating]) -> NDArray[np.float64]:
    moved: NDArray[np.float64] = points @ matrix[:2, :2].T + matrix[:2, 2]
    return moved


def _corners(x1: float, y1: float, x2: float, y2: float) -> NDArray[np.float64]:
    return np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]], np.float64)
