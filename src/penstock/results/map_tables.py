"""Found boxes on the map: a GeoDataFrame with the outline of every box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray

from penstock.results.box_tables import KNOWN, SavesBoxes
from penstock.results.georeferences import Georeference


class MapBoxTable(SavesBoxes, gpd.GeoDataFrame):  # type: ignore[misc] # mypy does not look into geopandas
    """Boxes in images that are on a map; without its geometry it is a plain table of boxes."""

    _metadata: ClassVar[list[str]] = [*gpd.GeoDataFrame._metadata, *KNOWN]


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
