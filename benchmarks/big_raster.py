"""A large striped GeoTIFF, written strip by strip."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.pictures import picture


def write_striped(path: Path, side: int) -> None:
    """Three bands, strips of 16 rows, no compression: the layout that window readers refuse."""
    import rasterio
    from rasterio.transform import from_origin
    from rasterio.windows import Window

    if path.exists():
        return
    ground = picture(1, 1000, 1000)
    row = np.concatenate([ground] * (side // 1000), axis=1).transpose(2, 0, 1)
    layout = {"driver": "GTiff", "width": side, "height": side, "count": 3, "dtype": "uint8", "blockysize": 16}
    place = from_origin(500_000, 4_500_000, 0.1, 0.1)
    unfinished = path.with_suffix(".unfinished")
    with rasterio.open(unfinished, "w", crs="EPSG:32611", transform=place, interleave="pixel", **layout) as raster:
        for top in range(0, side, 1000):
            raster.write(row, window=Window(0, top, side, 1000))
    unfinished.rename(path)
