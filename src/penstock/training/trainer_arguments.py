"""Arguments of Lightning's Trainer among those of `ps.train`: found by name, and checked before anything is written."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import lightning.pytorch as lightning

from penstock.errors import RecipeError, nearest
from penstock.training.settings import option_names, settings_of

# Arguments that are options of ours, under another name: two of one meaning would not agree.
OUR_NAMES = {
    "max_epochs": "epochs",
    "num_nodes": "nodes",
    "enable_progress_bar": "progress",
    "enable_checkpointing": "checkpoints",
    "accumulate_grad_batches": "accumulate",
    "gradient_clip_val": "gradient_clip",
    "default_root_dir": "folder",
}


def trainer_names() -> list[str]:
    """The arguments that Lightning's Trainer has."""
    return [name for name in inspect.signature(lightning.Trainer.__init__).parameters if name != "self"]


def check_trainer(given: Mapping[str, Any]) -> None:
    """Refuse arguments that the Trainer does not have, with the nearest that it has."""
    names = trainer_names()
    for name in given:
        if name not in names:
            raise RecipeError(f"Lightning's Trainer has no argument {name!r}.{nearest(name, names)}")


def check_train_arguments(given: Mapping[str, Any]) -> None:
    """Refuse, among the Trainer's arguments of `ps.train`, what is an option of ours: a Run records it once."""
    check_trainer(given)
    ours = option_names()
    for name, value in given.items():
        if name in OUR_NAMES:
            raise RecipeError(
                f"trainer={{{name!r}: …}}: that is the option {OUR_NAMES[name]} here, and two of one meaning would not "
                f"agree. Pass {OUR_NAMES[name]}=… to train."
            )
        if name in ours and _is_ours(name, value):
            raise RecipeError(
                f"trainer={{{name!r}: {value!r}}}: {name} is an option of train, and the Run would record another "
                f"value. Pass {name}={value!r} to train."
            )


def _is_ours(name: str, value: Any) -> bool:
    """Whether our option of this name takes the value; Lightning takes objects too, and precisions that we don't."""
    try:
        settings_of({name: value})
    except RecipeError:
        return False
    return name != "strategy" or isinstance(value, str)


def divide_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our options, and arguments of the Trainer that were given beside them."""
    ours, names = option_names(), trainer_names()
    for name in options:
        if name in OUR_NAMES:
            raise RecipeError(f"{name} is an argument of Lightning's Trainer; here it is called {OUR_NAMES[name]}.")
        if name not in ours and name not in names:
            raise RecipeError(f"there is no option {name!r}.{nearest(name, [*ours, *names])}")
    own = {name: value for name, value in options.items() if name in ours}
    return own, {name: value for name, value in options.items() if name not in ours}


@contextmanager
def without_srun_hint() -> Iterator[None]:
    """Without Lightning's hint that srun was not used: a machine that has SLURM may well train without it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"The `srun` command is available on your system but is not used")
        yield
