"""Videos of a small animal and a table of what it does, to an ethogram of a video that nobody labelled."""

from __future__ import annotations

from penstock.cli.demo_animals import write_animal_videos
from penstock.cli.demos.script import Script, shown

RECIPE = """\
data:
  path: {pack}
task:
  kind: behaviour
  size: tiny
  frames: 7
  clips_per_epoch: 800
  flow_epochs: 3
  sequence_epochs: 20
train:
  epochs: 7
  batch_size: 16
  learning_rate: 2e-3
run:
  folder: {folder}
  progress: off
"""
VIDEOS, FRAMES, SIZE = 14, 300, (96, 96)


def demonstrate(script: Script) -> None:
    home = script.home
    script.say("behaviour: what does the animal do in a video that nobody has labelled?")
    write_animal_videos(home / "animals", VIDEOS, FRAMES, SIZE)
    write_animal_videos(home / "new", 1, FRAMES, SIZE, seed=1)
    pack, run = home / "animals.pack", home / "runs" / "animals"
    videos, labels = f"{shown(home / 'animals')}/videos/*.mp4", f"{shown(home / 'animals')}/labels/{{stem}}.csv"
    script.type("check", "videos", videos, "--labels", labels)
    script.type("pack", "videos", videos, "--labels", labels, "--size", "64x64", "-o", pack, "--overwrite")
    script.type("show", pack, "40", "-o", home / "frame.png")
    recipe = script.write("animals.yaml", RECIPE.format(pack=shown(pack), folder=shown(run)))
    script.type("doctor", recipe, "--seconds", "6", may_find=True)
    script.type("train", recipe)
    script.type("predict", run, home / "new" / "videos", "-o", home / "predictions")
    script.type("evaluate", home / "predictions", "--truth", f"{shown(home / 'new' / 'labels')}/*.csv")
    script.type("report", run, "-o", home / "animals.html")
