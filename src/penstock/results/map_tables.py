"""Found boxes on the map: a GeoDataFrame with the outline of every box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray
from pyproj import CRS

from penstock.results.box_tables import KNOWN, BoxTable, SavesBoxes
from penstock.results.georeferences import Georeference
from penstock.wording import counted


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
