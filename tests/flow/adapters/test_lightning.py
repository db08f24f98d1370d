"""Lightning trains from a flow, saves where it is, and goes on with exactly the next batch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.callbacks import ModelCheckpoint
from tests.flow.adapters.lightning_runs import BATCH, SAMPLES, StopAfter, run, train_loader
from tests.flow.small_flows import indices, numbers

REPOSITORY = Path(__file__).resolve().parents[3]
STEPS = -(-SAMPLES // BATCH)
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),  # advice on workers, logging and shuffling
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def epochs(count: int) -> list[list[int]]:
    """The batches of the first epochs, one after another."""
    flow = numbers(SAMPLES).shuffle().batch(BATCH)
    return [row for epoch in range(count) for row in indices(flow.epoch(epoch))]


def checkpoints(folder: Path, **options: Any) -> ModelCheckpoint:
    return ModelCheckpoint(folder, filename="{step}", save_top_k=-1, auto_insert_metric_name=False, **options)


def validation() -> Any:
    return numbers(5).batch(2).to_torch()


def test_epochs_follow_one_another_and_validation_sees_everything(tmp_path: Path) -> None:
    module = run(tmp_path, validation=validation(), max_epochs=3)
    assert module.seen == epochs(3)
    assert module.validated[2:] == [[0, 1], [2, 3], [4]] * 3  # the first two are the sanity check


@pytest.mark.parametrize("step", [1, STEPS - 1, STEPS, STEPS + 1, 2 * STEPS + 3])
def test_a_run_goes_on_after_any_step(tmp_path: Path, step: int) -> None:
    saved = run(tmp_path, callbacks=[checkpoints(tmp_path, every_n_train_steps=step), StopAfter(step)], max_epochs=3)
    resumed = run(tmp_path, resume=tmp_path / f"{step}.ckpt", max_epochs=3)
    assert saved.seen == epochs(3)[:step]
    assert resumed.seen == epochs(3)[step:]


@pytest.mark.slow
def test_a_run_goes_on_in_a_new_process(tmp_path: Path) -> None:
    run(tmp_path, callbacks=[checkpoints(tmp_path, every_n_train_steps=4), StopAfter(4)], max_epochs=2)
    command = [sys.executable, "-m", "tests.flow.adapters.lightning_runs", str(tmp_path), str(tmp_path / "4.ckpt")]
    result = subprocess.run(
        [*command, json.dumps({"max_epochs": 2})],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
        env={"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}", "PATH": ""},
    )
    assert json.loads(result.stdout.splitlines()[-1]) == epochs(2)[4:]


def test_a_run_goes_on_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    saving = checkpoints(tmp_path, every_n_epochs=1, save_on_train_epoch_end=True)
    assert run(tmp_path, callbacks=[saving], max_epochs=2).seen == epochs(2)
    assert run(tmp_path, resume=tmp_path / f"{2 * STEPS}.ckpt", max_epochs=4).seen == epochs(4)[2 * STEPS :]


@pytest.mark.parametrize("interval", [0.5, 1.0])
def test_a_run_goes_on_after_validation(tmp_path: Path, interval: float) -> None:
    saving = checkpoints(tmp_path, save_on_train_epoch_end=False)
    options: dict[str, Any] = {"val_check_interval": interval, "max_epochs": 3}
    whole = run(tmp_path, validation=validation(), callbacks=[saving], **options)
    assert whole.seen == epochs(3)
    saved = sorted(int(path.stem) for path in tmp_path.glob("*.ckpt"))
    assert len(saved) == 3 / interval
    for step in saved[:-1]:
        resumed = run(tmp_path, validation=validation(), resume=tmp_path / f"{step}.ckpt", **options)
        assert resumed.seen == epochs(3)[step:], step


@pytest.mark.parametrize("step", [1, 3, 4])
@pytest.mark.parametrize("validates", [True, False])
def test_a_run_with_limited_epochs_goes_on(tmp_path: Path, step: int, validates: bool) -> None:
    flow = numbers(SAMPLES).shuffle().batch(BATCH)
    expected = [row for epoch in range(3) for row in indices(flow.epoch(epoch))[:3]]
    options: dict[str, Any] = {"limit_train_batches": 3, "max_epochs": 3}
    options |= {"validation": validation()} if validates else {}
    run(tmp_path, callbacks=[checkpoints(tmp_path, every_n_train_steps=step), StopAfter(step)], **options)
    assert run(tmp_path, resume=tmp_path / f"{step}.ckpt", **options).seen == expected[step:]


def test_a_limited_epoch_goes_on_after_its_validation(tmp_path: Path) -> None:
    flow = numbers(SAMPLES).shuffle().batch(BATCH)
    expected = [row for epoch in range(3) for row in indices(flow.epoch(epoch))[:3]]
    saving = checkpoints(tmp_path, save_on_train_epoch_end=False)
    options: dict[str, Any] = {"limit_train_batches": 3, "max_epochs": 3}
    assert run(tmp_path, validation=validation(), callbacks=[saving], **options).seen == expected
    for step in (3, 6):
        again = run(tmp_path, validation=validation(), resume=tmp_path / f"{step}.ckpt", **options)
        assert again.seen == expected[step:]


@pytest.mark.parametrize("limit", [None, 4])
def test_a_flow_without_end_is_trained_with_what_comes_next(tmp_path: Path, limit: int | None) -> None:
    endless = numbers(SAMPLES).shuffle().repeat().batch(BATCH)
    expected = indices(batch for batch, _ in zip(endless, range(12), strict=False))[:12]
    options: dict[str, Any] = {"max_steps": 12, "max_epochs": -1}
    options |= {} if limit is None else {"limit_train_batches": limit}
    stopping = [checkpoints(tmp_path, every_n_train_steps=6), StopAfter(6)]
    assert run(tmp_path, loader=train_loader(True), callbacks=stopping, **options).seen == expected[:6]
    resumed = run(tmp_path, loader=train_loader(True), resume=tmp_path / "6.ckpt", **options)
    assert resumed.seen == expected[6:]


def test_nothing_is_put_around_the_loader(tmp_path: Path) -> None:
    import lightning

    loader = train_loader()
    trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    connector = trainer._data_connector
    from lightning.pytorch.trainer.states import RunningStage

    for stage in (RunningStage.TRAINING, RunningStage.VALIDATING, RunningStage.PREDICTING):
        assert connector._prepare_dataloader(loader, shuffle=True, mode=stage) is loader
