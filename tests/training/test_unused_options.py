"""Options that would do nothing are refused with the reason, or named where a training begins; all others are read."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import penstock as ps
from penstock.flow.plans import FlowOptions
from penstock.formats.exporting.options import ExportOptions
from penstock.packing.options import PackOptions
from penstock.prediction.answering import AnswerOptions
from penstock.prediction.behaviour.options import EthogramOptions
from penstock.prediction.box_files import BoxOptions
from penstock.prediction.boxes.options import FindingOptions
from penstock.recipes.sections import OPTIONS
from penstock.training.options import TrainOptions
from shape_making import SHAPES, Shapes
from training.small_trainings import trained
from training.test_staged import TASK, videos
from training.tiny_task import Shades, Tiny

SOURCES = Path(ps.__file__).parent
CHECKED = [
    *OPTIONS.values(), ps.Classification, ps.Detection, ps.Behaviour,
    FlowOptions, PackOptions, ExportOptions, AnswerOptions, FindingOptions, EthogramOptions, BoxOptions,
]  # fmt: skip


# Every option has a reader


def attributes_read(path: Path) -> Iterator[tuple[str, bool]]:
    """The attributes that a file reads by name, and whether that is in a check of the values of a class."""
    tree = ast.parse(path.read_text())
    checks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and re.match(r"__post_init__|_?check", node.name)
    ]
    checking = {id(inner) for node in checks for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr, id(node) in checking
        if isinstance(node, ast.Tuple):  # names of options that are handed on by getattr
            for one in node.elts:
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield one.value, id(node) in checking


@pytest.fixture(scope="module")
def names_read() -> set[str]:
    """What any file reads to do something with it."""
    return {name for path in SOURCES.rglob("*.py") for name, is_check in attributes_read(path) if not is_check}


@pytest.mark.parametrize("options", CHECKED, ids=lambda options: options.__name__)
def test_every_option_is_read_by_some_code_that_is_not_its_check(options: Any, names_read: set[str]) -> None:
    names = {field.name for field in dataclasses.fields(options) if field.init}
    assert names <= names_read, f"nothing reads {sorted(names - names_read)}"


def test_an_option_that_only_its_check_reads_is_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "class A:\n  def __post_init__(self):\n    assert self.idle > 0\n  def use(self):\n    return self.busy\n"
    )
    assert dict(attributes_read(path)) == {"idle": True, "busy": False}


@pytest.mark.parametrize(
    "task", [ps.Classification(SHAPES, backbone="tiny", size=32), TASK], ids=lambda task: task.kind
)
def test_a_training_reads_every_option_of_training_data_and_feed(
    task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    for kind in OPTIONS.values():
        monkeypatch.setattr(kind, "__getattribute__", _noting(seen), raising=False)
    data: Any = Shapes(24) if task.kind == "classification" else (videos("ab"), videos("c"))
    own = {"optimizer": "sgd", "on_bad_sample": "substitute", "max_bad": 3, "epochs": 1, "batch_size": 8}
    ps.train(task, data, folder=tmp_path / "run", logger=False, progress=False, workers=0, **own)
    monkeypatch.undo()
    names = {field.name for kind in OPTIONS.values() for field in dataclasses.fields(kind)}
    known = {"path", "options", "split_seed"}  # of data that are opened by their path, and split
    known |= {"train", "split"} if isinstance(data, tuple) else set()
    assert names - seen <= known, sorted(names - seen - known)


def _noting(seen: set[str]) -> Any:
    def noting(self: Any, name: str) -> Any:
        import sys

        caller = sys._getframe(1)
        is_copy = caller.f_code.co_filename.endswith("dataclasses.py") or caller.f_code.co_name in (
            "__post_init__", "refuse_unused",
        )  # fmt: skip
        if not is_copy:
            seen.add(name)
        return object.__getattribute__(self, name)

    return noting


# Arguments of Lightning's Trainer


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_epochs": 5}, "that is the option epochs here.*Pass epochs="),
        ({"enable_progress_bar": True}, "the option progress here"),
        ({"accumulate_grad_batches": 2}, "the option accumulate here"),
        ({"devices": 2}, r"devices is an option of train.*Pass devices=2 to train"),
        ({"precision": "bf16"}, "Pass precision='bf16' to train"),
        ({"fast_dev_run": True}, "Pass fast_dev_run=True to train"),
    ],
)
def test_an_argument_of_the_trainer_that_is_an_option_of_ours_is_refused(
    arguments: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ps.OptionError, match=words):
        trained(tmp_path / "run", trainer=arguments)
    assert not (tmp_path / "run").exists()


def test_arguments_of_the_trainer_are_recorded_in_the_run(tmp_path: Path) -> None:
    trained(tmp_path / "run", trainer={"limit_train_batches": 2, "precision": "bf16-mixed"}, limit_val_batches=1)
    settings = yaml.safe_load((tmp_path / "run" / "settings.yaml").read_text())
    expected = {"limit_train_batches": 2, "precision": "bf16-mixed", "limit_val_batches": 1}
    assert settings["chosen"]["trainer"] == expected
    assert settings["chosen"]["train"]["precision"] == "bf16-mixed"


def test_an_argument_of_the_trainer_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match="limit_train_batches is given twice"):
        trained(tmp_path / "run", trainer={"limit_train_batches": 2}, limit_train_batches=1)


# Options that others switch off


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"momentum": 0.5}, "momentum=0.5 would have no effect: adamw has none"),
        ({"checkpoints": False, "save_top_k": 3}, "save_top_k=3 would have no effect: checkpoints are off"),
        ({"checkpoints": False, "monitor": "val_loss"}, "monitor='val_loss' would have no effect"),
        ({"max_bad": 3}, "max_bad=3 would have no effect: with on_bad_sample='raise'"),
        ({"preload": "device", "cache": "memory"}, "cache='memory' would have no effect"),
        ({"preload": "device", "prefetch": 2}, "prefetch=2 would have no effect"),
        ({"preload": "device", "transform": lambda sample: sample}, "transform would have no effect"),
        ({"options": {"units": "frames"}}, "options=.* would have no effect: the data are open already"),
    ],
)
def test_an_option_that_another_switches_off_is_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match=words):
        trained(tmp_path / "run", **options)


@pytest.mark.parametrize("name", ["train", "val", "split", "split_seed"])
def test_names_of_splits_are_refused_for_a_pair(name: str, tmp_path: Path) -> None:
    value = {"train": "all", "val": "test", "split": "train=0.5,val=0.5", "split_seed": 3}[name]
    with pytest.raises(ps.OptionError, match=f"{name}=.*would have no effect: the data are a pair"):
        trained(tmp_path / "run", data=(Shades(8), Shades(8)), **{name: value})


def test_a_seed_of_splits_is_refused_where_data_have_their_own(tmp_path: Path) -> None:
    pack = ps.pack(Shades(20), tmp_path / "shades.pack")
    with pytest.raises(ps.OptionError, match="split_seed=3 would have no effect: the data have their own splits"):
        trained(tmp_path / "run", data=pack, split_seed=3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checkpoints": False}, "checkpoints are off, and each stage begins with that of the one before"),
        ({"preload": "device"}, "a behaviour is learned from clips"),
        ({"transform": lambda sample: sample}, "transform is for tasks on single images"),
    ],
)
def test_a_training_in_stages_refuses_at_once_what_a_later_stage_cannot_do(
    options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ps.OptionError, match=words):
        ps.train(TASK, (videos("ab"), videos("c")), folder=tmp_path / "run", progress=False, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folder": "runs/a"}, "folder='runs/a' would have no effect: a module writes no Run"),
        ({"watch": True}, "watch=True would have no effect"),
        ({"precision": "bf16"}, "a module leaves it to its Trainer"),
        ({"early_stopping": 2}, "a module leaves it to its Trainer"),
    ],
)
@pytest.mark.parametrize("data", [None, Shades(8)], ids=["without data", "with data"])
def test_a_module_refuses_options_that_it_does_nothing_with(data: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ps.OptionError, match=words):
        ps.module_for(Tiny(), data, **options)


@pytest.mark.parametrize("options", [{"workers": 2}, {"split_seed": 2}, {"transform": lambda sample: sample}])
def test_a_module_without_data_refuses_options_on_data(options: dict[str, Any]) -> None:
    with pytest.raises(ps.OptionError, match="would have no effect: the module has no data"):
        ps.module_for(Tiny(), **options)


def test_settings_of_augmentation_are_named_when_it_is_off() -> None:
    still = ps.Classification(SHAPES, backbone="tiny", size=32, augmentation=False, flip=0.2, hue=0.1)
    assert still.remarks() == [
        "flip=0.2 has no effect: augmentation is off.",
        "hue=0.1 has no effect: augmentation is off.",
    ]
    boxes = ps.Detection(["Tree"], backbone="tiny", augmentation=False, turn=0.1)
    assert boxes.remarks() == ["turn=0.1 has no effect: augmentation is off."]
    rotated = ps.Behaviour(["rear"], augmentation=False, rotation=30.0, min_bout_frames=(3,), min_bout_percentile=5.0)
    assert rotated.remarks() == [
        "rotation=30.0 has no effect: augmentation is off.",
        "min_bout_percentile=5.0 has no effect: min_bout_frames says how short a bout may be.",
    ]


def test_what_preloading_leaves_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32)
    trained(tmp_path / "run", task, Shapes(24), preload="device", epochs=1)
    assert "crop_scale, flip and vertical_flip have no effect" in capsys.readouterr().err


def test_a_threshold_is_refused_where_a_sample_has_one_class() -> None:
    with pytest.raises(ps.OptionError, match=r"threshold=0.7 would have no effect.*multi_label=True"):
        ps.Classification(threshold=0.7)


# Other verbs


def test_a_flow_refuses_a_number_of_bad_samples_that_it_would_never_count() -> None:
    with pytest.raises(ps.OptionError, match=r"max_bad=3 would have no effect.*on_bad_sample='substitute'"):
        ps.Flow(Shades(8), max_bad=3)


def test_defaults_are_never_refused() -> None:
    assert TrainOptions(momentum=0.9, save_top_k=1, checkpoints=False) == TrainOptions(checkpoints=False)
