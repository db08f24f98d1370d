"""Training that begins with a model of Penstock: what is taken, what is new, what is said, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import penstock as ps
from penstock.tasks.checkpoints import read_checkpoint
from penstock.training.trainers import begun_network
from tasks.behaviour.frames_source import Frames
from training.small_trainings import InterruptAt, same_weights, weights_of
from training.test_staged import TASK, trained, videos

OTHERS = ("background", "groom", "walk")  # groom is new, rear is gone, and walk stands in another place


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ps.Run:
    torch.set_num_threads(1)
    return trained(tmp_path_factory.mktemp("runs") / "mice")


def task_of(run: ps.Run, place: str | Path, **changes: Any) -> Any:
    """The fitted task of a Run, beginning with its weights."""
    task: Any = read_checkpoint(run.checkpoint()).task
    return replace(task, weights=str(place), **changes)


def begun(task: Any, stage: str) -> Any:
    return begun_network(task.stage(stage), 7)


def with_other_behaviours(task: Any) -> Any:
    return replace(task, behaviours=OTHERS, counts=((9, 9),) * 3, score_thresholds="auto", min_bout_frames="auto")


@pytest.mark.parametrize("form", ["run", "checkpoint", "m.safetensors", "m.pt"])
def test_every_stage_begins_with_a_model_in_any_form(form: str, run: ps.Run, tmp_path: Path) -> None:
    places = {"run": run.folder, "checkpoint": run.checkpoint()}
    place = places.get(form) or ps.load(run, device="cpu").save(tmp_path / form)
    task, whole = task_of(run, place), read_checkpoint(run.checkpoint()).weights
    for stage, part in (("flow", "motion."), ("frames", "frames."), ("sequence", "sequence.")):
        network, taken = begun(task, stage)
        own = network.state_dict()
        assert all(torch.equal(own[name], whole[name]) for name in own if name.startswith(part)), stage
        assert taken.tensors_taken == taken.tensors - (2 if stage == "sequence" else 0)


def test_what_is_known_of_behaviours_is_kept_by_name(run: ps.Run) -> None:
    task, whole = with_other_behaviours(task_of(run, run.folder)), read_checkpoint(run.checkpoint()).weights
    frames, sequence = begun(task, "frames"), begun(task, "sequence")
    heads = frames.network.state_dict()
    for name in ("frames.spatial_head.weight", "frames.motion_head.weight", "frames.bias"):
        assert torch.equal(heads[name][2], whole[name][1]) and torch.equal(heads[name][0], whole[name][0])
        assert not torch.equal(heads[name][1], whole[name][2])
    last, enter = (sequence.network.state_dict()[f"sequence.{name}.weight"] for name in ("last", "temporal.enter"))
    assert torch.equal(last[2], whole["sequence.last.weight"][1])
    assert torch.equal(enter[:, 66], whole["sequence.temporal.enter.weight"][:, 65])
    assert torch.equal(enter[:, :64], whole["sequence.temporal.enter.weight"][:, :64])
    assert "outputs kept: background, walk, new: groom, not used: rear" in frames.taken.line("runs/mice")


def test_a_training_with_other_behaviours_says_and_keeps_what_was_taken(run: ps.Run, tmp_path: Path) -> None:
    def other(names: str) -> Frames:
        found = videos(names)
        return Frames(found.images, found.labels[:, [0, 2, 1]], np.repeat(list(names), 24), OTHERS)

    task = replace(TASK, weights=str(run.folder))
    found = trained(tmp_path / "mice", task, data=(other("ab"), other("c")), epochs=1)
    frames = ps.Run(found.folder / "stages" / "frames")
    named = "outputs kept: background, walk, new: groom, not used: rear"
    line = f"begins with {run.folder}: 287 of 287 tensors taken; {named}."
    assert frames.log().count(line) == 1
    assert frames.chosen["weights"]["classes_new"] == ["groom"]
    assert found.chosen["weights"]["frames"] == line
    assert set(found.chosen["weights"]) == {"flow", "frames", "sequence"}


def test_an_interrupted_warm_start_ends_as_if_it_had_not_been(run: ps.Run, tmp_path: Path) -> None:
    task = replace(TASK, weights=str(run.folder))
    whole = trained(tmp_path / "whole", task)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "mice", task, callbacks=[InterruptAt(1, 0)])
    assert same_weights(weights_of(trained(tmp_path / "mice", task), "best"), weights_of(whole, "best"))


def test_a_sequence_network_of_another_kind_is_new_and_that_is_said(run: ps.Run) -> None:
    taken = begun(task_of(run, run.folder, sequence="gru"), "sequence").taken
    assert taken.tensors_taken == 0
    assert "the sequence network is new (it is a convolution there and a gru here)" in taken.line("runs/mice")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": "fast"}, "has size tiny, and this task has size fast"),
        ({"frames": 5}, "has frames 3, and this task has frames 5"),
    ],
)
def test_a_model_with_another_network_is_refused(changes: Any, words: str, run: ps.Run, tmp_path: Path) -> None:
    task = replace(TASK, weights=str(run.folder), **changes)
    with pytest.raises(ps.OptionError, match=words):
        trained(tmp_path / "mice", task)
    assert not (tmp_path / "mice").exists()


def test_a_checkpoint_of_a_single_stage_is_refused(run: ps.Run, tmp_path: Path) -> None:
    for stage in ("flow", "sequence"):
        with pytest.raises(ps.OptionError, match=f"is a checkpoint of the stage {stage} alone. Name the Run"):
            trained(tmp_path / "mice", replace(TASK, weights=str(run.folder / "stages" / stage)))


def test_models_of_other_tasks_are_refused_by_their_name(run: ps.Run, tmp_path: Path) -> None:
    detector = ps.Detection(["Tree"], backbone="tiny")
    boxes = ps.Model(detector, detector.network(), device="cpu").save(tmp_path / "trees.pt")
    with pytest.raises(ps.OptionError, match="is a model of the task detection, and behaviour cannot begin with it"):
        trained(tmp_path / "mice", replace(TASK, weights=str(boxes)))
    for task in (ps.Classification(["a", "b"], weights=str(run.folder)), replace(detector, weights=str(run.folder))):
        with pytest.raises(ps.OptionError, match="is a model of the task behaviour"):
            task.pretrained()
    with pytest.raises(ps.OptionError, match="is a model of the task detection, and classification cannot"):
        ps.Classification(["a", "b"], backbone="tiny", weights=str(boxes)).pretrained()


def test_streams_begin_with_a_classifier_of_the_same_backbone(tmp_path: Path) -> None:
    for backbone in ("mobilenet_v2", "resnet18"):
        task = ps.Classification(["a", "b"], backbone=backbone)
        ps.Model(task, task.network(), device="cpu").save(tmp_path / f"{backbone}.pt")
    task = replace(TASK, behaviours=("walk", "rear"), normalize="imagenet")
    taken = begun(replace(task, weights=str(tmp_path / "mobilenet_v2.pt")), "frames").taken
    assert "new: the motion stream and the heads" in taken.line("m.pt")
    with pytest.raises(ps.OptionError, match="has backbone resnet18, and this task has backbone mobilenet_v2"):
        begun(replace(task, weights=str(tmp_path / "resnet18.pt")), "frames")


def test_a_classifier_takes_the_outputs_of_classes_with_the_same_name(tmp_path: Path) -> None:
    first = ps.Classification(["cat", "dog"], backbone="tiny")
    network = first.network()
    path = ps.Model(first, network, device="cpu").save(tmp_path / "pets.pt")
    swapped = ps.Classification(["dog", "cat"], backbone="tiny", weights=str(path))
    head = begun_network(swapped, 7).network.state_dict()["classifier.weight"]
    assert torch.equal(head, network.state_dict()["classifier.weight"].flip(0))
    taken = begun_network(replace(swapped, classes=("bird", "cat")), 7).taken
    assert taken is not None
    assert taken.line("pets.pt").endswith("outputs kept: cat, new: bird, not used: dog.")
    none = begun_network(replace(swapped, classes=("bird", "fish")), 7).taken
    assert none is not None
    assert "the head is new (none of its classes has the same name there)" in none.line("pets.pt")
    assert none.tensors_taken == none.tensors - 2


def test_a_detector_says_what_it_took(tmp_path: Path) -> None:
    first = ps.Detection(["Tree"], backbone="tiny")
    path = ps.Model(first, first.network(), device="cpu").save(tmp_path / "trees.safetensors")
    taken = begun_network(replace(first, classes=("Snag", "Tree"), weights=str(path)), 7).taken
    assert taken is not None and taken.tensors_taken == taken.tensors
    assert taken.line("trees.safetensors").endswith("outputs kept: Tree, new: Snag.")
    plain = ps.Classification(["a", "b"], backbone="resnet18")
    ps.Model(plain, plain.network(), device="cpu").save(tmp_path / "plain.pt")
    task = ps.Detection(["Tree"], backbone="resnet18", weights=str(tmp_path / "plain.pt"))
    taken = begun_network(task, 7).taken
    assert taken is not None
    assert "pyramid and heads are new" in taken.line("plain.pt") and "2 tensors of the file not used" in taken.line("")
