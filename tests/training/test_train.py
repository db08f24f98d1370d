"""`ps.train`: what a Run holds, what may be given as data, and what goes through to Lightning."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import pytest
import torch
import yaml
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

import penstock as ps
from training.small_trainings import same_weights, trained, weights_of
from training.tiny_task import Shades, Tiny


def test_a_run_holds_settings_metrics_feed_checkpoints_log_and_environment(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", epochs=3, logger=None)
    names = {path.name for path in run.folder.iterdir()}
    assert {"settings.yaml", "metrics.jsonl", "feed.jsonl", "checkpoints", "log.txt", "environment.json"} <= names
    assert {"details.json", "worst.json", "tensorboard"} <= names
    settings = yaml.safe_load((run.folder / "settings.yaml").read_text())
    assert settings["train"]["epochs"] == 3 and settings["task"]["kind"] == "tiny"
    assert settings["chosen"]["goal"] == {"name": "accuracy", "larger_is_better": True}
    assert run.environment["outcome"] == "finished"
    assert run.scores("best")["accuracy"] >= run.scores("last")["accuracy"]
    assert run.worst()[0]["key"].startswith("shade_") and (run.folder / run.worst()[0]["thumbnail"]).exists()
    assert json.loads((run.folder / "feed.jsonl").read_text().splitlines()[-1])["samples"] == 3 * 40


def test_logged_names_are_plain(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", trainer={"log_every_n_steps": 1})
    names = {name for line in run.metrics() for name in line}
    assert names == {
        "epoch", "step", "train_step_loss", "train_learning_rate", "train_loss", "val_loss", "accuracy", "seen",
    }  # fmt: skip
    assert [line["epoch"] for line in run.metrics() if "val_loss" in line] == [1, 2]


def test_what_is_said_before_it_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(tmp_path / "run", data=Shades(120))
    said = capsys.readouterr().err
    assert "96 samples for training, 24 for validation" in said
    assert "2 classes: dark, bright." in said
    assert "of disk for checkpoints" not in said  # there is enough
    assert "of disk for checkpoints" in run.log() and "of memory for weights" in run.log()
    assert "a pack" in said and "to go" in said
    assert "bound by" in said
    logged = [line for line in run.log().splitlines() if not line.startswith("needs ")]
    assert [line.removeprefix("penstock: ") for line in said.splitlines()] == logged


def test_a_source_and_a_pack_of_it_give_the_same_weights(tmp_path: Path) -> None:
    source = Shades(60)
    ps.pack(source, tmp_path / "shades.pack", codec="png", progress=False)
    from_source = trained(tmp_path / "source", data=source)
    from_path = trained(tmp_path / "path", data=tmp_path / "shades.pack")
    assert same_weights(weights_of(from_source), weights_of(from_path))
    assert from_path.settings["data"]["path"] == str(tmp_path / "shades.pack")


def test_the_split_is_chosen_as_in_packing(tmp_path: Path) -> None:
    source = Shades(60)
    options: dict[str, Any] = {"split": "train=0.5,val=0.3,test=0.2"}
    pack = ps.pack(source, tmp_path / "shades.pack", seed=3, progress=False, **options)
    from_source = trained(tmp_path / "source", data=source, split_seed=3, **options)
    from_pack = trained(tmp_path / "pack", data=pack)
    assert same_weights(weights_of(from_source), weights_of(from_pack))
    assert from_pack.scores()["seen"] == 18


def test_a_pair_is_taken_as_it_is(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", data=(Shades(24), Shades(10, seed=1)))
    assert run.scores()["seen"] == 10


def test_a_subset_without_other_splits_trains_without_validation(tmp_path: Path) -> None:
    pack = ps.pack(Shades(60), tmp_path / "shades.pack", progress=False)
    run = trained(tmp_path / "run", data=pack.split("train"))
    assert run.scores() == {} and run.goal == {"name": "train_loss", "larger_is_better": False}
    assert run.checkpoint("best").name == "best.ckpt"
    assert len(trained(tmp_path / "early", data=pack.split("train"), early_stopping=1).metrics()) > 0


def test_a_split_that_is_not_there_is_named(tmp_path: Path) -> None:
    pack = ps.pack(Shades(60), tmp_path / "shades.pack", split="train=0.7,test=0.3", progress=False)
    with pytest.raises(ps.OptionError, match="no split 'val'; there are train, test"):
        trained(tmp_path / "run", data=pack)
    assert trained(tmp_path / "other", data=pack, val="test").scores()["seen"] == 18


def test_callbacks_loggers_and_arguments_go_to_lightning(tmp_path: Path) -> None:
    seen: list[int] = []

    class Counts(Callback):
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            seen.append(trainer.current_epoch)

    mine = ModelCheckpoint(tmp_path / "mine", monitor="accuracy", mode="max", filename="mine")
    logger = CSVLogger(tmp_path / "csv")
    trained(tmp_path / "run", callbacks=[Counts(), mine], logger=logger, trainer={"limit_train_batches": 2})
    assert seen == [0, 1]
    assert "accuracy" in torch.load(mine.best_model_path, weights_only=True)["penstock"]["scores"]
    assert "val_loss" in next((tmp_path / "csv").rglob("metrics.csv")).read_text()


def test_a_trial_leaves_no_run_in_the_folder(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", fast_dev_run=True)
    assert run.folder == tmp_path / "run-trial" and not (tmp_path / "run").exists()
    assert run.environment["outcome"] == "tried"
    trained(tmp_path / "run", fast_dev_run=True)  # as often as one likes


def test_the_progress_bar_is_there_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path / "with", progress=True)
    shown = capsys.readouterr()
    assert "Epoch" in shown.out + shown.err
    trained(tmp_path / "without")
    shown = capsys.readouterr()
    assert "Epoch" not in shown.out + shown.err


def test_early_stopping_ends_when_the_score_no_longer_rises(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", epochs=40, early_stopping=1, learning_rate=1e-9)
    assert len(run.validations()) == 2 and run.environment["outcome"] == "finished"


def test_without_checkpoints_there_are_none(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", checkpoints=False)
    assert list((run.folder / "checkpoints").iterdir()) == []


def test_an_own_transform_is_part_of_the_training_flow_alone(tmp_path: Path) -> None:
    def black(sample: dict[str, Any]) -> dict[str, Any]:
        return {**sample, "image": sample["image"] * 0}

    plain, changed = trained(tmp_path / "plain"), trained(tmp_path / "changed", transform=black)
    assert not same_weights(weights_of(plain), weights_of(changed))


def test_an_option_that_is_not_there_is_named_with_the_nearest() -> None:
    with pytest.raises(ps.OptionError, match="no option 'epoch_count'|Did you mean"):
        ps.train(Tiny(), Shades(), learning_rat=0.1)
    with pytest.raises(ps.OptionError, match="train needs data"):
        ps.train(Tiny())
    with pytest.raises(ps.OptionError, match="a path, a Source or a pair"):
        ps.train(Tiny(), 12)


def test_auto_is_written_with_what_it_became(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", data=Shades(400), epochs=1, batch_size="auto", learning_rate="auto")
    assert run.settings["train"]["batch_size"] == "auto"
    chosen = run.chosen["train"]
    assert chosen["batch_size"] == 32 and chosen["precision"] == "32-true" and 0 < chosen["learning_rate"] < 0.01
    assert run.chosen["feed"]["workers"] == 1


def test_half_precision_and_clipping_go_through(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", precision="bf16", gradient_clip=0.5, optimizer="adam")
    assert run.chosen["train"]["precision"] == "bf16-mixed"


def test_a_watched_training_tells_its_limit_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.training.feeds.WATCH_SECONDS", 0.0)
    run = trained(tmp_path / "run", watch=True, epochs=5)
    assert run.log().count("bound by") > 2


@pytest.mark.parametrize("place", ["memory", "folder"])
def test_a_cache_changes_nothing_that_is_learned(tmp_path: Path, place: str) -> None:
    plain = trained(tmp_path / "plain")
    cached = trained(tmp_path / "cached", cache=str(tmp_path / "kept") if place == "folder" else place)
    assert same_weights(weights_of(plain), weights_of(cached))
    assert (tmp_path / "kept" / "train").exists() == (place == "folder")


def test_bad_samples_are_listed_with_their_reasons(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", data=(Broken(40), Shades(8)), on_bad_sample="substitute")
    assert [row["index"] for row in run.bad_samples()] == [3]
    assert "shade_3" in run.bad_samples()[0]["key"] and "too dark" in run.bad_samples()[0]["reason"]


class Broken(Shades):
    """Sample 3 cannot be read."""

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        if raw.index == 3:
            raise OSError("too dark")
        return super().decode(raw)


@pytest.mark.parametrize(("wrong", "said"), [
    ({"trainer": {"limit_train_batchs": 1}}, "no argument 'limit_train_batchs'. Did you mean 'limit_train_batches'?"),
    ({"limit_train_batchs": 1}, "there is no option 'limit_train_batchs'. Did you mean 'limit_train_batches'?"),
    ({"enable_progress_bar": False}, "an argument of Lightning's Trainer; here it is called progress."),
    ({"max_epochs": 1}, "here it is called epochs."),
    ({"epoch": 1}, "Did you mean 'epochs'?"),
    ({"devices": "x"}, "devices='x' must be auto, a number of devices or their numbers, such as 2 or [0, 1]."),
    ({"devices": 0}, "devices=0 must be auto"),
])  # fmt: skip
def test_an_argument_that_is_wrong_is_said_before_a_folder_is_made(
    tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ps.OptionError) as caught:
        trained(tmp_path / "run", **wrong)
    assert said in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_arguments_of_the_trainer_are_passed_on(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", limit_train_batches=1, epochs=3)
    assert [line["step"] for line in run.metrics() if "train_loss" in line] == [1, 2, 3]


def test_every_logger_gets_the_settings_flat(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", logger=None)
    written = yaml.safe_load((run.folder / "tensorboard" / "hparams.yaml").read_text())
    assert written["train.epochs"] == 2 and written["train.learning_rate"] == 0.01
    assert written["train.batch_size"] == 8 and written["task.kind"] == "tiny"


def test_a_machine_with_slurm_gives_no_hint_about_srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "bin" / "srun"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*srun.*")
        trained(tmp_path / "run", epochs=1)
        with pytest.raises(Warning, match="srun"):  # Lightning alone would
            lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
