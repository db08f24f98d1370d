"""Every task on two ranks, through ps.train and through a Trainer of the user's own, beside one rank.

Scores of the same weights are the same to 1e-6. Weights are not: a batch normalisation sees half of the batch on each
rank, and a mean of losses over what is labelled or matched is that of each rank. What one rank and two have learned is
compared by its losses, to a fifth.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import pytest

import penstock as ps
from training import task_ranks
from training.small_trainings import weights_of
from training.test_ranks import free_port

pytestmark = [
    pytest.mark.slow,  # processes that import torch, and trainings of three tasks in each
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
]

SAME = {"rel": 1e-6, "abs": 1e-6, "nan_ok": True}
ALIKE = {"rel": 0.2, "nan_ok": True}
LOSSES = ("train_loss", "val_loss")


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All trainings on two ranks."""
    folder = tmp_path_factory.mktemp("together")
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}"]
    _run([sys.executable, *launcher, str(task_ranks.__file__), str(folder)])
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on one."""
    folder = tmp_path_factory.mktemp("alone")
    _run([sys.executable, str(task_ranks.__file__), str(folder)])
    return folder


def _run(command: list[str]) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr[-6000:]


def runs_of(folder: Path, name: str) -> list[ps.Run]:
    run = ps.Run(folder / name)
    return [run, *run.stages()]


def last_scores(run: ps.Run) -> dict[str, float]:
    return run.scores("last")


@pytest.mark.parametrize("name", ["classification", "detection"])
def test_the_scores_that_two_ranks_wrote_are_those_of_their_checkpoint_on_one(name: str, together: Path) -> None:
    run = ps.Run(together / name)
    _, (_, val) = task_ranks.TASKS[name]()
    found = ps.evaluate(run.checkpoint("last"), val, device="cpu", batch_size=5)
    written = {key: value for key, value in last_scores(run).items() if not key.startswith("val_")}
    assert written.keys() <= found.scores.keys()
    assert written == pytest.approx({key: found.scores[key] for key in written}, **SAME)


@pytest.mark.parametrize("name", ["flow", "frames"])
def test_what_two_ranks_wrote_of_a_stage_is_what_one_finds_with_its_weights(name: str, together: Path) -> None:
    run = ps.Run(together / "behaviour" / "stages" / name)
    whole, data = task_ranks.TASKS["behaviour"]()
    module = ps.module_for(whole.stage(name), data, **task_ranks.OPTIONS)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    module.load_state_dict(weights_of(run))
    found = lightning.Trainer(**quiet).validate(module, verbose=False)[0]
    assert last_scores(run) == pytest.approx(found, **SAME)


@pytest.mark.parametrize("name", list(task_ranks.OWN_LOOPS))
def test_an_own_trainer_scores_the_same_weights_the_same_on_two_ranks(name: str, together: Path, alone: Path) -> None:
    first, second = (json.loads((folder / f"{name}.json").read_text()) for folder in (together, alone))
    assert first["before"] == pytest.approx(second["before"], **SAME)
    assert first["after"].keys() == second["after"].keys()
    losses = [{key: one["after"][key] for key in LOSSES} for one in (first, second)]
    assert losses[0] == pytest.approx(losses[1], **ALIKE)


@pytest.mark.parametrize("name", list(task_ranks.TASKS))
def test_two_ranks_leave_the_same_run_as_one(name: str, together: Path, alone: Path) -> None:
    for two, one in zip(runs_of(together, name), runs_of(alone, name), strict=True):
        assert [line.keys() for line in two.metrics()] == [line.keys() for line in one.metrics()]
        assert [(line["epoch"], line["step"]) for line in two.metrics()] == [
            (line["epoch"], line["step"]) for line in one.metrics()
        ]
        assert _losses(two) == pytest.approx(_losses(one), **ALIKE)
        assert two.environment["outcome"] == "finished"


def _losses(run: ps.Run) -> dict[Any, float]:
    lines = run.metrics()
    found = {(number, key): value for number, line in enumerate(lines) for key, value in line.items() if key in LOSSES}
    assert found or run.stages()
    assert not any(math.isinf(value) for value in found.values())
    return found
