"""The table of found boxes: a DataFrame with the column names of files, a GeoDataFrame on a map.

    xmin ymin xmax ymax   pixels of the image, kept as floats    score        how sure the model is, 0 to 1
    label                 the name of the class                  image_path   which image
    geometry              the outline on the map

A table without rows has all of its columns. Choosing rows gives a table of the same kind. Columns have the names that
they have in files; the names of earlier versions, x1 y1 x2 y2, still read and write them, with a warning.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray
from pyproj import CRS

from penstock.errors import OptionError
from penstock.results.box_frames import CORNERS
from penstock.results.georeferences import Georeference
from penstock.wording import counted

FOUND_COLUMNS = (*CORNERS, "label", "score", "image_path")
# Names that columns had in earlier versions, and today's.
OLD_NAMES = dict(zip(("x1", "y1", "x2", "y2"), CORNERS, strict=True))
# What a table knows beside its rows; pandas carries these along.
KNOWN = ("classes", "image_sizes")


class OldColumnNames:
    """Tables whose columns can be read and set by their names of earlier versions, as items and as attributes."""

    def __getitem__(self, key: Any) -> Any:
        return self._as_boxes(super().__getitem__(_todays_names(self, key)))  # type: ignore[misc]

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_todays_names(self, key), value)  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(_todays_names(self, name) if name in OLD_NAMES else name)  # type: ignore[misc]

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(_todays_names(self, name) if name in OLD_NAMES else name, value)

    def _as_boxes(self, made: Any) -> Any:
        """What was made of a part of this table, which pandas may have made of another kind."""
        return made


def _todays_names(table: Any, key: Any) -> Any:
    """A column, or a list of them, by today's names, with a warning; a column that the user added keeps its name."""
    asked = key if isinstance(key, list) else [key]
    there = table.columns
    old = [one for one in asked if isinstance(one, str) and one in OLD_NAMES and one not in there]
    renamed = {one: OLD_NAMES[one] for one in old if OLD_NAMES[one] in there}
    if not renamed:
        return key
    names = " and ".join(f"{one!r} is called {now!r}" for one, now in renamed.items())
    what = f"the column {names} now, as in files; the old name will be removed in a later version."
    warnings.warn(what, DeprecationWarning, stacklevel=3)
    todays = [renamed[one] if isinstance(one, str) and one in renamed else one for one in asked]
    return todays if isinstance(key, list) else todays[0]


class SavesBoxes(OldColumnNames):
    """What both kinds of tables can do."""

    classes: tuple[str, ...] = ()
    image_sizes: Mapping[str, tuple[int, int]] = {}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write .gpkg, .geojson, .shp, .parquet, .csv or .json (COCO); the file appears when it is complete."""
        from penstock.results.box_writing import save_boxes

        return save_boxes(self, path)


class BoxTable(SavesBoxes, pd.DataFrame):  # type: ignore[misc] # the stubs of pandas call __getattr__ final
    """Boxes in images that are on no map."""

    _metadata: ClassVar[list[str]] = list(KNOWN)

    @property
    def _constructor(self) -> type[BoxTable]:
        return BoxTable


def box_table(
    boxes: NDArray[np.floating],
    labels: Sequence[str] | NDArray[Any],
    scores: NDArray[np.floating],
    image_paths: Sequence[str] | NDArray[Any],
    *,
    classes: Sequence[str] = (),
    image_sizes: Mapping[str, tuple[int, int]] | None = None,
    places: Mapping[str, Georeference] | None = None,
) -> BoxTable | MapBoxTable:
    """The table of boxes, each with label, score and image.

    classes       all names that the model knows, in their order
    image_sizes   width and height by image, of all images that were looked at, also where nothing was found
    places        where images are on the map; with any, the table has geometry in the coordinate system of the first;
                  `attrs["notes"]` then says which images were in another, or in none
    """
    corners = np.asarray(boxes, np.float64).reshape(-1, 4)
    counts = {len(corners), len(labels), len(scores), len(image_paths)}
    if len(counts) > 1:
        raise OptionError(f"boxes, labels, scores and image_paths must be equally many, not {sorted(counts)}.")
    columns = dict(zip(FOUND_COLUMNS[:4], corners.T, strict=True))
    names = {"label": pd.Series(list(labels), dtype="str"), "image_path": pd.Series(list(image_paths), dtype="str")}
    values = {**columns, "score": np.asarray(scores, np.float64), **names}
    ordered = {name: values[name] for name in FOUND_COLUMNS}
    if places:
        table: BoxTable | MapBoxTable = MapBoxTable(ordered, geometry=outlines_on_map(corners, image_paths, places))
        notes = map_notes([*(image_sizes or {}), *image_paths], places)
        if notes:
            table.attrs["notes"] = notes
    else:
        table = BoxTable(ordered)
    table.classes, table.image_sizes = tuple(classes), dict(image_sizes or {})
    return table


# Found boxes on the map: a GeoDataFrame with the outline of every box.


class MapBoxTable(SavesBoxes, gpd.GeoDataFrame):  # type: ignore[misc] # mypy does not look into geopandas
    """Boxes in images that are on a map; without its geometry it is a plain table of boxes."""

    _metadata: ClassVar[list[str]] = [*gpd.GeoDataFrame._metadata, *KNOWN]

    def _constructor_from_mgr(self, mgr: Any, axes: Any) -> Any:
        # Where pandas makes a table of part of this one, such as `drop(columns="geometry")`.
        return self._as_boxes(super()._constructor_from_mgr(mgr, axes))

    def _as_boxes(self, made: Any) -> Any:
        """What geopandas makes a plain DataFrame of is a table of boxes still."""
        return BoxTable(made).__finalize__(self) if type(made) is pd.DataFrame else made


def outlines_on_map(
    boxes: NDArray[np.float64], image_paths: Sequence[str] | NDArray[Any], places: Mapping[str, Georeference]
) -> gpd.GeoSeries:
    """The outline of each box in the coordinate system of the first place; none for an image that is on no map."""
    crs = next(iter(places.values())).crs
    shapes = np.full(len(boxes), None, object)
    names = np.asarray(image_paths, object)
    for name in dict.fromkeys(names.tolist()):
        place = places.get(name)
        if place is not None:
            mine = np.flatnonzero(names == name)
            outlines = gpd.GeoSeries(shapely.polygons(place.outlines(boxes[mine])), crs=place.crs)
            shapes[mine] = (outlines if place.crs == crs else outlines.to_crs(crs)).to_numpy()
    return gpd.GeoSeries(shapes, crs=crs)


def map_notes(image_paths: Sequence[str], places: Mapping[str, Georeference]) -> list[str]:
    """What happened to images that are not in the coordinate system of the table: brought to it, or in none."""
    (first, home), *others = places.items()
    moved: dict[str, list[str]] = {}
    for name, place in others:
        if place.crs != home.crs and CRS(place.crs) != CRS(home.crs):
            moved.setdefault(_system_name(place.crs), []).append(name)
    notes = [
        f"{counted(len(names), 'image')} in {system}, such as {names[0]}, brought to {_system_name(home.crs)}, the "
        f"coordinate system of {first}"
        for system, names in moved.items()
    ]
    nowhere = [name for name in dict.fromkeys(image_paths) if name not in places]
    if nowhere:
        notes.append(
            f"{counted(len(nowhere), 'image')} without a georeference (CRS), such as {nowhere[0]}: no geometry"
        )
    return notes


def _system_name(crs: str) -> str:
    """EPSG:32617, or the name that a coordinate system has."""
    system = CRS(crs)
    authority = system.to_authority()
    return ":".join(authority) if authority else str(system.name)
