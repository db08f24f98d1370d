"""A Run is plain files: what is written is read again, also when the writer was killed in between."""

from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from full_disk import largest_file
from penstock.errors import DataError, OptionError
from penstock.runs.layout import plain
from penstock.runs.run import Run, as_run
from penstock.runs.writing import RunWriter
from penstock.storage.whole_files import write_whole

SETTINGS = {"data": {"path": "größe.pack"}, "train": {"epochs": 3, "batch_size": "auto", "betas": (0.9, 0.99)}}
GOAL = {"name": "accuracy", "larger_is_better": True}


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    made = RunWriter(tmp_path / "runs" / "pets")
    made.write_settings(SETTINGS, chosen={"train": {"batch_size": 64}, "goal": GOAL})
    return made


def test_settings_come_back_and_what_auto_became_stands_apart(writer: RunWriter) -> None:
    run = Run(writer.folder)
    assert run.settings == {
        "data": {"path": "größe.pack"},
        "train": {"epochs": 3, "batch_size": "auto", "betas": [0.9, 0.99]},
    }
    assert run.chosen["train"] == {"batch_size": 64}
    assert "größe.pack" in (writer.folder / "settings.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load((writer.folder / "settings.yaml").read_bytes())["chosen"]["train"] == {"batch_size": 64}


def test_metrics_come_back_in_order_and_numbers_that_are_not_finite_are_legal_json(writer: RunWriter) -> None:
    writer.log_metrics({"train_loss": np.float32(0.5)}, epoch=0, step=10)
    writer.log_metrics({"train_loss": math.nan, "rates": np.array([1, 2])}, epoch=0, step=20)
    lines = (writer.folder / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[1], parse_constant=pytest.fail) == {
        "epoch": 0,
        "step": 20,
        "train_loss": None,
        "rates": [1, 2],
    }
    first, second = Run(writer.folder).metrics()
    assert first == {"epoch": 0, "step": 10, "train_loss": 0.5}
    assert math.isnan(second["train_loss"])


@pytest.mark.parametrize(
    ("larger_is_better", "best_accuracy"), [(True, 0.9), (False, 0.2)], ids=["largest", "smallest"]
)
def test_the_best_scores_are_those_of_the_goal(writer: RunWriter, larger_is_better: bool, best_accuracy: float) -> None:
    writer.write_settings(SETTINGS, chosen={"goal": {"name": "accuracy", "larger_is_better": larger_is_better}})
    for epoch, accuracy in enumerate([0.5, 0.9, math.nan, 0.2, 0.7]):
        writer.log_metrics({"train_loss": 1.0, "learning_rate": 0.1}, epoch=epoch, step=9)
        writer.log_metrics({"val_loss": 1.0, "accuracy": accuracy}, epoch=epoch, step=10)
        writer.log_metrics({"lr-AdamW": 0.1}, epoch=epoch, step=10)
    run = Run(writer.folder)
    assert run.scores() == {"val_loss": 1.0, "accuracy": best_accuracy}
    assert run.scores("last") == {"val_loss": 1.0, "accuracy": 0.7}
    assert len(run.validations()) == 5


def test_a_run_without_a_validation_has_no_scores(writer: RunWriter) -> None:
    assert Run(writer.folder).scores() == {} == Run(writer.folder).scores("last")
    with pytest.raises(OptionError, match="which='first'"):
        Run(writer.folder).scores("first")  # type: ignore[arg-type]


def test_a_line_that_a_killed_process_began_is_left_out_and_does_not_swallow_the_next(writer: RunWriter) -> None:
    writer.log_metrics({"train_loss": 1.0}, epoch=0, step=1)
    with (writer.folder / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 0, "step": 2, "train_lo')
    assert len(Run(writer.folder).metrics()) == 1
    RunWriter(writer.folder).log_metrics({"train_loss": 0.5}, epoch=0, step=2)
    assert [line["train_loss"] for line in Run(writer.folder).metrics()] == [1.0, 0.5]


def test_a_damaged_line_is_said_by_file_and_line(writer: RunWriter) -> None:
    (writer.folder / "metrics.jsonl").write_text('{"step": 1}\n{"step"\n{"step": 3}\n')
    with pytest.raises(DataError, match=r"metrics.jsonl line 2: this cannot be read"):
        Run(writer.folder).metrics()


def test_going_on_from_an_older_checkpoint_forgets_what_came_after_it(writer: RunWriter) -> None:
    for step in (1, 2, 3):
        writer.log_metrics({"train_loss": math.inf if step == 1 else step}, epoch=0, step=step)
    writer.forget_metrics_after(2)
    assert [line["step"] for line in Run(writer.folder).metrics()] == [1, 2]
    json.loads((writer.folder / "metrics.jsonl").read_text().splitlines()[0], parse_constant=pytest.fail)


def test_facts_of_the_environment_are_added_to_those_that_are_there(writer: RunWriter) -> None:
    assert Run(writer.folder).environment == {}
    writer.write_environment({"cores": 2, "started": "now"})
    writer.write_environment({"outcome": "finished", "cores": 4})
    assert Run(writer.folder).environment == {"cores": 4, "started": "now", "outcome": "finished"}


def test_details_bad_samples_and_log_come_back(writer: RunWriter) -> None:
    run = Run(writer.folder)
    assert (run.details(), run.bad_samples(), run.worst(), run.feed(), run.log()) == ({}, [], [], [], "")
    writer.write_details({"confusion": np.eye(2, dtype=np.int64), "auroc": np.float64("nan")})
    writer.write_bad_samples([{"key": "a.jpg", "reason": "cut short"}])
    writer.say("ünter way")
    assert run.details() == {"confusion": [[1, 0], [0, 1]], "auroc": None}
    assert run.bad_samples() == [{"key": "a.jpg", "reason": "cut short"}]
    assert run.log() == "ünter way\n"


def test_the_worst_samples_have_their_own_picture_and_old_pictures_go(writer: RunWriter) -> None:
    writer.write_worst([{"key": "a", "loss": 3.0}, {"key": "b", "loss": 2.0}], [b"picture a", None])
    writer.write_worst([{"key": "c", "loss": 4.0}, {"key": "a", "loss": 3.0}], [b"picture c", b"picture a"])
    rows = Run(writer.folder).worst()
    pictures = [(writer.folder / row["thumbnail"]).read_bytes() for row in rows]
    assert pictures == [b"picture c", b"picture a"]
    assert len(list((writer.folder / "thumbs").iterdir())) == 2


def test_checkpoints_are_found_by_name(writer: RunWriter) -> None:
    run = Run(writer.folder)
    with pytest.raises(OptionError, match="has no best checkpoint; none is there"):
        run.checkpoint()
    (writer.checkpoints / "last.ckpt").touch()
    assert run.checkpoint("best") == run.checkpoint("last") == writer.checkpoints / "last.ckpt"
    (writer.checkpoints / "best-1.ckpt").touch()
    assert run.checkpoint("best").name == "best-1.ckpt"


def test_a_folder_that_is_no_run_is_refused_with_the_nearest_that_is(writer: RunWriter, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"this is not a Run.*Name one of the Runs in it, such as .*runs/pets"):
        Run(tmp_path / "runs")
    with pytest.raises(DataError, match="there is no such folder"):
        Run(tmp_path / "absent")
    with pytest.raises(DataError, match="it is a file"):
        Run(writer.folder / "settings.yaml")


def test_a_run_is_its_folder(writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(writer.folder)
    monkeypatch.chdir(writer.folder)
    assert Run(".") == run == as_run(run) == as_run(str(writer.folder)) and len({Run("."), run}) == 1
    assert Run(".").name == "pets" and Path(run) == writer.folder
    assert pickle.loads(pickle.dumps(run)) == run


def test_values_without_a_plain_form_are_refused() -> None:
    with pytest.raises(TypeError, match="object has no plain form"):
        plain({"a": object()})


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    write_whole(path, "old")
    with largest_file(1000), pytest.raises(OSError, match="too large"):
        write_whole(path, "n" * 5000)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["settings.yaml"]  # noqa: PTH208


def test_reading_and_writing_runs_loads_no_torch() -> None:
    code = (
        "import sys, penstock.runs.run, penstock.runs.writing; "
        "print([n for n in ('torch', 'numpy', 'pandas', 'pyarrow', 'lightning') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_time_of_a_resumed_run_is_that_of_all_its_sessions(writer: RunWriter) -> None:
    writer.write_outcome("interrupted", "noon", 10.04)
    before = Run(writer.folder).environment["seconds"]
    RunWriter(writer.folder).write_outcome("finished", "evening", 5.0)
    found = Run(writer.folder).environment
    assert (found["seconds"], found["outcome"], found["ended"]) == (before + 5, "finished", "evening")
