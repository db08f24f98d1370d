"""Photos in class folders, to a network that says what is on them."""

from __future__ import annotations

from penstock.cli.demo_data import write_shapes
from penstock.cli.demos.script import Script, shown

# Enough for shapes on a plain ground, on any machine.
RECIPE = """\
data:
  path: {pack}
task:
  kind: classification
  size: 64
  crop_scale: [0.7, 1]
  colour: 0
model:
  backbone: tiny
train:
  epochs: 12
  batch_size: 16
  learning_rate: 5e-3
run:
  folder: {folder}
  progress: off
"""
NEW_PHOTOS = 6


def demonstrate(script: Script) -> None:
    home = script.home
    script.say("images: a photo shows a circle, a square or a triangle; which one?")
    photos = write_shapes(home / "photos")
    new = write_shapes(home / "new_photos", NEW_PHOTOS, first=1000)
    pack, run = home / "photos.pack", home / "runs" / "photos"
    script.type("check", "images", photos)
    script.type("pack", "images", photos, "-o", pack, "--overwrite")
    script.type("verify", pack)
    script.type("show", pack, "0", "-o", home / "photo.png")
    recipe = script.write("photos.yaml", RECIPE.format(pack=shown(pack), folder=shown(run)))
    script.type("doctor", recipe, "--seconds", "6", may_find=True)
    script.type("train", recipe)
    script.type("evaluate", run, "--split", "val")
    script.type("predict", run, new)
    script.type("report", run, "-o", home / "photos.html")
