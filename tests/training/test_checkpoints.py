"""Checkpoints: plain values, the best and the last, whole or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import penstock as ps
from full_disk import largest_file
from penstock.tasks.task import Goal
from penstock.training.checkpoints import KeepCheckpoints, WholeCheckpoints
from training.small_trainings import InterruptAt, same_weights, trained, weights_of

TESTS = Path(__file__).parents[1]


def test_a_checkpoint_says_everything_in_plain_values(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    loaded = torch.load(run.checkpoint("best"), weights_only=True)
    assert all(name.startswith("network.") for name in loaded["state_dict"])
    own = loaded["penstock"]
    assert own["version"] == 1 and own["task"]["kind"] == "tiny" and own["task"]["settings"]["dropout"] == 0.2
    assert own["recipe"]["train"]["batch_size"] == 8
    assert own["scores"]["accuracy"] == run.scores("best")["accuracy"]
    last = torch.load(run.checkpoint("last"), weights_only=True)["penstock"]
    assert set(last["flow_state"]) >= {"plan", "epoch", "batch"}


@pytest.mark.parametrize("save_top_k", [0, 1, 3])
def test_the_best_are_kept_in_their_order(tmp_path: Path, save_top_k: int) -> None:
    scores = [0.2, 0.6, 0.1, 0.9, 0.6, 0.3]
    keeper = KeepCheckpoints(tmp_path, Goal("accuracy"), save_top_k=save_top_k)
    for epoch, score in enumerate(scores):
        keeper.on_train_epoch_end(StandIn(epoch, score), None)
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    expected = {
        0: {},
        1: {"best.ckpt": "3: 0.9"},
        3: {"best-1.ckpt": "3: 0.9", "best-2.ckpt": "1: 0.6", "best-3.ckpt": "4: 0.6"},
    }
    assert found == {"last.ckpt": "5: 0.3", **expected[save_top_k]}


def test_smaller_is_better_for_a_loss_and_no_number_is_never_best(tmp_path: Path) -> None:
    keeper = KeepCheckpoints(tmp_path, Goal("accuracy", larger_is_better=False))
    for epoch, score in enumerate([float("nan"), 0.5, 0.4, 0.6]):
        keeper.on_train_epoch_end(StandIn(epoch, score), None)
    assert (tmp_path / "best.ckpt").read_text() == "2: 0.4"


class StandIn(SimpleNamespace):
    """What a keeper asks of a trainer."""

    def __init__(self, epoch: int, score: float) -> None:
        super().__init__(fast_dev_run=False, is_global_zero=True, callback_metrics={"accuracy": score})
        self.text = f"{epoch}: {score}"

    def save_checkpoint(self, path: Path) -> None:
        path.write_text(self.text)


def test_the_monitor_may_be_another_logged_name(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", monitor="val_loss", save_top_k=2, epochs=3)
    assert run.goal == {"name": "val_loss", "larger_is_better": False}
    best = [torch.load(run.folder / "checkpoints" / f"best-{n}.ckpt", weights_only=True) for n in (1, 2)]
    losses = [one["penstock"]["scores"]["val_loss"] for one in best]
    assert losses == pytest.approx(sorted(line["val_loss"] for line in run.validations())[:2])


def test_the_last_state_is_written_while_an_epoch_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.training.checkpoints.MEASURED_STEPS", 1)
    monkeypatch.setattr(KeepCheckpoints.__init__, "__kwdefaults__", {**_defaults(), "every_seconds": 1e-9})
    with pytest.raises(KeyboardInterrupt):  # at once, so that nothing is saved because of it
        trained(tmp_path / "run", callbacks=[InterruptAt(0, 4, times=2)])
    saved = torch.load(tmp_path / "run" / "checkpoints" / "last.ckpt", weights_only=True)
    assert saved["global_step"] == 4
    monkeypatch.undo()
    assert same_weights(weights_of(trained(tmp_path / "run")), weights_of(trained(tmp_path / "whole")))


def _defaults() -> dict[str, Any]:
    return dict(KeepCheckpoints.__init__.__kwdefaults__ or {})


# What a killed process and a full disk leave

KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from penstock.storage import whole_files
from penstock.training.checkpoints import WholeCheckpoints

io, path = WholeCheckpoints(), Path(sys.argv[1])
io.save_checkpoint({"state_dict": {"w": torch.zeros(1000)}}, path)
if sys.argv[2] == "while writing":
    class Deadly(dict):
        def __reduce__(self):
            os.kill(os.getpid(), signal.SIGKILL)
    io.save_checkpoint({"state_dict": {"w": torch.ones(1000)}, "more": Deadly()}, path)
else:
    whole_files._sync = lambda partial: os.kill(os.getpid(), signal.SIGKILL)
    io.save_checkpoint({"state_dict": {"w": torch.ones(1000)}}, path)
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["while writing", "before it is synced"])
def test_a_process_that_is_killed_while_it_saves_leaves_the_checkpoint_before(tmp_path: Path, when: str) -> None:
    path = tmp_path / "last.ckpt"
    child = subprocess.run([sys.executable, "-c", KILLED, str(path), when])
    assert child.returncode == -signal.SIGKILL
    assert torch.equal(torch.load(path, weights_only=True)["state_dict"]["w"], torch.zeros(1000))
    assert len(list(tmp_path.iterdir())) == 2  # and something unfinished, which the next training removes


def test_what_a_killed_process_left_unfinished_is_removed(tmp_path: Path) -> None:
    leftover = tmp_path / "run" / "checkpoints" / ".last.ckpt.12_4abcd.partial"
    leftover.mkdir(parents=True)
    (leftover / "last.ckpt").write_bytes(b"half")
    trained(tmp_path / "run")
    assert not leftover.exists()


def test_a_full_disk_is_said_and_the_checkpoint_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "last.ckpt"
    WholeCheckpoints().save_checkpoint({"w": torch.zeros(10)}, path)
    with largest_file(20_000), pytest.raises(OSError, match="File too large"):
        WholeCheckpoints().save_checkpoint({"w": torch.ones(20_000)}, path)
    assert torch.equal(torch.load(path, weights_only=True)["w"], torch.zeros(10))
    assert list(tmp_path.iterdir()) == [path]


def test_a_training_on_a_full_disk_ends_with_the_reason(tmp_path: Path) -> None:
    with largest_file(8_000), pytest.raises(OSError, match="File too large"):
        trained(tmp_path / "run")
    assert "File too large" in ps.Run(tmp_path / "run").environment["outcome"]


def test_too_little_disk_is_said_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(ps.TrainingError, match="checkpoints need .* MB"):
        trained(tmp_path / "run")


def test_a_best_checkpoint_that_a_killed_process_did_not_come_to_write_is_the_last_one(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", epochs=1)
    best = run.checkpoint("best")
    best.unlink()
    keeper = KeepCheckpoints(best.parent, Goal("accuracy"))
    keeper.load_state_dict({"best": [0.5]})
    assert best.read_bytes() == run.checkpoint("last").read_bytes()
