"""Headers inside of files that point nowhere: an error that names the file, or another way to read it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from commands import run_here
from penstock.codecs.map_files import gdal, open_raster
from penstock.formats.rasters.plain_blocks import plain_raster
from raster_making import noise, write_raster

h5py = pytest.importorskip("h5py")
pytest.importorskip("rasterio")

STRIP_OFFSETS = 273


def raw_error(path: Path) -> type[Exception] | None:
    """What h5py itself raises for a file."""
    try:
        with h5py.File(path) as file:
            file.visititems(lambda name, item: file[name] and None)
    except Exception as error:  # noqa: BLE001 - whatever it is, is counted
        return type(error)
    return None


def test_hdf5_headers_that_are_damaged_anywhere_are_errors_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["images"] = np.zeros((4, 8, 8, 3), np.uint8)
        file["labels"] = np.arange(4)
        header = h5py.h5o.get_info(file["labels"].id).addr
    whole = path.read_bytes()
    raw = set()
    for at in (*range(0, 200, 2), *range(header, header + 100, 2)):
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        raw.add(raw_error(path))
        try:
            ps.HDF5(path)
        except ps.PenstockError as error:
            assert "a.h5" in str(error)
    assert KeyError in raw, raw


@pytest.mark.parametrize("offset", [(1 << 63) + 5, (1 << 64) - 1, 1 << 40])
def test_a_block_of_a_tiff_that_lies_beyond_every_file_is_left_to_gdal(offset: int, tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 8, 8), bigtiff="YES", interleave="pixel", blockysize=8)
    data = bytearray(path.read_bytes())
    (first,) = struct.unpack_from("<Q", data, 8)
    (count,) = struct.unpack_from("<Q", data, first)
    entries = {struct.unpack_from("<H", data, at)[0]: at for at in range(first + 8, first + 8 + 20 * count, 20)}
    at = entries[STRIP_OFFSETS]
    assert struct.unpack_from("<Q", data, at + 4) == (1,), "one strip, whose place stands in the entry itself"
    with gdal(), open_raster(path) as dataset:
        assert plain_raster(path, dataset) is not None
        struct.pack_into("<HQQ", data, at + 2, 16, 1, offset)
        path.write_bytes(data)
        assert plain_raster(path, dataset) is None
    told = run_here("pack", "rasters", path, "-o", tmp_path / "o.pack")
    assert told.exit_code == 3 and "a.tif" in told.err, told
