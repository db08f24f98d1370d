"""A training that was interrupted goes on with exactly the next batch, and ends with the same weights."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import penstock as ps
from penstock.runs.writing import RunWriter
from penstock.training.checkpoints import WholeCheckpoints
from training.small_trainings import InterruptAt, same_weights, trained, weights_of
from training.tiny_task import Shades, Tiny, recorded


def interrupted(folder: Path, at: InterruptAt, **options: Any) -> str:
    with pytest.raises(KeyboardInterrupt) as caught:
        trained(folder, callbacks=[at], **options)
    return str(caught.value)


@pytest.mark.parametrize(("epoch", "batch"), [(0, 0), (0, 2), (0, 4), (1, 1), (1, 3)])
def test_the_batches_and_weights_are_those_of_an_uninterrupted_training(tmp_path: Path, epoch: int, batch: int) -> None:
    whole = trained(tmp_path / "whole", Tiny(record=str(tmp_path / "whole.txt")))
    task = Tiny(record=str(tmp_path / "halves.txt"))
    said = interrupted(tmp_path / "halves", InterruptAt(epoch, batch), task=task)
    assert "The same command goes on" in said
    run = trained(tmp_path / "halves", task)
    assert recorded(tmp_path / "halves.txt") == recorded(tmp_path / "whole.txt")
    assert same_weights(weights_of(run), weights_of(whole))
    assert _scores(run) == _scores(whole)


def _scores(run: ps.Run) -> list[dict[str, Any]]:
    """Lines of epochs; when steps are logged may differ."""
    return [line for line in run.metrics() if "train_step_loss" not in line]


@pytest.mark.parametrize("schedule", ["constant", "cosine", "step", "plateau"])
def test_schedules_and_accumulated_gradients_go_on_too(tmp_path: Path, schedule: str) -> None:
    options: dict[str, Any] = {"schedule": schedule, "accumulate": 2, "warmup_epochs": 0.5, "optimizer": "sgd"}
    whole = trained(tmp_path / "whole", **options)
    interrupted(tmp_path / "halves", InterruptAt(0, 2), **options)
    run = trained(tmp_path / "halves", **options)
    assert same_weights(weights_of(run), weights_of(whole))


def test_a_second_interruption_stops_at_once_and_the_older_state_is_kept(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole")
    interrupted(tmp_path / "halves", InterruptAt(1, 1, times=2))
    checkpoint = torch.load(tmp_path / "halves" / "checkpoints" / "last.ckpt", weights_only=True)
    assert checkpoint["global_step"] == 5  # the end of the first epoch
    run = trained(tmp_path / "halves")
    assert same_weights(weights_of(run), weights_of(whole))


def test_ctrl_c_works_as_before_afterwards(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    interrupted(tmp_path / "run", InterruptAt(0, 1, times=2))
    assert signal.getsignal(signal.SIGINT) is before


def test_other_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    interrupted(tmp_path / "run", InterruptAt(0, 1))
    with pytest.raises(ps.OptionError, match="train.learning_rate was 0.01, now 0.5; train.seed was 0, now 3"):
        trained(tmp_path / "run", learning_rate=0.5, seed=3)
    with pytest.raises(ps.OptionError, match="task.dropout was 0.2, now 0.7"):
        trained(tmp_path / "run", Tiny(dropout=0.7))


def test_other_data_are_refused(tmp_path: Path) -> None:
    interrupted(tmp_path / "run", InterruptAt(0, 1))
    with pytest.raises(ps.OptionError, match="another plan"):
        trained(tmp_path / "run", data=Shades(50, seed=9))


def test_how_it_runs_may_change(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole")
    interrupted(tmp_path / "run", InterruptAt(0, 1))
    run = trained(tmp_path / "run", workers=0, executor="thread", accelerator="cpu")
    assert same_weights(weights_of(run), weights_of(whole))


def test_resume_never_refuses_a_folder_in_use(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    with pytest.raises(ps.OptionError, match="holds a Run already"):
        trained(tmp_path / "run", resume="never")


def test_a_finished_run_is_given_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = Tiny(record=str(tmp_path / "seen.txt"))
    first = trained(tmp_path / "run", task)
    seen = recorded(tmp_path / "seen.txt")
    assert trained(tmp_path / "run", task) == first
    assert recorded(tmp_path / "seen.txt") == seen
    assert "is finished" in capsys.readouterr().out


def test_a_run_without_a_checkpoint_begins_anew(tmp_path: Path) -> None:
    said = interrupted(tmp_path / "run", InterruptAt(0, 1), checkpoints=False)
    assert "begins anew" in said
    assert trained(tmp_path / "run", checkpoints=False).scores("last")["seen"] == 10


def test_metrics_of_steps_that_are_done_again_are_not_twice_there(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", trainer={"log_every_n_steps": 1})
    interrupted(tmp_path / "run", InterruptAt(1, 1, times=2), trainer={"log_every_n_steps": 1})
    run = trained(tmp_path / "run", trainer={"log_every_n_steps": 1})
    assert [line["step"] for line in run.metrics()] == [line["step"] for line in whole.metrics()]


def test_a_checkpoint_that_was_cut_short_is_named(tmp_path: Path) -> None:
    interrupted(tmp_path / "run", InterruptAt(0, 1))
    last = tmp_path / "run" / "checkpoints" / "last.ckpt"
    last.write_bytes(last.read_bytes()[:-2000])
    with pytest.raises(ps.DataError, match="last.ckpt: cannot be read"):
        trained(tmp_path / "run")


class Killed(BaseException):
    """Stands for a signal that nothing can catch."""


def killed_at(patch: pytest.MonkeyPatch, home: type, method: str, call: int) -> None:
    """Ends the process after so many calls of a method, each of which has done its work."""
    own, calls = getattr(home, method), iter(range(1, 10**6))

    def counted(*arguments: Any, **named: Any) -> None:
        own(*arguments, **named)
        if next(calls) == call:
            raise Killed

    patch.setattr(home, method, counted)


@pytest.mark.parametrize(("home", "method"), [(RunWriter, "log_metrics"), (WholeCheckpoints, "save_checkpoint")])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_the_lines_of_metrics_are_those_of_an_undisturbed_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: type, method: str, call: int
) -> None:
    whole = trained(tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        killed_at(patch, home, method, call)
        trained(tmp_path / "halves")
    assert trained(tmp_path / "halves").metrics() == whole.metrics()


@pytest.mark.parametrize("batch", [0, 1, 2, 3])
def test_a_step_that_is_logged_is_logged_once_when_it_is_the_last_before_ctrl_c(tmp_path: Path, batch: int) -> None:
    often = {"trainer": {"log_every_n_steps": 2}}
    whole = trained(tmp_path / "whole", **often)
    interrupted(tmp_path / "halves", InterruptAt(0, batch), **often)
    assert trained(tmp_path / "halves", **often).metrics() == whole.metrics()


def test_tensorboard_hides_what_was_logged_after_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        killed_at(patch, RunWriter, "log_metrics", 5)  # the second validation
        trained(tmp_path / "run", logger=None)
    run = trained(tmp_path / "run", logger=None)
    events = EventAccumulator(str(run.folder / "tensorboard"))
    events.Reload()
    steps = [event.step for event in events.Scalars("val_loss")]
    assert steps == [line["step"] - 1 for line in run.metrics() if "val_loss" in line]


def test_a_smaller_batch_after_too_little_memory_leaves_no_line_of_the_larger_one(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", Tiny(most_rows=2), data=(Shades(40), Shades(16, seed=1)), batch_size="auto")
    lines = [(line["step"], tuple(line)) for line in run.metrics()]
    assert len(lines) == len(set(lines))
