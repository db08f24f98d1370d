"""Reading rasters: in order and one by one the same bits, in little memory, and what damage does."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.codecs.headers import UnreadableImage
from penstock.errors import DataError, HopError
from raster_making import assert_same, noise, write_raster, write_table

LAYOUTS: dict[str, dict[str, Any]] = {
    "strips": {"blockysize": 7},
    "plain tiles": {"tiled": True, "blockxsize": 64, "blockysize": 48},
    "compressed strips": {"compress": "deflate", "blockysize": 32},
    "tiled": {"tiled": True, "blockxsize": 64, "blockysize": 64, "compress": "lzw"},
    "planar": {"interleave": "band", "compress": "deflate", "blockysize": 16},
    "one strip": {"compress": "deflate", "blockysize": 500},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mask", [False, True])
def test_streaming_gives_the_same_bits_as_reading(tmp_path: Path, layout: str, mask: bool) -> None:
    bands = noise(3, 500, 310)
    inside = (noise(500, 310, seed=1) > 99).astype(np.uint8) * np.uint8(255) if mask else None
    source = ps.Rasters(
        write_raster(tmp_path / "a.tif", bands, mask=inside, **LAYOUTS[layout]), tile_px=90, overlap=0.3
    )
    streamed = [source.parts[0].decode(raw) for raw in source.parts[0].stream()]
    assert len(streamed) == len(source) == source.parts[0].expected
    for index, sample in enumerate(streamed):
        assert_same(sample, source[index])
        x, y, width, height = sample["window"]
        expected = np.moveaxis(bands[:, y : y + height, x : x + width], 0, -1).copy()
        if inside is not None:
            expected[inside[y : y + height, x : x + width] == 0] = 0
        assert np.array_equal(sample["image"], expected)


@given(
    width=st.integers(1, 90),
    height=st.integers(1, 90),
    tile_px=st.integers(5, 40),
    overlap=st.sampled_from([0, 0.05, 0.5, 0.9]),
    start=st.integers(0, 30),
    band_bytes=st.sampled_from([1, 2000, 9000, 1 << 20]),
)
@settings(deadline=None, max_examples=60)
def test_a_stream_may_start_anywhere_and_work_in_any_memory(
    tmp_path_factory: pytest.TempPathFactory,
    width: int,
    height: int,
    tile_px: int,
    overlap: float,
    start: int,
    band_bytes: int,
) -> None:
    path = tmp_path_factory.mktemp("rasters") / "a.tif"
    source = ps.Rasters(write_raster(path, noise(3, height, width), blockysize=16), tile_px=tile_px, overlap=overlap)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.formats.rasters.raster_files.BAND_BYTES", band_bytes)
        patch.setattr("penstock.formats.rasters.raster_files.PLAIN_BAND_BYTES", band_bytes)
        raws = list(source.parts[0].stream(min(start, len(source))))
    assert [raw.index for raw in raws] == list(range(min(start, len(source)), len(source)))
    for raw in raws:
        assert np.array_equal(raw.data.pixels, source.read(raw.index).data.pixels)


@pytest.mark.parametrize("compress", ["lzw", None])
def test_a_stream_reads_every_row_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: str | None) -> None:
    from penstock.formats.rasters import plain_blocks, raster_windows

    tiles = {"tiled": True, "blockxsize": 64, "compress": compress} if compress else {}
    layout: dict[str, Any] = {"blockysize": 64, **tiles}
    path = write_raster(tmp_path / "a.tif", noise(3, 500, 300), **layout)
    source = ps.Rasters(path, tile_px=90, overlap=0.3)
    read: list[tuple[int, int]] = []
    owner, name = (raster_windows, "read_window") if compress else (plain_blocks.PlainBlocks, "read")
    real = getattr(owner, name)

    def counted(*given: Any) -> Any:
        window = given[-2]
        read.append((window.y, window.y + window.height))
        return real(*given)

    monkeypatch.setattr(owner, name, counted)
    assert len(list(source.parts[0].stream())) == len(source)
    assert read[0][0] == 0
    assert read[-1][1] == 500
    assert all(above[1] == below[0] for above, below in pairwise(read))
    if compress:  # whole blocks, so that none is decoded twice
        assert all(stop % 64 == 0 for _, stop in read[:-1])


def test_few_handles_stay_open(tmp_path: Path) -> None:
    for number in range(9):
        write_raster(tmp_path / f"{number}.tif", noise(3, 20, 20, seed=number), compress="deflate")
    source = ps.Rasters(tmp_path)
    for index in range(9):
        source.read(index)
    assert len(source._handles._open) == 4


def test_a_source_can_be_pickled_after_use_and_used_by_eight_threads(tmp_path: Path) -> None:
    for number in range(3):
        write_raster(tmp_path / f"{number}.tif", noise(3, 150, 150, seed=number))
    source = ps.Rasters(tmp_path, tile_px=60, overlap=0.2)
    expected = [source[index] for index in range(len(source))]
    copy = pickle.loads(pickle.dumps(source))
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(source)), 4))
    with ThreadPoolExecutor(8) as pool:
        for index, sample in zip(order, pool.map(copy.__getitem__, order), strict=True):
            assert_same(sample, expected[index])


MEASURE = """
import sys
import penstock as ps
(part,) = ps.Rasters(sys.argv[1]).parts
print(sum(1 for raw in part.stream()))
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_large_striped_raster_streams_in_little_memory(tmp_path: Path) -> None:
    side = 20_000
    path = tmp_path / "large.tif"
    row = noise(3, 1, side)
    layout = {"driver": "GTiff", "width": side, "height": side, "count": 3, "dtype": "uint8"}
    place = rasterio.Affine(0.1, 0, 404211.9, 0, -0.1, 3285142.9)
    with rasterio.open(path, "w", compress="deflate", zlevel=1, transform=place, **layout) as file:
        for y in range(0, side, 1000):
            file.write(np.repeat(row, 1000, axis=1), window=((y, y + 1000), (0, side)))
    run = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    tiles, peak_mb = (int(line) for line in run.stdout.split())
    assert tiles == 53 * 53
    assert peak_mb < 350


