"""Files of found boxes, for maps, tables and other programs; each appears only when it is complete.

| ending              | what it is                                                                              |
|---------------------|-----------------------------------------------------------------------------------------|
| .gpkg .shp          | a layer in the coordinate system of the image                                           |
| .geojson            | a layer in longitude and latitude (WGS 84), as its standard wants it                    |
| .parquet            | GeoParquet where the image is on a map, else a plain table                              |
| .csv                | xmin, ymin, xmax, ymax, label, score, image_path                                        |
| .json               | COCO with scores; images without boxes are listed too                                   |
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import OptionError, nearest, require
from penstock.results.box_frames import CORNERS
from penstock.results.box_tables import FOUND_COLUMNS
from penstock.storage.whole_files import whole_file, whole_files
from penstock.wording import counted

if TYPE_CHECKING:
    import pandas as pd

DRIVERS = {".gpkg": "GPKG", ".geojson": "GeoJSON", ".shp": "ESRI Shapefile"}
ENDINGS = (*DRIVERS, ".parquet", ".csv", ".json")
_APART = "Write .csv, .parquet or .json, or predict those images apart."
# Of a degree: some nanometres, so that a round trip stays within a millionth of a pixel.
GEOJSON_DECIMALS = 13


def check_box_output(path: str | os.PathLike[str], *, on_map: bool = True) -> Path:
    """Refuse, before hours are spent, a name that cannot be written; `on_map`: the images have a place on the map."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        known = f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        raise OptionError(f"output={str(path)!r} must end in {known}.{nearest(ending, ENDINGS)}")
    if not target.absolute().parent.is_dir():
        raise OptionError(f"output={str(path)!r}: there is no folder {target.parent}. Make it first.")
    if ending in DRIVERS and not on_map:
        raise OptionError(
            f"output={str(path)!r} is a map layer, and the image has no georeference (CRS). "
            "Write .csv, .parquet or .json."
        )
    return target


def is_layer(target: Path) -> bool:
    """Whether a file of this name is a layer for maps."""
    return target.suffix.lower() in DRIVERS


def check_places(target: Path, unplaced: Sequence[str], count: int) -> None:
    """Refuse, before hours are spent, a layer of images of which some have no place on the map."""
    if unplaced:
        raise OptionError(
            f"output={str(target)!r} is a map layer, and {len(unplaced):,} of {counted(count, 'image')} "
            f"{'has' if len(unplaced) == 1 else 'have'} no georeference (CRS), such as {unplaced[0]}. {_APART}"
        )


def save_boxes(table: Any, path: str | os.PathLike[str]) -> Path:
    """Write a table of boxes, in the format that the ending of the name says."""
    target = check_box_output(path, on_map=_on_map(table))
    missing = [name for name in FOUND_COLUMNS if name not in table.columns]
    if missing:
        raise OptionError(f"the table has no column {', '.join(missing)}, which a file of boxes needs.")
    ending = target.suffix.lower()
    if ending in DRIVERS:
        _refuse_lost_places(table, target)
        _write_layer(table, target)
    elif ending == ".json":
        with whole_file(target) as partial, partial.open("w", encoding="utf-8") as file:
            json.dump(_coco(table), file, ensure_ascii=False)
    else:
        _write_table(table, target)
    return target


def _on_map(table: Any) -> bool:
    return getattr(table, "crs", None) is not None


def _refuse_lost_places(table: Any, target: Path) -> None:
    """A box without a place would be a feature that no map shows."""
    lost = table.geometry.isna()
    if lost.any():
        images = table["image_path"][lost]
        raise OptionError(
            f"output={str(target)!r} is a map layer, and {len(images):,} of {counted(len(table), 'box')} belong to "
            f"{counted(images.nunique(), 'image')} without a georeference (CRS), such as {images.iloc[0]}. {_APART}"
        )


def _write_layer(table: Any, target: Path) -> None:
    pyogrio = require("pyogrio", "geo", "Writing layers")
    ending = target.suffix.lower()
    layer = table.reset_index(drop=True)
    options: dict[str, Any] = {}
    if ending == ".geojson":
        layer = layer.to_crs("EPSG:4326")
        options = {"RFC7946": "YES", "COORDINATE_PRECISION": GEOJSON_DECIMALS}
    with whole_files(target) as partial:
        # Without rows the kind of shapes cannot be seen.
        pyogrio.write_dataframe(
            layer, partial, layer=target.stem, driver=DRIVERS[ending], geometry_type="Polygon", **options
        )


def _write_table(table: Any, target: Path) -> None:
    with whole_file(target) as partial:
        if target.suffix.lower() == ".csv":
            plain: pd.DataFrame = table.drop(columns="geometry", errors="ignore")
            plain.to_csv(partial, index=False)
        else:
            table.to_parquet(partial, index=False)


def _coco(table: Any) -> dict[str, list[dict[str, Any]]]:
    """Ids count from 1; categories are the classes that the model knows, then others in the order of the rows."""
    images = list(dict.fromkeys([*table.image_sizes, *table["image_path"].tolist()]))
    classes = list(dict.fromkeys([*table.classes, *table["label"].tolist()]))
    image_ids = {name: number for number, name in enumerate(images, start=1)}
    class_ids = {name: number for number, name in enumerate(classes, start=1)}
    corners = table[list(CORNERS)].to_numpy(np.float64)
    rows = zip(corners.tolist(), table["label"], table["score"].tolist(), table["image_path"], strict=True)
    return {
        "images": [_coco_image(name, number, table.image_sizes.get(name)) for name, number in image_ids.items()],
        "annotations": [
            {
                "id": number,
                "image_id": image_ids[image],
                "category_id": class_ids[label],
                "bbox": [x1, y1, x2 - x1, y2 - y1],
                "area": (x2 - x1) * (y2 - y1),
                "iscrowd": 0,
                "score": score,
            }
            for number, ((x1, y1, x2, y2), label, score, image) in enumerate(rows, start=1)
        ],
        "categories": [{"id": number, "name": name} for name, number in class_ids.items()],
    }


def _coco_image(name: str, number: int, size: tuple[int, int] | None) -> dict[str, Any]:
    known = {} if size is None else {"width": int(size[0]), "height": int(size[1])}
    return {"id": number, "file_name": name, **known}
