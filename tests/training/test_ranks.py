"""Two processes: each sample once an epoch, scores of the whole set, and one of them writes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lightning.pytorch as lightning
import pytest
import torch

import penstock as ps
from training import ranks
from training.small_trainings import weights_of
from training.tiny_task import Shades, Tiny, recorded

SCRIPT = Path(ranks.__file__)
Launch = Callable[[Path, str], None]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def torchrun(folder: Path, way: str) -> None:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}"]
    command = [sys.executable, *launcher, str(SCRIPT), str(folder), way]
    finished = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr[-4000:]


def slurm(folder: Path, way: str) -> None:
    """Two processes as `srun` starts them."""
    shared = {
        "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "2", "SLURM_NODEID": "0", "SLURM_NODELIST": "localhost",
        "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "pets", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    children = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder), way],
            env={**os.environ, **shared, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    said = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children] == [0, 0], said


def seen_in(folder: Path, epoch: int) -> list[int]:
    lines = [line for rank in (0, 1) for line in recorded(folder / "seen.txt", rank)]
    return [int(word) for line in lines if line.startswith(f"{epoch}:") for word in line.split()[1:]]


@pytest.mark.parametrize("launch", [torchrun, pytest.param(slurm, marks=pytest.mark.slow)])
def test_each_sample_is_seen_once_and_scores_are_of_the_whole_set(tmp_path: Path, launch: Launch) -> None:
    launch(tmp_path, "train")
    for epoch in (0, 1):
        assert sorted(seen_in(tmp_path, epoch)) == list(range(ranks.TRAIN))
    together = ps.Run(tmp_path / "run")
    alone = ps.train(
        Tiny(dropout=0.0), (Shades(ranks.TRAIN), Shades(ranks.VAL, seed=1)), folder=tmp_path / "alone", epochs=2,
        logger=False, progress=False, **ranks.OPTIONS,
    )  # fmt: skip
    assert together.scores()["seen"] == alone.scores()["seen"] == ranks.VAL
    assert [line["step"] for line in together.metrics()] == [line["step"] for line in alone.metrics()]
    assert together.log().count("samples for training") == 1  # one of them spoke
    losses = [next(line["train_loss"] for line in run.metrics() if "train_loss" in line) for run in (together, alone)]
    assert losses[0] == pytest.approx(losses[1], rel=0.2)
    assert weights_of(together).keys() == weights_of(alone).keys()


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights that two ranks learned from batches whose shares differ."""
    folder = tmp_path_factory.mktemp("uneven")
    torchrun(folder, "uneven")
    return folder


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
@pytest.mark.parametrize("case", range(len(ranks.UNEVEN)))
def test_every_sample_counts_the_same_on_two_ranks_as_on_one(case: int, uneven: Path) -> None:
    together, alone = torch.load(uneven / f"{case}.pt", weights_only=True), ranks.fitted_weights(case, 1)
    begun = ps.module_for(ranks.Plain(dropout=0.0), **{**ranks.OPTIONS, "workers": "auto"}).state_dict()
    assert together.keys() == alone.keys() == begun.keys()
    for name, weight in alone.items():
        moved = (weight - begun[name]).abs().max()
        assert moved > 1e-4
        torch.testing.assert_close(together[name], weight, rtol=0, atol=float(moved) * 1e-4)


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
def test_a_step_that_a_limit_cuts_short_is_the_mean_of_its_samples() -> None:
    samples, _, _ = ranks.UNEVEN[2]
    whole = ps.module_for(ranks.Plain(dropout=0.0), (Shades(samples), None), **_descent(accumulate=2))
    cut = ps.module_for(ranks.Plain(dropout=0.0), (Shades(samples), None), **_descent(accumulate=5))
    for module, accumulate in ((whole, 2), (cut, 5)):
        lightning.Trainer(
            max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, limit_val_batches=0, accumulate_grad_batches=accumulate, limit_train_batches=2,
        ).fit(module)  # fmt: skip
    for first, second in zip(whole.state_dict().values(), cut.state_dict().values(), strict=True):
        torch.testing.assert_close(first, second)


def _descent(**options: object) -> dict[str, object]:
    return {**ranks.OPTIONS, "optimizer": "sgd", "momentum": 0.0, **options}


@pytest.mark.slow
def test_a_trainer_of_the_user_with_ddp_starts_the_other_process_itself(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), str(tmp_path), "module"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_PORT": str(free_port())}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr[-4000:]
    assert sorted(seen_in(tmp_path, 1)) == list(range(ranks.TRAIN))
    first, second = (torch.load(tmp_path / f"weights.{rank}", weights_only=True) for rank in (0, 1))
    trained_names = [name for name in first if "running" not in name and "num_batches" not in name]
    assert all(torch.equal(first[name], second[name]) for name in trained_names)
