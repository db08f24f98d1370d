"""A behaviour training: three stages, one Run, gone on with wherever it stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision

import penstock as ps
from penstock.cli.train import _ending
from tasks.behaviour.frames_source import Frames
from training.small_trainings import InterruptAt, same_weights, weights_of

NAMES = ("background", "walk", "rear")
TASK = ps.Behaviour(size="tiny", frames=3, flow_epochs=1, sequence_epochs=2, clips_per_epoch=16, window_frames=16)


def videos(names: str, frames: int = 24) -> Frames:
    """Dark and bright stretches: what is bright walks."""
    rng = np.random.default_rng(len(names))
    count = frames * len(names)
    is_bright = np.arange(count) // 6 % 2
    images = (rng.integers(0, 100, (count, 32, 32, 3)) + 120 * is_bright[:, None, None, None]).astype(np.uint8)
    labels = np.stack([1 - is_bright, is_bright, np.zeros(count)], axis=1)
    return Frames(images, labels, np.repeat(list(names), frames), NAMES)


def trained(folder: Path, task: ps.Behaviour = TASK, data: Any = None, **options: Any) -> ps.Run:
    data = (videos("ab"), videos("c")) if data is None else data
    given = {"epochs": 2, "batch_size": 8, "progress": False, "workers": 1, "logger": False, **options}
    return ps.train(task, data, folder=folder, **given)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ps.Run:
    torch.set_num_threads(1)
    return trained(tmp_path_factory.mktemp("runs") / "mice")


def test_the_run_and_each_stage_are_runs(run: ps.Run) -> None:
    assert run.settings["task"]["kind"] == "behaviour"
    assert run.environment["outcome"] == "finished"
    kinds = [ps.Run(run.folder / "stages" / name).settings["task"]["kind"] for name in ("flow", "frames", "sequence")]
    assert kinds == ["behaviour_flow", "behaviour_frames", "behaviour_sequence"]
    assert not (run.folder / "stages" / "features").exists()


def test_the_checkpoint_has_the_whole_network_and_what_was_decided(run: ps.Run) -> None:
    model = ps.load(run, device="cpu")
    task: Any = model.task
    assert task.behaviours == NAMES
    assert task.image_size == (32, 32)
    assert len(task.score_thresholds) == len(task.min_bout_frames) == 3
    assert model.thresholds == dict(zip(NAMES, task.score_thresholds, strict=True))
    stages = [weights_of(ps.Run(run.folder / "stages" / name), "best") for name in ("flow", "frames", "sequence")]
    whole = weights_of(run, "best")
    assert all(torch.equal(whole[name], stages[0][name]) for name in whole if name.startswith("network.motion."))
    assert all(torch.equal(whole[name], stages[1][name]) for name in whole if name.startswith("network.frames."))
    assert all(torch.equal(whole[name], stages[2][name]) for name in whole if name.startswith("network.sequence."))


def test_scores_and_pictures_are_of_the_whole_chain(run: ps.Run) -> None:
    details = run.details()
    assert details["kind"] == "behaviour"
    assert [one["video"] for one in details["ethograms"]] == ["c"]
    assert {"f1", "f1_without_background", "bout_f1", "walk_f1"} <= run.scores().keys()
    assert np.isnan(run.scores()["rear_f1"])


def test_a_finished_training_is_not_trained_again(run: ps.Run) -> None:
    before = weights_of(run, "best")
    assert same_weights(before, weights_of(trained(run.folder), "best"))


def test_a_training_that_was_interrupted_ends_as_if_it_had_not_been(run: ps.Run, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "mice", callbacks=[InterruptAt(1, 0)])  # in the frames stage: flow has one epoch
    flow = tmp_path / "mice" / "stages" / "flow" / "checkpoints" / "last.ckpt"
    written = flow.stat().st_mtime_ns
    again = trained(tmp_path / "mice")
    assert flow.stat().st_mtime_ns == written
    assert same_weights(weights_of(run, "best"), weights_of(again, "best"))


def test_training_without_validation_decides_on_the_training_data(tmp_path: Path) -> None:
    found = trained(tmp_path / "mice", data=(videos("a"), None), epochs=1)
    assert "thresholds are chosen on the training data" in found.log()
    assert len(ps.load(found, device="cpu").thresholds) == 3


def test_one_behaviour_a_frame_and_a_gru_are_trained_too(tmp_path: Path) -> None:
    task = ps.Behaviour(
        size="tiny", frames=3, flow_epochs=1, sequence_epochs=1, clips_per_epoch=16, exclusive=True, sequence="gru"
    )
    assert trained(tmp_path / "mice", task, epochs=1).environment["outcome"] == "finished"


def test_a_trial_goes_through_flow_and_frames(tmp_path: Path) -> None:
    assert trained(tmp_path / "mice", fast_dev_run=True).environment["outcome"] == "tried"


def test_weights_are_looked_at_before_any_stage(tmp_path: Path) -> None:
    task = replace(TASK, weights=str(tmp_path / "nothere.pth"))
    with pytest.raises(ps.DataError, match=r"nothere\.pth: this is no model: there is no such file"):
        trained(tmp_path / "mice", task)
    torch.save({"other.weight": torch.zeros(3)}, tmp_path / "other.pth")
    with pytest.raises(ps.OptionError, match="not of a mobilenet_v2"):
        trained(tmp_path / "mice", replace(TASK, weights=str(tmp_path / "other.pth")))
    assert not (tmp_path / "mice").exists()


def test_weights_are_not_asked_for_again_when_the_streams_are_trained(tmp_path: Path) -> None:
    weights = tmp_path / "begin.pth"
    torch.save(torchvision.models.get_model("mobilenet_v2").state_dict(), weights)
    task = replace(TASK, weights=str(weights))
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "mice", task, epochs=1, callbacks=[InterruptAt(1, 0)])  # flow and frames have one epoch
    weights.unlink()
    assert trained(tmp_path / "mice", task, epochs=1).environment["outcome"] == "finished"


def test_a_behaviour_without_validation_is_named_when_training_begins(tmp_path: Path) -> None:
    with_rear = videos("ab")
    with_rear.labels[:3] = (0, 0, 1)
    found = trained(tmp_path / "mice", data=(with_rear, videos("c")), fast_dev_run=True)
    assert "rear occurs in the training data, but not in the validation data" in found.log()


def test_scores_on_the_training_data_are_not_shown_as_results(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", data=(videos("ab"), None), epochs=1)
    assert run.scores() == {} and run.details()["judged_on"] == "training"
    assert "train_f1" in run.metrics()[-1]
    page = ps.report(run).read_text()
    assert "These are the data that it was trained on" in page
    assert _ending(run).endswith("trained without validation, so there is no score")
    stage = ps.report(ps.Run(run.folder / "stages" / "frames")).read_text()
    assert "tiny, from random weights" in stage
