"""One checkpoint, one score: training, `evaluate` and `predict` agree on the same data, with the same precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")

import penstock as ps  # noqa: E402
from commands import run_here  # noqa: E402
from penstock.samples import as_store  # noqa: E402
from penstock.tasks.checkpoints import choose_precision  # noqa: E402
from scene_making import CROWNS, Scenes  # noqa: E402
from shape_making import SHAPES, Shapes  # noqa: E402

QUIET: dict[str, Any] = {"progress": False, "logger": False, "workers": 0}
# Validation sees batches of another length than `evaluate`, and libraries sum in another order for other shapes.
OTHER_SHAPES = 1e-5
CPU = torch.device("cpu")


def same(one: Any, other: Any, tolerance: float = 0.0) -> None:
    names = [name for name in other if name in one and name != "val_loss"]
    assert len(names) >= 3
    for name in names:
        assert one[name] == pytest.approx(other[name], abs=tolerance, nan_ok=True), name


@pytest.fixture
def mice(mice_run: ps.Run) -> tuple[ps.Run, Path, Path]:
    """A Run of a few steps, the pack that it was trained on, and the folder of its videos."""
    folder = mice_run.folder.parent
    return mice_run, folder / "mice.pack", folder


def test_behaviour_has_one_score_to_the_last_bit(mice: tuple[ps.Run, Path, Path], tmp_path: Path) -> None:
    run, pack, _ = mice
    evaluated = ps.evaluate(run)
    same(run.scores(), evaluated.scores)
    assert evaluated.facts["precision"] == "32" and evaluated.facts["frames_from"] == "the data"
    val = ps.open(pack).split("val")
    ethograms: Any = ps.predict(run, val)
    labels = ps.load(run).task.labels_of(val)
    present = np.concatenate([one.predictions for one in ethograms])
    hits = ((present == 1) & (labels == 1)).sum(axis=0)
    false = ((present == 1) & (labels == 0)).sum(axis=0) + ((present == 0) & (labels == 1)).sum(axis=0)
    for name, hit, wrong in zip(ethograms[0].behaviours, hits, false, strict=True):
        if f"{name}_f1" in run.scores() and not np.isnan(run.scores()[f"{name}_f1"]):
            assert run.scores()[f"{name}_f1"] == pytest.approx(2 * hit / (2 * hit + wrong), abs=1e-12)


def test_frames_can_be_those_of_the_files(mice: tuple[ps.Run, Path, Path]) -> None:
    run, pack, folder = mice
    done = run_here("evaluate", run.folder, "--videos", folder / "videos", "--json")
    assert done.exit_code == 0, done.err
    assert done.json["facts"]["frames_from"] == "the videos"
    assert "precision 32, as in training. Frames are those of the videos." in done.err
    stored = ps.evaluate(run)
    assert done.json["samples"] == stored.samples
    held_out = ps.open(pack).split("val")[0]["key"]
    other = next(file for file in (folder / "videos").glob("*.mp4") if not held_out.startswith(file.stem))
    missing = run_here("evaluate", run.folder, "--videos", other)
    assert missing.exit_code == 3 and "is not among 1 video that you named" in missing.err


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_classification_has_one_score(tmp_path: Path, precision: str) -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32)
    val = Shapes(24, first=1000)
    run = ps.train(
        task, (Shapes(48), val), epochs=1, batch_size=16, precision=precision, folder=tmp_path / "run", **QUIET
    )
    evaluated = ps.evaluate(run, val)
    same(run.scores(), evaluated.scores, OTHER_SHAPES if precision == "32" else 5e-3)
    assert evaluated.facts["precision"] == precision
    table: Any = ps.predict(run, val)
    assert table.attrs["precision"] == precision
    truth = [task.classes[int(as_store(val)[number]["label"])] for number in range(len(val))]
    assert (table["label"] == truth).mean() == pytest.approx(evaluated.scores["accuracy"])


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_detection_has_one_score(tmp_path: Path, precision: str) -> None:
    task = ps.Detection(CROWNS, backbone="tiny", score_threshold=0.005, augmentation=False)
    val = Scenes(3, first=100)
    run = ps.train(
        task, (Scenes(4), val), epochs=1, batch_size=2, precision=precision, folder=tmp_path / "run", **QUIET
    )
    evaluated = ps.evaluate(run, val)
    same(run.scores(), evaluated.scores, OTHER_SHAPES if precision == "32" else 0.02)
    assert evaluated.facts["precision"] == precision
    table: Any = ps.predict(run, val)
    assert table.attrs["precision"] == precision and len(table)


def test_precision_is_that_of_training_unless_asked_or_impossible() -> None:
    assert choose_precision("auto", "bf16", [CPU]) == ("bf16", "precision bf16, as in training.")
    assert choose_precision("auto", None, [CPU]).name == "32"
    asked = choose_precision("bf16", "32", [CPU])
    assert asked.name == "bf16" and "as asked; it was trained with 32" in asked.words
    unable = choose_precision("auto", "16", [CPU])
    assert unable.name == "32" and "with which a cpu does not compute" in unable.words
    with pytest.raises(ps.errors.OptionError, match="a cpu does not compute with it"):
        choose_precision("16", "32", [CPU])


def test_a_saved_model_keeps_its_precision(tmp_path: Path) -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32, multi_label=True)
    path = ps.Model(task, task.network(), meta={"precision": "bf16"}, device="cpu").save(tmp_path / "m.safetensors")
    assert ps.load(path, device="cpu").precision == "bf16"
    assert ps.load(path, device="cpu").changed(threshold=0.4).precision_words == "precision bf16, as in training."
    assert ps.load(path, device="cpu", precision="32").precision == "32"


def test_options_for_windows_are_refused_for_a_pack(tmp_path: Path) -> None:
    task = ps.Detection(CROWNS, backbone="tiny")
    model = ps.Model(task, task.network(), device="cpu")
    with pytest.raises(ps.errors.OptionError, match="tile_px: samples of a pack or another Source"):
        ps.predict(model, Scenes(2), tile_px=300)
