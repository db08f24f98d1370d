"""Flights over a landscape and a table of crowns, to a map of the crowns in a flight that nobody labelled."""

from __future__ import annotations

from penstock.cli.demo_data import write_flights
from penstock.cli.demos.script import Script, shown
from penstock.errors import require

RECIPE = """\
data:
  path: {pack}
task:
  kind: detection
  colour: 0.1
model:
  backbone: tiny
train:
  epochs: 30
  batch_size: 3
  learning_rate: 5e-3
run:
  folder: {folder}
  progress: off
"""
FLIGHTS, TILE_PX = 4, 300


def demonstrate(script: Script) -> None:
    require("rasterio", "geo", "The demonstration of rasters")
    home = script.home
    script.say("trees: where are the crowns in a flight that nobody has labelled?")
    flights, crowns = write_flights(home / "flights", FLIGHTS)
    held_out, truth = write_flights(home / "new_flight", 1, first=FLIGHTS)
    pack, run = home / "crowns.pack", home / "runs" / "trees"
    pattern = f"{shown(flights)}/*.tif"
    script.type("check", "rasters", pattern, "--boxes", crowns)
    tiles = ["--tile-px", str(TILE_PX), "--overlap", "0"]
    script.type("pack", "rasters", pattern, "--boxes", crowns, *tiles, "-o", pack, "--overwrite")
    script.type("show", pack, "2", "-o", home / "tile.png")
    recipe = script.write("trees.yaml", RECIPE.format(pack=shown(pack), folder=shown(run)))
    script.type("doctor", recipe, "--seconds", "6", may_find=True)
    script.type("train", recipe)
    script.type("evaluate", run, "--split", "val")
    ortho = held_out / f"flight_{FLIGHTS}.tif"
    picture = ["--plot", shown(home / "crowns.png")]
    script.type("predict", run, ortho, "-o", home / "crowns.gpkg", *picture)
    script.type("predict", run, ortho, "-o", home / "crowns.csv")
    script.type("evaluate", home / "crowns.csv", "--truth", truth)
    script.type("report", run, "-o", home / "trees.html")
