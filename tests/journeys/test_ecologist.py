"""The ecologist: rasters and a table of boxes, checked, mended, packed, looked at and verified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from affine import Affine

import penstock as ps
from commands import run_installed
from penstock.codecs.images import decode_image
from penstock.reporting.pictures import COLOURS
from raster_making import write_raster

CROWNS = [(20, 30, 60, 70), (180, 40, 220, 90), (90, 260, 130, 299), (250, 250, 290, 295)]


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    """Three georeferenced flights with four crowns each, in a folder with a space and an umlaut, and their table."""
    folder = tmp_path / "flüge 2024"
    folder.mkdir()
    rows = ["image_path, xmin, ymin, xmax, ymax, label"]  # people have spaces after the commas
    for number in range(3):
        bands = np.random.default_rng(number).integers(60, 120, (3, 300, 400), dtype=np.uint8)
        for x1, y1, x2, y2 in CROWNS:
            bands[:, y1:y2, x1:x2] = np.array([30, 200, 40], np.uint8)[:, None, None]
        place = Affine(0.1, 0, 500_000, 0, -0.1, 4_500_000 + 100 * number)
        write_raster(folder / f"flight_{number}.tif", bands, crs="EPSG:32611", transform=place)
        rows += [f"flight_{number}.tif,{','.join(map(str, crown))},Tree" for crown in CROWNS]
    (tmp_path / "crowns.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_from_flights_to_a_verified_pack_and_a_picture(flights: Path) -> None:
    home = flights.parent
    looked = run_installed("check", "boxes", "crowns.csv", "--images", flights.name, folder=home)
    assert (looked.exit_code, looked.err) == (0, "")
    assert "12 boxes" in looked.out and looked.out.endswith("no problems\n")

    tiles = ("--tile-px", 200, "--overlap", 0.05)
    command = ("pack", "rasters", f"{flights.name}/*.tif", "--boxes", "crowns.csv", *tiles, "-o", "crowns.pack")
    packed = run_installed(*command, folder=home)
    assert (packed.exit_code, packed.err) == (0, "")  # no bar and no noise where nobody watches

    told = run_installed("info", "crowns.pack", folder=home)
    assert told.out == packed.out
    assert told.out.startswith("crowns.pack: 18 samples, ")
    assert "images     200x200 px, png" in told.out and "groups     3" in told.out
    assert "by group, train 0.8, val 0.2, seed 0" in told.out

    facts = run_installed("info", "crowns.pack", "--json", folder=home).json
    assert facts["splits"] == {"train": 12, "val": 6} and facts["made_from"]["tile_px"] == 200

    verified = run_installed("verify", "crowns.pack", folder=home)
    assert verified.out == "crowns.pack: 18 samples in 1 shard, every checksum matches\n"

    drawn = run_installed("show", "crowns.pack", 0, "-o", "tile.png", folder=home)
    assert drawn.out == "tile.png: flight_0.tif#0_0  1 box\n"
    picture = decode_image((home / "tile.png").read_bytes())
    factor = picture.shape[1] // 200
    assert tuple(picture[50 * factor, 20 * factor]) == COLOURS[0]


def test_every_annotation_arrives_and_knows_its_place_on_the_map(flights: Path) -> None:
    command = ("pack", "rasters", flights.name, "--boxes", "crowns.csv", "--tile-px", 200, "--overlap", 0)
    assert run_installed(*command, "-o", "crowns.pack", folder=flights.parent).exit_code == 0
    pack = ps.open(flights.parent / "crowns.pack")
    places = set()
    for index in range(len(pack)):
        sample = pack[index]
        x, y = sample["window"][:2]
        on_the_flight = np.round(sample["boxes"]).astype(int) + np.array([x, y, x, y])
        places |= {(sample["group"], *box) for box in on_the_flight.tolist()}
        assert sample["crs"] and sample["transform"][2] == pytest.approx(500_000 + 0.1 * x)
    for crown in CROWNS:
        assert any(place[0] == "flight_1.tif" and _mostly(crown, place[1:]) for place in places), crown


def _mostly(crown: tuple[int, ...], box: tuple[int, ...]) -> bool:
    width = min(crown[2], box[2]) - max(crown[0], box[0])
    height = min(crown[3], box[3]) - max(crown[1], box[1])
    area = (crown[2] - crown[0]) * (crown[3] - crown[1])
    return width > 0 and height > 0 and width * height >= area / 2


def test_mistakes_in_the_table_are_named_all_at_once_and_can_be_mended(flights: Path) -> None:
    home, table = flights.parent, flights.parent / "crowns.csv"
    good = table.read_text()
    table.write_text(good + "flight_0.tif,10,10,9000,60,Tree\nflight_9.tif,1,1,5,5,Tree\nflight_1.tif,50,50,50,80,\n")
    looked = run_installed("check", "boxes", "crowns.csv", "--images", flights.name, folder=home)
    assert looked.exit_code == 1
    for line in (14, 15, 16):
        assert f"problem: crowns.csv line {line}: " in looked.out

    command = ("pack", "rasters", f"{flights.name}/*.tif", "--boxes", "crowns.csv", "-o", "crowns.pack")
    refused = run_installed(*command, folder=home)
    assert refused.exit_code == 3 and "crowns.csv line 14: " in refused.err
    assert "Traceback" not in refused.err and not (home / "crowns.pack").exists()

    table.write_text(good)
    assert run_installed(*command, folder=home).exit_code == 0


def test_the_flights_are_never_written_to(flights: Path) -> None:
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in flights.iterdir()}
    command = ("pack", "rasters", flights.name, "--boxes", "crowns.csv", "-o", "crowns.pack")
    assert run_installed(*command, folder=flights.parent).exit_code == 0
    after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in flights.iterdir()}
    assert after == before


def test_a_real_flight_keeps_its_574_crowns(shared_data: Path, tmp_path: Path) -> None:
    flight = shared_data / "trees_neon" / "2019_YELL_2_528000_4978000_image_crop2"
    command = ("pack", "rasters", f"{flight}.png", "--boxes", f"{flight}.xml", "--tile-px", 500, "--overlap", 0)
    packed = run_installed(*command, "-o", "yell.pack", "--codec", "jpeg", folder=tmp_path)
    assert packed.exit_code == 0
    assert packed.out.startswith("yell.pack: 25 samples, ") and "boxes assigned: 3" in packed.out
