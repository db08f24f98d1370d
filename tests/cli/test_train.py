"""`penstock recipe`, `train`, `evaluate`, `predict` and `report`, as a user runs them."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from lightning.pytorch.accelerators import CUDAAccelerator, MPSAccelerator

import penstock as ps
from commands import run_here
from penstock.cli.demo_data import write_shapes
from penstock.cli.recipe import recipe
from penstock.recipes.templates import TEMPLATES
from trained_runs import RECIPE


@pytest.fixture
def home(recipe_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recipe for seconds: 24 pictures, one step an epoch."""
    shutil.copytree(recipe_home, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trained(home: Path, recipe_home: Path) -> ps.Run:
    """The Run of that recipe, in the same folder."""
    shutil.copytree(recipe_home / "runs", home / "runs")
    return ps.Run("runs/shapes")


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


def test_a_run_is_gone_on_with_only_by_the_same_settings(trained: ps.Run) -> None:
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


def test_a_run_of_a_source_made_in_python_never_takes_what_lies_in_the_current_folder(home: Path) -> None:
    task = ps.Classification(backbone="tiny", size=32)
    run = ps.train(task, ps.Images("shapes"), epochs=1, folder="runs/own", progress=False, logger=False)
    assert run.settings["data"]["path"] == ""
    facts = run.chosen["data"]
    assert (facts["source"], facts["samples"], len(facts["fingerprint"])) == ("Images", 24, 16)
    was = "runs/own was trained on a Source made in Python (Images, 24 samples), and not on files"
    for command in (["train", "runs/own", "run.folder=runs/again"], ["doctor", "runs/own"], ["evaluate", "runs/own"]):
        refused = run_here(*command)
        assert refused.exit_code == 2 and was in refused.err, refused.err
    assert not Path("runs/again").exists()
    assert run_here("train", "runs/own", "run.folder=runs/again", "data.path=shapes.pack").exit_code == 0
    assert run_here("evaluate", "runs/own", "shapes.pack").exit_code == 0
    Path("empty.yaml").write_text(RECIPE.replace("shapes.pack", "''"))
    empty = run_here("train", "empty.yaml")
    assert empty.exit_code == 2 and "data.path is empty" in empty.err


def test_a_run_of_packs_opened_in_python_is_trained_and_evaluated_by_their_paths(home: Path) -> None:
    task, pack = ps.Classification(backbone="tiny", size=32), ps.open("shapes.pack")
    options = {"epochs": 1, "progress": False, "logger": False}
    run = ps.train(task, pack, folder="runs/one", **options)
    assert run.settings["data"]["path"] == str(Path("shapes.pack").absolute())
    assert run_here("train", "runs/one", "run.folder=runs/again").exit_code == 0
    assert ps.Run("runs/again").scores() == run.scores()
    others = ps.pack(ps.Images(write_shapes(Path("others"), count=6)), "others.pack")
    pair = ps.train(task, (pack, others), folder="runs/two", **options)
    found = ps.evaluate(pair)
    assert (found.samples, ps.evaluate(pair, split="train").samples) == (6, 24)
    assert found.scores["accuracy"] == pytest.approx(pair.scores()["accuracy"])
    with pytest.raises(ps.OptionError, match="there is no 'test'"):
        ps.evaluate(pair, split="test")


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


def test_an_accelerator_that_is_not_here_is_told_what_there_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (CUDAAccelerator, MPSAccelerator):
        monkeypatch.setattr(kind, "is_available", lambda: False)
    wrong = run_here("train", "shapes.yaml", "train.accelerator=gpu")
    assert wrong.exit_code == 2
    assert wrong.err == (
        "penstock: train.accelerator='gpu' is not on this machine, or torch cannot use it. There is: cpu. "
        "Use train.accelerator=cpu, or auto for the best that is there.\n"
    )
    other = run_here("train", "shapes.yaml", "train.accelerator=cuba")
    assert other.exit_code == 2 and "is no accelerator. Did you mean 'cuda'?" in other.err
    assert not Path("runs").exists()
    many = run_here("train", "shapes.yaml", "train.accelerator=cpu", "train.devices=0")
    assert many.exit_code == 2 and "train.devices=0 must be auto, a number of devices or their numbers" in many.err


def test_shells_complete_the_kinds_of_recipes() -> None:
    kind = recipe.params[0]
    assert [item.value for item in kind.shell_complete(click.Context(recipe), "")] == list(TEMPLATES)
    wrong = run_here("recipe", "tree")
    assert wrong.exit_code == 2
    assert "'tree' is not a kind of recipe. Did you mean 'trees'? There is: images, trees, behaviour." in wrong.err


def test_evaluating_a_run_gives_the_scores_that_training_gave(trained: ps.Run) -> None:
    found = run_here("evaluate", "runs/shapes", "--json")
    assert (found.exit_code, found.err) == (0, "precision 32, as in training.\n")
    assert found.json["samples"] == len(ps.open("shapes.pack").split("val"))
    for name, value in found.json["scores"].items():
        assert value == pytest.approx(trained.scores("best")[name])
    table = run_here("evaluate", "runs/shapes", "shapes.pack", "--split", "train", "-o", "train.csv")
    assert table.exit_code == 0 and table.out.startswith("samples ") and "accuracy " in table.out
    rows = pd.read_csv("train.csv")
    assert len(rows) == len(ps.open("shapes.pack").split("train"))
    assert f"{(rows['label'] == rows['truth']).mean():.4f}" in table.out


def test_a_split_of_raw_data_is_the_one_that_was_trained_with(home: Path) -> None:
    assert (
        run_here("train", "shapes.yaml", "data.path=shapes", "data.split=train=0.5,val=0.25,test=0.25").exit_code == 0
    )
    keys: list[str] = []
    for split in ("train", "val", "test"):
        assert run_here("evaluate", "runs/shapes", "--split", split, "-o", f"{split}.csv").exit_code == 0
        keys += pd.read_csv(f"{split}.csv")["image_path"].tolist()
    assert len(keys) == len(set(keys)) == 24
    assert run_here("evaluate", "runs/shapes", "-o", "own.csv").exit_code == 0
    assert Path("own.csv").read_bytes() == Path("val.csv").read_bytes()


def test_predicting_answers_for_files_folders_and_packs(trained: ps.Run) -> None:
    done = run_here("predict", "runs/shapes", "shapes/circle", "-o", "labels.csv")
    assert (done.exit_code, done.out) == (0, "labels.csv\n"), done.err
    rows = pd.read_csv("labels.csv")
    assert list(rows) == ["image_path", "label", "score", "circle", "square", "triangle"] and len(rows) == 8
    np.testing.assert_allclose(rows[["circle", "square", "triangle"]].sum(axis=1), 1, rtol=1e-5)
    checkpoint = "runs/shapes/checkpoints/best.ckpt"
    again = ("shapes/circle", "-o", "again.csv", "--batch-size", 3, "--workers", 1, "--device", "cpu")
    assert run_here("predict", checkpoint, *again).exit_code == 0
    assert Path("again.csv").read_bytes() == Path("labels.csv").read_bytes()
    shown = run_here("predict", "runs/shapes", *rows["image_path"][:2])
    assert [line.split()[0] for line in shown.out.splitlines()] == ["image_path", *rows["image_path"][:2]]
    assert run_here("predict", "runs/shapes", "shapes.pack", "-o", "all.jsonl").exit_code == 0
    assert len(Path("all.jsonl").read_text().splitlines()) == 24


def test_files_that_cannot_be_read_are_an_error_or_a_row_that_says_so(trained: ps.Run) -> None:
    Path("shapes/circle/broken.jpg").write_bytes(b"no picture")
    refused = run_here("predict", "runs/shapes", "shapes/circle", "-o", "labels.csv")
    assert refused.exit_code == 3 and "broken.jpg" in refused.err and not Path("labels.csv").exists()
    assert (
        run_here("predict", "runs/shapes", "shapes/circle", "-o", "labels.csv", "--on-bad-sample", "skip").exit_code
        == 0
    )
    rows = pd.read_csv("labels.csv").set_index("image_path")
    assert len(rows) == 9 and rows["problem"].notna().sum() == 1
    assert rows.loc["shapes/circle/broken.jpg", ["label", "score"]].isna().all()


def test_what_does_not_know_its_data_asks_for_it(trained: ps.Run) -> None:
    checkpoint = run_here("evaluate", "runs/shapes/checkpoints/last.ckpt")
    assert checkpoint.exit_code == 2 and "name the data" in checkpoint.err
    assert run_here("evaluate", "runs/shapes", "--split", "tests").exit_code == 2
    folder = run_here("evaluate", "runs")
    assert folder.exit_code == 3 and "Name one of the Runs in it, such as runs/shapes" in folder.err
    assert run_here("predict", "runs/shapes", "shapes", "--workers", "many").exit_code == 2


def test_a_report_is_one_page_on_one_run_or_on_several(trained: ps.Run) -> None:
    assert run_here("train", "shapes.yaml", "run.folder=runs/flat", "task.flip=0").exit_code == 0
    own = run_here("report", "runs/shapes")
    assert (own.exit_code, own.out, own.err) == (0, "runs/shapes/report.html\n", "")
    both = run_here("report", "runs/shapes", "runs/flat", "-o", "both.html")
    assert (both.exit_code, both.out) == (0, "both.html\n"), both.err
    page = Path("both.html").read_text(encoding="utf-8")
    assert "flip" in page and "flat" in page
    assert run_here("report", "shapes").exit_code == 3
