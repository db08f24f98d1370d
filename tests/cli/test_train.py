"""`penstock recipe` and `penstock train`, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from commands import run_here
from penstock.cli.demo_data import write_shapes

# Small enough for seconds: 24 pictures, one step an epoch.
RECIPE = """\
data: {path: shapes.pack}
task: {kind: classification, size: 32}
model: {backbone: tiny}
train: {epochs: 2, batch_size: 32}
run: {progress: off}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    ps.pack(ps.Images(write_shapes(Path("shapes"), count=24)), "shapes.pack")
    Path("shapes.yaml").write_text(RECIPE)
    return tmp_path


def test_a_recipe_that_was_written_trains_with_a_few_keys_changed(home: Path) -> None:
    written = run_here("recipe", "images")
    assert (written.exit_code, written.err) == (0, "")
    Path("pets.yaml").write_text(written.out)
    small = ("model.backbone=tiny", "task.size=32", "train.epochs=1", "data.path=shapes.pack")
    trained = run_here("train", "pets.yaml", *small, "--no-progress")
    assert trained.exit_code == 0, trained.err
    assert trained.out.splitlines()[-1].startswith("runs/pets: val_loss ")
    run = ps.Run("runs/pets")
    assert run.settings["train"]["epochs"] == 1 and run.settings["model"]["backbone"] == "tiny"
    assert run.settings["task"]["classes"] == ["circle", "square", "triangle"]
    assert run.checkpoint("best").exists() and run.scores()["accuracy"] >= 0


def test_a_run_is_gone_on_with_only_by_the_same_settings(home: Path) -> None:
    assert run_here("train", "shapes.yaml").exit_code == 0
    before = ps.Run("runs/shapes").checkpoint("last").read_bytes()

    again = run_here("train", "runs/shapes")
    assert again.exit_code == 0 and "nothing is left to train" in again.out + again.err
    other = run_here("train", "shapes.yaml", "train.epochs=3")
    assert other.exit_code == 2 and "train.epochs was 2, now 3" in other.err
    fresh = run_here("train", "shapes.yaml", "--fresh")
    assert fresh.exit_code == 2 and "holds a Run already" in fresh.err
    assert ps.Run("runs/shapes").checkpoint("last").read_bytes() == before

    elsewhere = run_here("train", "runs/shapes", "run.folder=runs/again")
    assert elsewhere.exit_code == 0 and ps.Run("runs/again").scores() == ps.Run("runs/shapes").scores()


def test_flags_are_short_for_keys(home: Path) -> None:
    command = ("train", "shapes.yaml", "train.epochs=1", "run.progress=on", "--no-progress", "--watch", "--fresh")
    assert run_here(*command).exit_code == 0
    assert ps.Run("runs/shapes").settings["run"] == {
        "folder": "runs/shapes",
        "resume": "never",
        "progress": False,
        "watch": True,
    }


def test_what_is_wrong_is_one_message_and_the_exit_code_says_whose_fault(home: Path) -> None:
    wrong = run_here("train", "shapes.yaml", "train.epochz=1", "model.backbone=resnet18")
    assert wrong.exit_code == 2
    assert wrong.err == "penstock: command line: train.epochz is not a key. Did you mean 'epochs'?\n"
    assert run_here("train", "absent.yaml").exit_code == 2
    assert run_here("train", "shapes.yaml", "data.path=absent.pack").exit_code == 4
    assert run_here("recipe", "music").exit_code == 2
    assert not Path("runs").exists()