def test_every_unreadable_raster_is_a_problem_and_the_others_are_read(tmp_path: Path) -> None:
    whole = write_raster(tmp_path / "whole.tif", noise(3, 300, 300))
    data = whole.read_bytes()
    (tmp_path / "empty.tif").write_bytes(b"")
    (tmp_path / "cut.tif").write_bytes(data[: len(data) // 2])
    (tmp_path / "text.tif").write_text("hello")
    (tmp_path / "zeros.tif").write_bytes(bytes(1000))
    (tmp_path / "start.png").write_bytes(b"\x89PNG\r\n\x1a\n123")
    table = write_table(tmp_path / "t.csv", ["whole.tif,1,2,30,40,oak", "cut.tif,1,2,30,40,oak"])
    source = ps.Rasters(tmp_path, boxes=table)
    problems = source.problems()
    named = sorted(Path(problem.file).name for problem in problems if not problem.warning)
    assert named == ["cut.tif", "empty.tif", "start.png", "text.tif", "zeros.tif"]
    assert all(problem.unreadable for problem in problems if not problem.warning)
    found = {}
    for index, key in enumerate(source.column("key")):
        try:
            found[key] = source[index]
        except HopError as error:
            found[key] = str(error)
    assert found.keys() == {"whole.tif#0_0", "cut.tif#0_0", "empty.tif", "start.png", "text.tif", "zeros.tif"}
    assert [key for key, sample in found.items() if isinstance(sample, dict)] == ["whole.tif#0_0"]
    assert len(found["whole.tif#0_0"]["boxes"]) == 1


def test_what_is_left_of_a_raster_that_was_cut_short_can_be_packed(tmp_path: Path) -> None:
    whole = write_raster(tmp_path / "cut.tif", noise(3, 400, 100), blockysize=50)
    whole.write_bytes(whole.read_bytes()[: -whole.stat().st_size // 3])
    (tmp_path / "empty.tif").write_bytes(b"")
    source = ps.Rasters([whole, tmp_path / "empty.tif"], tile_px=100, overlap=0)
    with pytest.raises(DataError, match="should have"):
        ps.pack(source, tmp_path / "all.pack")
    pack = ps.pack(source, tmp_path / "some.pack", on_bad_sample="skip", split="all")
    assert [pack[index]["key"] for index in range(len(pack))] == ["cut.tif#0_0", "cut.tif#0_100"]


def test_damage_inside_fails_only_the_tiles_that_it_touches(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 200, 300), compress="deflate", blockysize=50)
    source = ps.Rasters(path, tile_px=100, overlap=0)
    expected = [source[index]["image"] for index in range(3, 6)]
    data = bytearray(path.read_bytes())
    middle = len(data) // 8
    data[middle : middle + 200] = bytes(200)
    path.write_bytes(data)
    source = ps.Rasters(path, tile_px=100, overlap=0)
    with pytest.raises(UnreadableImage, match=r"100×100 px at x 100, y 0 of a\.tif cannot be read"):
        source.read(1)
    (part,) = source.parts
    assert [raw.index for raw in part.stream()] == list(range(6))
    with pytest.raises(UnreadableImage, match=r"100×100 px at x 0, y 0 of a\.tif cannot be read"):
        part.decode(next(part.stream()))
    for image, raw in zip(expected, source.parts[0].stream(3), strict=True):
        assert np.array_equal(source.parts[0].decode(raw)["image"], image)
    assert len(ps.Rasters(path, tile_px=100, overlap=0, nodata=0, skip_nodata=True)) == 6


def test_a_damaged_header_is_a_problem_or_spoils_tiles_and_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    palette = {0: (1, 2, 3, 255), 1: (4, 5, 6, 255)}
    whole = [
        write_raster(tmp_path / "a.tif", noise(3, 60, 70), compress="deflate", blockysize=16),
        write_raster(tmp_path / "b.tif", noise(4, 60, 70, dtype="uint16"), tiled=True, blockxsize=32, blockysize=32),
        write_raster(tmp_path / "c.png", noise(3, 60, 70), driver="PNG"),
        write_raster(tmp_path / "d.tif", noise(60, 70, high=2), palette=palette),
    ]
    outcomes = set()
    for turn in range(240):
        data = bytearray(whole[turn % 4].read_bytes())
        data[rng.integers(min(len(data), 400))] = rng.integers(256)
        path = tmp_path / f"damaged{turn}{whole[turn % 4].suffix}"
        path.write_bytes(data)
        source = ps.Rasters(path, tile_px=40)
        outcomes.add("problem" if source.problems() else "read")
        for part in source.parts:
            for raw in islice(part.stream(), 9):
                try:
                    part.decode(raw)
                except UnreadableImage:
                    outcomes.add("unreadable")
    assert outcomes == {"problem", "read", "unreadable"}


def test_a_raster_of_impossible_size_is_a_problem(tmp_path: Path) -> None:
    side = 2_000_000_000
    band = '<VRTRasterBand dataType="Byte" band="1"></VRTRasterBand>'
    text = f'<VRTDataset rasterXSize="{side}" rasterYSize="{side}">{band}</VRTDataset>'
    (tmp_path / "a.vrt").write_text(text)
    (problem,) = ps.Rasters(tmp_path / "a.vrt", allow_drivers=["VRT"]).problems()
    assert "2,000,000,000×2,000,000,000 px" in problem.what


def test_a_file_of_several_rasters_has_no_bands_of_its_own(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["red"] = file["green"] = noise(50, 60)
        file["blue"] = noise(50, 60)
    (problem,) = ps.Rasters(tmp_path / "a.h5", allow_drivers=["HDF5"]).problems()
    assert "it has no bands" in problem.what
    assert not problem.unreadable


def test_a_photo_that_lies_on_its_side_is_a_problem(tmp_path: Path) -> None:
    import simplejpeg

    plain = simplejpeg.encode_jpeg(np.ascontiguousarray(np.moveaxis(noise(3, 40, 60), 0, -1)))
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    turned = plain[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + plain[2:]
    (tmp_path / "a.jpg").write_bytes(turned)
    (problem,) = ps.Rasters(tmp_path / "a.jpg").problems()
    assert "EXIF orientation is 6" in problem.what
    (tmp_path / "a.jpg").write_bytes(plain)
    assert ps.Rasters(tmp_path / "a.jpg").problems() == []


def test_a_source_is_never_written_to(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 100, 100, dtype="uint16", high=4000))
    state = path.stat().st_mtime_ns
    tmp_path.chmod(0o555)
    try:
        list(ps.Rasters(path, tile_px=50).parts[0].stream())
    finally:
        tmp_path.chmod(0o755)
    assert [file.name for file in tmp_path.iterdir()] == ["a.tif"]
    assert path.stat().st_mtime_ns == state
