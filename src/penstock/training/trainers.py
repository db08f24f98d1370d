"""Lightning's Trainer from our options, and the module that it drives: for `ps.train`, and for own loops."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import lightning.pytorch as lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from penstock.errors import OptionError, nearest, refuse_unused
from penstock.samples import Store
from penstock.storage.locations import refuses_urls
from penstock.tasks.task import Goal, Task
from penstock.tasks.weights import Taken
from penstock.training.checkpoints import KeepCheckpoints, WholeCheckpoints
from penstock.training.data_splits import TrainingData, training_data
from penstock.training.feeds import Feed
from penstock.training.module import Module
from penstock.training.optimizers import learning_rate
from penstock.training.options import AUTO, FeedOptions, Settings, TrainOptions, option_names, settings_of
from penstock.training.resources import chosen_batch_size, chosen_precision, need_accelerator

# Arguments of Lightning's Trainer among those of `ps.train`: found by name, and checked before anything is written.


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
            raise OptionError(f"Lightning's Trainer has no argument {name!r}.{nearest(name, names)}")


def check_train_arguments(given: Mapping[str, Any]) -> None:
    """Refuse, among the Trainer's arguments of `ps.train`, what is an option of ours: a Run records it once."""
    check_trainer(given)
    ours = option_names()
    for name, value in given.items():
        if name in OUR_NAMES:
            raise OptionError(
                f"trainer={{{name!r}: …}}: that is the option {OUR_NAMES[name]} here, and two of one meaning would not "
                f"agree. Pass {OUR_NAMES[name]}=… to train."
            )
        if name in ours and _is_ours(name, value):
            raise OptionError(
                f"trainer={{{name!r}: {value!r}}}: {name} is an option of train, and the Run would record another "
                f"value. Pass {name}={value!r} to train."
            )


def _is_ours(name: str, value: Any) -> bool:
    """Whether our option of this name takes the value; Lightning takes objects too, and precisions that we don't."""
    try:
        settings_of({name: value})
    except OptionError:
        return False
    return name != "strategy" or isinstance(value, str)


def divide_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our options, and arguments of the Trainer that were given beside them."""
    ours, names = option_names(), trainer_names()
    for name in options:
        if name in OUR_NAMES:
            raise OptionError(f"{name} is an argument of Lightning's Trainer; here it is called {OUR_NAMES[name]}.")
        if name not in ours and name not in names:
            raise OptionError(f"there is no option {name!r}.{nearest(name, [*ours, *names])}")
    own = {name: value for name, value in options.items() if name in ours}
    return own, {name: value for name, value in options.items() if name not in ours}


@contextmanager
def without_srun_hint() -> Iterator[None]:
    """Without Lightning's hint that srun was not used: a machine that has SLURM may well train without it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"The `srun` command is available on your system but is not used")
        yield


LOG_STEPS = 50


@refuses_urls()
def trainer_for(
    recipe: Any = None,
    *,
    folder: str | Path | None = None,
    goal: Goal | None = None,
    logger: Any = None,
    callbacks: Sequence[Callback] | Callback | None = None,
    **trainer: Any,
) -> lightning.Trainer:
    """The Trainer for a recipe or TrainOptions, to drive `trainer.fit(module)` yourself.

    With a `folder`, checkpoints and TensorBoard's files go there. `goal` is what the best checkpoint and early
    stopping are chosen by; a recipe has one. `trainer` are arguments of Lightning's Trainer, which have the last word.
    """
    check_trainer(trainer)
    options = train_options(recipe)
    goal = goal_of(options, goal or _goal_in(recipe))
    own = [] if folder is None or not options.checkpoints else [_keeper(Path(folder), goal, options)]
    early = [] if options.early_stopping is None else [_early_stopping(goal, options)]
    if logger is None:
        logger = False if folder is None else tensorboard(folder)
    given = {**_arguments(options), "logger": logger, **trainer}
    given["callbacks"] = [*own, *early, *as_list(callbacks)]
    if not own:
        given.setdefault("enable_checkpointing", any(_is_checkpoint(one) for one in given["callbacks"]))
    given["plugins"] = [*as_list(given.get("plugins")), WholeCheckpoints()]
    need_accelerator(given["accelerator"])
    try:
        with without_srun_hint():
            return lightning.Trainer(**given)
    except (MisconfigurationException, TypeError, ValueError) as error:  # such as more devices than there are
        raise OptionError(f"Lightning does not take these settings: {error}") from error


