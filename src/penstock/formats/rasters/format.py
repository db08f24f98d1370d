"""Rasters: images that say where on earth they lie, and files that only GDAL opens."""

from __future__ import annotations

from pathlib import Path

from penstock.codecs.tiff import is_georeferenced
from penstock.formats.format import Format, Found, Look

TIFF_ENDINGS = (".tif", ".tiff")
# Rasters that only GDAL opens; a VRT beside the files that it names says nothing about their folder.
MAP_ENDINGS = (".jp2", ".vrt", ".img")


def are_rasters(images: list[Path]) -> bool:
    """Whether images are maps: TIFF files that say where on earth they lie."""
    tiffs = [file for file in images if file.suffix.lower() in TIFF_ENDINGS]
    return bool(tiffs) and len(tiffs) == len(images) and all(is_georeferenced(file) for file in tiffs[:8])


def recognise(look: Look) -> Found | None:
    """Files that only GDAL opens; folders of images are told apart by `formats/images/format.py`."""
    is_map = not look.is_folder and not look.kind and look.path.suffix.lower() in MAP_ENDINGS
    return Found("Rasters") if is_map else None


RASTERS = Format("rasters", "penstock.formats.rasters.rasters:Rasters", recognise=recognise)
