"""The module in the hands of people who drive Lightning themselves."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

import penstock as ps
from training.small_trainings import same_weights
from training.tiny_task import Shades, Tiny, recorded

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
OPTIONS: dict[str, Any] = {"batch_size": 8, "learning_rate": 0.01, "workers": 1}


def quiet_trainer(epochs: int = 2, **arguments: Any) -> lightning.Trainer:
    """A trainer of the user's own."""
    return lightning.Trainer(
        **{
            "max_epochs": epochs,
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "accelerator": "cpu",
            **arguments,
        }
    )


def weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def test_fit_needs_no_loaders_and_can_be_called_again_and_again() -> None:
    module = ps.module_for(Tiny(), Shades(50), **OPTIONS)
    found = []
    for _ in range(3):
        quiet_trainer(1).fit(module)
        found.append(weights(module))
    assert not same_weights(found[0], found[1]) and not same_weights(found[1], found[2])


def test_a_module_without_data_takes_loaders() -> None:
    module = ps.module_for(Tiny(), **{name: value for name, value in OPTIONS.items() if name != "workers"})
    loader = ps.Flow(Shades(32), 7, workers=1).shuffle().batch(8).to_torch()
    before = weights(module)
    quiet_trainer(limit_val_batches=0).fit(module, loader)
    assert not same_weights(before, weights(module))
    quiet_trainer().fit(module, loader, ps.Flow(Shades(8), workers=1).batch(8).to_torch())
    assert module.last_evaluation is not None and module.last_evaluation.values["seen"] == 8


def test_it_is_pickled_and_copied_before_and_after_training() -> None:
    module = ps.module_for(Tiny(), Shades(50), **OPTIONS)
    before = [copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    quiet_trainer().fit(module)
    after = [copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    assert all(same_weights(weights(one), weights(module)) for one in after)
    for one in before:  # what was copied before trains to the same
        quiet_trainer().fit(one)
        assert same_weights(weights(one), weights(module))
    for one in (*after, module):  # and what was trained trains on, with nothing of the old trainer
        quiet_trainer(1).fit(one)


def test_the_generator_of_the_user_decides_nothing() -> None:
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        module = ps.module_for(Tiny(), Shades(50), **OPTIONS)
        torch.rand(seed)
        quiet_trainer(1).fit(module)
        found.append(weights(module))
    assert same_weights(*found)


def test_trainer_for_gives_the_trainer_of_ps_train(tmp_path: Path) -> None:
    options = ps.TrainOptions(epochs=2, accumulate=2, gradient_clip=1.0, early_stopping=3)
    task = Tiny()
    trainer = ps.trainer_for(options, folder=tmp_path, goal=task.goal, logger=False, enable_progress_bar=False)
    assert trainer.max_epochs == 2 and trainer.accumulate_grad_batches == 2 and trainer.gradient_clip_val == 1.0
    trainer.fit(ps.module_for(task, Shades(50), **OPTIONS))
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"best.ckpt", "last.ckpt"}


def test_trainer_for_takes_nothing_else() -> None:
    with pytest.raises(ps.OptionError, match="not str"):
        ps.trainer_for("pets.yaml")


def test_an_own_checkpoint_by_accuracy_resumes(tmp_path: Path) -> None:
    def fitted(folder: str, **resumed: Any) -> dict[str, torch.Tensor]:
        keeps = ModelCheckpoint(tmp_path / folder, monitor="accuracy", mode="max", save_top_k=-1, filename="{epoch}")
        module = ps.module_for(Tiny(), Shades(50), epochs=3, **OPTIONS)
        quiet_trainer(3, callbacks=[keeps], enable_checkpointing=True).fit(module, **resumed)
        return weights(module)

    whole = fitted("whole")
    with pytest.warns(UserWarning, match="dirpath has changed"):
        again = fitted("again", ckpt_path=tmp_path / "whole" / "epoch=1.ckpt", weights_only=True)
    assert same_weights(whole, again)


def test_validation_uses_no_augmentation(tmp_path: Path) -> None:
    module = ps.module_for(Tiny(record=str(tmp_path / "seen.txt")), Shades(50), **OPTIONS)
    quiet_trainer(1).fit(module)
    seen = [int(word) for line in recorded(tmp_path / "seen.txt") for word in line.split()[1:]]
    assert sorted(seen) == list(range(40))  # of training alone, each once


@pytest.mark.parametrize(
    ("freeze", "still"), [("backbone", {"body"}), (1, {"body"}), ("body", {"body"}), (None, set())]
)
def test_frozen_stages_keep_weights_and_statistics(freeze: Any, still: set[str]) -> None:
    module = ps.module_for(Tiny(), Shades(50), freeze=freeze, **OPTIONS)
    before = weights(module.network)
    quiet_trainer(1).fit(module)
    after = weights(module.network)
    changed = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"body", "head"} - still


def test_freezing_too_much_or_nothing_that_is_there_is_an_error() -> None:
    with pytest.raises(ps.OptionError, match="body, head. Did you mean 'body'"):
        ps.module_for(Tiny(), Shades(), freeze="bodi")
    with pytest.raises(ps.OptionError, match="a number below 2"):
        ps.module_for(Tiny(), Shades(), freeze=2)