def train_options(recipe: Any) -> TrainOptions:
    """The section `train` of a recipe, or the options themselves."""
    if recipe is None:
        return TrainOptions()
    options = recipe if isinstance(recipe, TrainOptions) else getattr(recipe, "train", None)
    if not isinstance(options, TrainOptions):
        raise OptionError(f"trainer_for takes a recipe or TrainOptions, not {type(recipe).__name__}.")
    return options


def _goal_in(recipe: Any) -> Goal | None:
    task = getattr(recipe, "task", None)
    return task.goal if task is not None else None


def goal_of(options: TrainOptions, goal: Goal | None) -> Goal:
    """What the best checkpoint is chosen by: the task's own score, or a logged name; losses are better when smaller."""
    if options.monitor == AUTO:
        return goal or Goal("val_loss", larger_is_better=False)
    if goal is not None and options.monitor == goal.name:
        return goal
    return Goal(options.monitor, larger_is_better=not options.monitor.endswith("loss"))


def _keeper(folder: Path, goal: Goal, options: TrainOptions) -> KeepCheckpoints:
    return KeepCheckpoints(folder / "checkpoints", goal, save_top_k=options.save_top_k)


def _early_stopping(goal: Goal, options: TrainOptions) -> EarlyStopping:
    mode = "max" if goal.larger_is_better else "min"
    patience = options.early_stopping or 0
    # After validation and the means of training are known, whichever of them is the goal.
    return EarlyStopping(goal.name, patience=patience, mode=mode, check_on_train_epoch_end=True)


def _is_checkpoint(callback: Callback) -> bool:
    return isinstance(callback, lightning.callbacks.Checkpoint)


def tensorboard(folder: str | Path, *, purge_step: int = 0) -> Any:
    """Files for TensorBoard, in a folder of their own; events there from `purge_step` on are hidden, if it is not 0."""
    from lightning.pytorch.loggers import TensorBoardLogger

    hidden = {"purge_step": purge_step} if purge_step else {}
    return TensorBoardLogger(str(folder), name="tensorboard", version="", **hidden)


def _arguments(options: TrainOptions) -> dict[str, Any]:
    """Our options by the names that Lightning has for them."""
    return {
        "max_epochs": options.epochs,
        "accelerator": options.accelerator,
        "devices": list(options.devices) if isinstance(options.devices, tuple) else options.devices,
        "num_nodes": options.nodes,
        "strategy": options.strategy,
        "precision": chosen_precision(options, device_type(options)),
        "accumulate_grad_batches": options.accumulate,
        "gradient_clip_val": options.gradient_clip,
        "fast_dev_run": options.fast_dev_run,
        "log_every_n_steps": LOG_STEPS,
        "num_sanity_val_steps": 0,  # data are checked before, and the first score comes at the end of an epoch
        "enable_model_summary": False,
    }


def device_type(options: TrainOptions) -> str:
    """Where the network will be, as far as `auto` must know it before the Trainer does."""
    wants_cuda = options.accelerator in (AUTO, "gpu", "cuda")
    return "cuda" if wants_cuda and torch.cuda.is_available() else "cpu"


def module_for(task: Task, data: Any = None, *, transform: Callable[..., Any] | None = None, **options: Any) -> Module:
    """The LightningModule of a task; with `data`, `trainer.fit(module)` needs no loaders.

    `options` are those of TrainOptions, DataOptions and FeedOptions, by name. Weights that the task begins with are
    loaded, or downloaded if it says so.
    """
    if hasattr(task, "stage_names"):
        names = ", ".join(task.stage_names)
        raise OptionError(
            f"{type(task).__name__} is trained in stages ({names}), each with a module of its own: "
            'ps.module_for(task.stage("frames"), data). ps.train runs them one after another.'
        )
    own, others = divide_options(options)
    if others:
        raise OptionError(f"{next(iter(others))} is an argument of Lightning's Trainer: pass it to yours.")
    settings = settings_of(own)
    _refuse_others_options(settings, data, transform)
    if data is None:
        rate = learning_rate(settings.train, chosen_batch_size(settings.train, 2**62, device_type(settings.train)))
        begun = begun_network(task, settings.train.seed)
        return Module(task, begun.network, settings.train, learning_rate=rate, taken=begun.taken)
    parts = training_data(data, settings.data, settings.feed.on_bad_sample)
    task = fitted_task(task, parts)
    size = chosen_batch_size(settings.train, len(parts.train), device_type(settings.train))
    return module_of(task, settings.train, feed_of(task, parts, size, settings.train, settings.feed, transform))


