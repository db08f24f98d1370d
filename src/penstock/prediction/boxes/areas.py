"""Polygons on the map inside of which boxes are looked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.map_files import layer_errors, read_layer
from penstock.errors import DataError, Problem, RecipeError, require
from penstock.prediction.boxes.scenes import Scene
from penstock.prediction.boxes.window_plans import WindowPlan
from penstock.wording import counted


def read_area(within: Any) -> Any:
    """The polygons of a layer, or of a GeoDataFrame, as a GeoSeries with a coordinate system."""
    require("geopandas", "geo", "Predicting within polygons")
    if isinstance(within, (str, os.PathLike)):
        damage: tuple[type[Exception], ...] = (OSError, *layer_errors())
        try:
            layers, frame = read_layer(Path(within))
        except damage as error:
            raise _refused(
                within, f"it cannot be read as a layer: {error}", "Name a .gpkg, .geojson or .shp"
            ) from error
        if frame is None:
            what = f"it has {counted(len(layers), 'layer')} with geometry{': ' if layers else ''}{', '.join(layers)}"
            raise _refused(within, what, "Save the one that is meant as its own file")
        found = frame.geometry
    else:
        found = getattr(within, "geometry", None)
        if found is None:
            raise RecipeError(f"within must be a layer or a GeoDataFrame, not {type(within).__name__}.")
    solid = found[found.geom_type.isin(["Polygon", "MultiPolygon"])]
    if not len(solid):
        raise _refused(within, "it has no polygons", "Name a layer of areas")
    if solid.crs is None:
        raise _refused(within, "it does not say its coordinate system", "Save it with one")
    return solid


def _refused(within: Any, what: str, remedy: str) -> DataError:
    return DataError([Problem(str(within) if isinstance(within, (str, os.PathLike)) else "within", None, what, remedy)])


class Area:
    """The polygons in pixels of one scene."""

    def __init__(self, polygons: Any, scene: Scene) -> None:
        shapely: Any = require("shapely", "geo", "Predicting within polygons")
        if scene.place is None:
            raise RecipeError(f"within: {scene.name} is on no map, so nobody knows where in it the polygons are.")
        place = scene.place
        a, b, c, d, e, f = place.transform
        determinant = a * e - b * d

        def to_pixels(points: NDArray[np.float64]) -> NDArray[np.float64]:
            x, y = points[:, 0] - c, points[:, 1] - f
            return np.stack([(e * x - b * y) / determinant, (a * y - d * x) / determinant], axis=1)

        joined = polygons.to_crs(place.crs).union_all()
        self._shapely = shapely
        self._shape = shapely.transform(joined, to_pixels)
        shapely.prepare(self._shape)

    def windows(self, plan: WindowPlan) -> NDArray[np.int64]:
        """The windows that share something with the polygons."""
        boxes = [plan.grid.window(number) for number in range(len(plan.grid))]
        corners = np.array([(one.x, one.y, one.x + one.width, one.y + one.height) for one in boxes], np.float64)
        touched = self._shapely.intersects(self._shape, self._shapely.box(*corners.T))
        return np.flatnonzero(touched)

    def holds(self, boxes: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Which boxes have their centre inside."""
        centres = (boxes[:, :2] + boxes[:, 2:]) / 2
        inside: NDArray[np.bool_] = self._shapely.contains_xy(self._shape, centres[:, 0], centres[:, 1])
        return inside