def test_gradients_that_are_added_up_are_those_of_one_large_batch() -> None:
    task = Tiny(dropout=0.0)
    found = []
    for batch_size, accumulate in ((20, 1), (5, 4)):
        options = {**OPTIONS, "batch_size": batch_size, "accumulate": accumulate, "optimizer": "sgd"}
        module = ps.module_for(task, (Shades(50), None), schedule="constant", **options)
        module.network.body[1] = torch.nn.Identity()  # statistics of a batch are of what is on the device
        quiet_trainer(2, accumulate_grad_batches=accumulate, limit_val_batches=0).fit(module)
        found.append(weights(module))
    for name in found[0]:  # also the last step of an epoch, which has 10 samples and not 20
        torch.testing.assert_close(found[0][name], found[1][name], atol=1e-6, rtol=1e-5)


def test_a_compiled_network_has_the_same_names_in_its_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda call, **options: compiled.append(call) or call)
    module = ps.module_for(Tiny(), Shades(50), compile=True, **OPTIONS)
    names = set(module.state_dict())
    quiet_trainer(1).fit(module)
    assert compiled and set(module.state_dict()) == names


def test_a_last_batch_of_one_sample_is_learned_from_with_the_statistics_there_are() -> None:
    module = ps.module_for(Tiny(), (Shades(17), None), **OPTIONS)
    quiet_trainer(1, limit_val_batches=0).fit(module)
    assert int(module.network.body[1].num_batches_tracked) == 2 and module.global_step == 3
    assert all(layer.training for layer in module.network.modules())


def test_a_plateau_is_part_of_the_checkpoint() -> None:
    module = ps.module_for(Tiny(), Shades(50), schedule="plateau", **OPTIONS)
    module._plateau.factor, module._plateau.best = 0.1, 0.75
    checkpoint: dict[str, Any] = {}
    module.on_save_checkpoint(checkpoint)
    other = ps.module_for(Tiny(), Shades(50), schedule="plateau", **OPTIONS)
    other.on_load_checkpoint(checkpoint)
    assert other._plateau == module._plateau


def test_a_module_is_loaded_from_a_checkpoint_of_lightning(tmp_path: Path) -> None:
    task = ps.Classification(("dark", "bright"), backbone="tiny", size=32)
    own = ps.module_for(task, Shades(50), **OPTIONS)
    trainer = quiet_trainer(1)
    trainer.fit(own)
    trainer.save_checkpoint(tmp_path / "classes.ckpt")
    loaded = type(own).load_from_checkpoint(tmp_path / "classes.ckpt", map_location="cpu")
    assert same_weights(weights(loaded), weights(own))
    assert (loaded.task, loaded.options, loaded.learning_rate) == (own.task, own.options, own.learning_rate)
    loader = own.task.evaluation_flow(Shades(8), workers=0).batch(8).to_torch()
    found = [quiet_trainer().validate(one, loader, verbose=False)[0] for one in (own, loaded)]
    assert found[0] == found[1]
    with pytest.raises(ps.OptionError, match="has no option 'task'"):
        type(own).load_from_checkpoint(tmp_path / "classes.ckpt", task=task)


class Hyperparameters(CSVLogger):
    """Keeps what it gets."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.got: dict[str, Any] = {}

    def log_hyperparams(self, params: Any = None) -> None:
        self.got.update(params)


def test_loggers_of_an_own_trainer_get_the_settings(tmp_path: Path) -> None:
    logger = Hyperparameters(tmp_path)
    quiet_trainer(1, logger=logger, log_every_n_steps=1).fit(ps.module_for(Tiny(), Shades(50), **OPTIONS))
    assert (logger.got["task.kind"], logger.got["task.noise"], logger.got["train.learning_rate"]) == ("tiny", 0.1, 0.01)


@pytest.mark.parametrize(
    "task",
    [
        ps.Classification(("a", "b"), backbone="tiny"),
        ps.Detection(("a",), backbone="tiny", anchor_scale=2.83),
        ps.Behaviour(("a", "b"), size="tiny", normalize="imagenet").stage("frames"),
    ],
)
def test_settings_of_every_task_are_flat_and_plain(task: Any) -> None:
    found = dict(ps.module_for(task).hparams)
    assert found["task.kind"] == task.kind and found["train.epochs"] == 10 and len(found) > 30
    assert all(value is None or isinstance(value, (str, int, float, list)) for value in found.values())


@pytest.mark.parametrize(("wrong", "said"), [
    ({"limit_train_batches": 1}, "limit_train_batches is an argument of Lightning's Trainer: pass it to yours"),
    ({"max_epochs": 3}, "here it is called epochs"),
    ({"epoch": 3}, "Did you mean 'epochs'?"),
])  # fmt: skip
def test_arguments_that_are_not_of_a_module_are_told_where_they_belong(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ps.OptionError, match=re.escape(said)):
        ps.module_for(Tiny(), Shades(50), **wrong)