# Options that the Trainer acts on, or the Run: a module by itself does nothing with them.
_OF_TRAINER = (
    *("gradient_clip", "precision", "early_stopping", "checkpoints", "monitor", "save_top_k"),
    *("devices", "nodes", "strategy", "fast_dev_run"),
)


def _refuse_others_options(settings: Settings, data: Any, transform: Any) -> None:
    """Refuse options that a module does nothing with."""
    for name in _OF_TRAINER:
        refuse_unused(settings.train, name, "a module leaves it to its Trainer: ps.trainer_for, or your own.")
    for one in fields(settings.run):
        refuse_unused(settings.run, one.name, "a module writes no Run. Leave it out, or use ps.train.")
    refuse_unused(settings.data, "path", "a module gets its data by data=…")
    if data is None:
        for section in (settings.data, settings.feed):
            for one in fields(section):
                refuse_unused(section, one.name, "the module has no data. Pass data=… too, or leave it out.")
        if transform is not None:
            raise OptionError("transform would have no effect: the module has no data. Pass data=… too.")


def fitted_task(task: Task, data: TrainingData) -> Task:
    """The task with what it takes from the training data; data that do not fit are an error."""
    fitted_to = getattr(task, "fitted_to", None)
    fitted: Task = task if fitted_to is None else fitted_to(data.train)
    _check(fitted, data.train, "training")
    if data.val is not None:
        _check(fitted, data.val, "evaluation")
    return fitted


def _check(task: Task, source: Store, purpose: str) -> None:
    task.check(source, purpose)


def feed_of(
    task: Task,
    data: TrainingData,
    batch_size: int,
    train: TrainOptions,
    feed: FeedOptions,
    transform: Callable[..., Any] | None,
) -> Feed:
    is_preloaded = train.preload == "device"
    if is_preloaded:
        _check_preload(task, feed, transform)
    return Feed(task, data.train, data.val, batch_size, train.seed, feed, transform, is_preloaded)


def _check_preload(task: Task, feed: FeedOptions, transform: Any) -> None:
    """Refuse what a set that is kept on the device has no use for."""
    whole = "preload='device' keeps every sample as it was made once. Leave one of the two out."
    if hasattr(task, "behaviour"):
        raise OptionError("preload='device' is for whole samples, and a behaviour is learned from clips. Leave it out.")
    if transform is not None:
        raise OptionError(f"transform would have no effect: {whole}")
    for name in ("cache", "prefetch"):
        refuse_unused(feed, name, whole)


def module_of(
    task: Task,
    options: TrainOptions,
    feed: Feed,
    *,
    global_batch_size: int | None = None,
    recipe: Mapping[str, Any] | None = None,
) -> Module:
    """A module with a new network, for a training whose weights change after so many samples."""
    rate = learning_rate(options, (global_batch_size or feed.batch_size) * options.accumulate)
    begun = begun_network(task, options.seed)
    return Module(task, begun.network, options, learning_rate=rate, feed=feed, recipe=recipe, taken=begun.taken)


class Begun(NamedTuple):
    """A network before its training, and what it took over from given weights."""

    network: torch.nn.Module
    taken: Taken | None


def begun_network(task: Task, seed: int) -> Begun:
    """A network with the weights that training begins with; the generator of the user stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = task.network()
    pretrained = getattr(task, "pretrained", None)
    weights = pretrained() if pretrained is not None else None
    return Begun(network, None if weights is None else task.load_backbone(network, weights))


def as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
