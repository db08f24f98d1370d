"""Faults: what a training says and keeps when it cannot go on as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import penstock as ps
from training.small_trainings import same_weights, trained, weights_of
from training.tiny_task import Shades, Tiny

TESTS = Path(__file__).parents[1]


def test_a_loss_that_is_no_number_names_the_samples_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    data = (Shades(24), None)
    first = trained(tmp_path / "first", data=data, epochs=1, schedule="constant")
    good = weights_of(first)
    with pytest.raises(ps.TrainingError, match=r"the loss became nan in epoch 1, step \d, because of sample 23 "):
        trained(tmp_path / "run", Tiny(nan_from=23), data=data)
    run = ps.Run(tmp_path / "run")
    assert run.environment["outcome"].startswith("failed: the loss became nan")
    assert not list(run.folder.glob("checkpoints/*.ckpt"))  # it was in the first epoch
    assert all(torch.isfinite(value).all() for value in good.values())


def test_samples_are_named_by_their_keys(tmp_path: Path) -> None:
    with pytest.raises(ps.TrainingError, match=r"\(shade_\d+\), sample .* and \d more"):
        trained(tmp_path / "run", Tiny(nan_from=0))


def test_auto_halves_what_is_on_the_device_and_adds_gradients_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (Shades(40), Shades(16, seed=1))
    options = {"data": data, "batch_size": "auto", "schedule": "constant", "optimizer": "sgd", "freeze": "backbone"}
    # Frozen normalisations and no dropout: then nothing depends on how many samples are on the device.
    large = trained(tmp_path / "large", Tiny(dropout=0.0), **options)
    small = trained(tmp_path / "small", Tiny(dropout=0.0, most_rows=1), **options)
    assert large.chosen["train"]["on_device"] == large.chosen["train"]["batch_size"] == 4
    assert small.chosen["train"]["on_device"] == 1 and small.chosen["train"]["batch_size"] == 4
    assert "a step still sees 4" in capsys.readouterr().err
    for name, value in weights_of(large).items():
        torch.testing.assert_close(weights_of(small)[name], value, atol=1e-6, rtol=1e-5)
    steps = [torch.load(run.checkpoint("last"), weights_only=True)["global_step"] for run in (large, small)]
    assert steps == [20, 20]


def test_a_batch_size_of_the_user_is_not_changed(tmp_path: Path) -> None:
    with pytest.raises(ps.TrainingError, match="out of memory with 8 samples on the device: .* Lower train.batch_size"):
        trained(tmp_path / "run", Tiny(most_rows=4))


def test_auto_gives_up_at_one_sample(tmp_path: Path) -> None:
    with pytest.raises(ps.TrainingError, match="out of memory with 1 sample"):
        trained(tmp_path / "run", Tiny(most_rows=0), batch_size="auto")


def test_other_errors_are_not_taken_for_a_lack_of_memory(tmp_path: Path) -> None:
    def broken(sample: dict[str, object]) -> dict[str, object]:
        raise RuntimeError("my own mistake")

    with pytest.raises(ps.HopError, match="my own mistake"):
        trained(tmp_path / "run", transform=broken, batch_size="auto")


def test_an_empty_split_is_said(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match="no samples for evaluation"):
        trained(tmp_path / "run", data=(Shades(8), Shades(0)))


INTERRUPTED = """
import os, signal, sys
import torch
torch.set_num_threads(1)
from penstock.cli import _run
import penstock as ps
from training.small_trainings import trained
from training.tiny_task import Tiny

class Slow(Tiny):
    def augment(self, batch, *, seed, epoch):
        if epoch == 1:
            print("ready", flush=True)
            sys.stdin.readline()
        return batch

try:
    trained(sys.argv[1], Slow(), epochs=3)
except KeyboardInterrupt as stop:
    print(stop, flush=True)
    sys.exit(130)
"""


@pytest.mark.slow
def test_ctrl_c_saves_says_how_to_go_on_and_the_training_ends_the_same(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert child.stdout is not None and child.stdin is not None
    assert child.stdout.readline() == "ready\n"  # a step of the second epoch is running
    child.send_signal(signal.SIGINT)
    said, errors = child.communicate("\n" * 100)
    assert child.returncode == 130
    assert "The same command goes on from there." in said and "stopping after this step" in errors
    assert ps.Run(tmp_path / "run").environment["outcome"] == "interrupted"
    run = trained(tmp_path / "run", epochs=3)
    assert same_weights(weights_of(run), weights_of(trained(tmp_path / "whole", epochs=3)))
