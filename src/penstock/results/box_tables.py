"""The table of found boxes: a DataFrame, a GeoDataFrame where the images are on a map, which can save itself.

    x1 y1 x2 y2     pixels of the image, kept as floats          score        how sure the model is, 0 to 1
    label           the name of the class                        image_path   which image
    geometry        the outline on the map

A table without rows has all of its columns. Choosing rows gives a table of the same kind.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock.errors import RecipeError
from penstock.results.georeferences import Georeference

if TYPE_CHECKING:
    from penstock.results.map_tables import MapBoxTable

FOUND_COLUMNS = ("x1", "y1", "x2", "y2", "label", "score", "image_path")
# What a table knows beside its rows; pandas carries these along.
KNOWN = ("classes", "image_sizes")


class SavesBoxes:
    """What both kinds of tables can do."""

    classes: tuple[str, ...] = ()
    image_sizes: Mapping[str, tuple[int, int]] = {}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write .gpkg, .geojson, .shp, .parquet, .csv or .json (COCO); the file appears when it is complete."""
        from penstock.results.box_writing import save_boxes

        return save_boxes(self, path)


class BoxTable(SavesBoxes, pd.DataFrame):
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
        raise RecipeError(f"boxes, labels, scores and image_paths must be equally many, not {sorted(counts)}.")
    columns = dict(zip(FOUND_COLUMNS[:4], corners.T, strict=True))
    names = {"label": pd.Series(list(labels), dtype="str"), "image_path": pd.Series(list(image_paths), dtype="str")}
    values = {**columns, "score": np.asarray(scores, np.float64), **names}
    ordered = {name: values[name] for name in FOUND_COLUMNS}
    if places:
        from penstock.results.map_tables import MapBoxTable, map_notes, outlines_on_map

        table: BoxTable | MapBoxTable = MapBoxTable(ordered, geometry=outlines_on_map(corners, image_paths, places))
        notes = map_notes([*(image_sizes or {}), *image_paths], places)
        if notes:
            table.attrs["notes"] = notes
    else:
        table = BoxTable(ordered)
    table.classes, table.image_sizes = tuple(classes), dict(image_sizes or {})
    return table
