"""One small trained Run for each task, made once in a test session by whichever worker asks for it first.

Tests only read them: `read_only` fails the session where one has changed. A test that writes takes a copy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

QUIET: dict[str, Any] = {"progress": False, "logger": False}
RECIPE = """\
data: {path: shapes.pack}
task: {kind: classification, size: 32}
model: {backbone: tiny}
train: {epochs: 2, batch_size: 32}
run: {progress: off}
"""


def shared_folder(factory: pytest.TempPathFactory, worker_id: str | None) -> Path:
    """The folder of the whole session; each worker of pytest-xdist has its own temporary folder below it."""
    own = factory.getbasetemp()
    folder = (own.parent if worker_id else own) / "trained"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def read_only(root: Path, name: str, make: Callable[[Path], object]) -> Iterator[Path]:
    """A folder that exists once for all workers; an error at the end if some test changed it."""
    import fcntl

    folder, done = root / name, root / f"{name}.json"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.write_text(json.dumps(list_files(folder)))
    yield folder
    assert list_files(folder) == json.loads(done.read_text()), f"a test changed the shared Run {name}"


def list_files(folder: Path) -> dict[str, list[int]]:
    found = {path: path.stat() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {str(path.relative_to(folder)): [state.st_size, state.st_mtime_ns] for path, state in found.items()}


def train_shapes(folder: Path) -> None:
    """Classification, a few steps."""
    import penstock as ps
    from shape_making import SHAPES, Shapes

    task = ps.Classification(SHAPES, backbone="tiny", size=32)
    data = (Shapes(48), Shapes(24, first=1000))
    ps.train(task, data, epochs=1, folder=folder / "run", batch_size=16, workers=0, **QUIET)


def train_crowns(folder: Path) -> None:
    """Detection, until it finds crowns."""
    import penstock as ps
    from scene_making import Scenes

    task = ps.Detection(backbone="tiny", augmentation=False)
    data = (Scenes(72), Scenes(27, first=5000))
    options: dict[str, Any] = {"batch_size": 4, "learning_rate": 5e-3, "gradient_clip": 1.0, "workers": 0}
    ps.train(task, data, epochs=16, folder=folder / "run", **options, **QUIET)


def train_mice(folder: Path) -> None:
    """Behaviour, a few steps of each stage, on a pack of three videos that are beside it."""
    import penstock as ps
    from penstock.cli.demo_animals import write_animal_videos

    write_animal_videos(folder, 3, 120, (96, 64), seed=4)
    videos = ps.Videos(folder / "videos", labels=folder / "labels", size="64x64")
    pack = ps.pack(videos, folder / "mice.pack", split="train=0.6,val=0.4", progress=False)
    task = ps.Behaviour(size="tiny", frames=3, flow_epochs=1, sequence_epochs=2, clips_per_epoch=64, window_frames=32)
    ps.train(task, pack.path, epochs=2, batch_size=8, folder=folder / "run", workers=1, **QUIET)


def train_recipe(folder: Path) -> None:
    """A recipe, its pack and raw images, and the Run that `penstock train` left beside them."""
    import penstock as ps
    from commands import run_here
    from penstock.cli.demo_data import write_shapes

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ps.pack(ps.Images(write_shapes(Path("shapes"), count=24)), "shapes.pack", progress=False)
        Path("shapes.yaml").write_text(RECIPE)
        trained = run_here("train", "shapes.yaml")
        assert trained.exit_code == 0, trained.err
