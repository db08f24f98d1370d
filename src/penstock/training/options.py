"""What a user may choose for a training, checked once, at the door. No torch is needed to read or write them.

A recipe has one section for each class here, and two more for the task: `task` and `model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Literal, Protocol, get_args

from penstock.errors import OptionError, nearest, one_of, refuse_unused
from penstock.runs.layout import recipe_sections
from penstock.storage.locations import refuse_urls

Auto = Literal["auto"]
AUTO: Final = "auto"
Optimizer = Literal["sgd", "adam", "adamw"]
Schedule = Literal["constant", "cosine", "step", "plateau"]
Precision = Literal["auto", "32", "16", "bf16"]
Preload = Literal["device"]
Executor = Literal["auto", "thread", "subprocess", "process"]
OnBadSample = Literal["raise", "substitute"]


@dataclass(frozen=True)
class DataOptions:
    """Where samples come from.

    path          a pack, a class folder, a table of annotations, TFRecords, HDF5: whatever `ps.open` recognises
    train, val    the names of the splits; val may be a path to other data instead, such as val.csv, or none: then
                  nothing is validated
    split         for data without splits: as in packing, train=0.8,val=0.2 by group
    split_seed    decides which group goes where
    options       options of the source, such as images or labels
    """

    path: str | tuple[str, ...] = ""
    train: str = "train"
    val: str | None = "val"
    split: str = AUTO
    split_seed: int = 0
    options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        refuse_urls(self.path, *(self.options or {}).values())


@dataclass(frozen=True)
class TrainOptions:
    """How to train.

    epochs               passes over the training split
    batch_size           samples in a step over all devices; auto: as many as fit and are worth it
    optimizer            sgd, adam or adamw
    learning_rate        auto: by optimizer and batch size, and said
    momentum             of sgd
    weight_decay         pulls weights to zero
    schedule             constant, cosine, step (a tenth at 60 % and 85 % of the epochs) or plateau
    warmup_epochs        the learning rate rises from zero for so long
    freeze               stages of the network that are not trained: none, backbone, or the first n stages
    accumulate           steps whose gradients are added up before the weights change
    gradient_clip        largest norm of a gradient; none for no limit
    precision            auto, 32, 16 or bf16
    compile              hand the network to torch.compile
    early_stopping       epochs without a better score after which training ends; none for never
    checkpoints          on, or off for none
    monitor              auto: the task's own score
    save_top_k           best checkpoints that are kept, beside the last
    seed                 decides first weights, order and augmentation
    devices, nodes, strategy, accelerator    as in Lightning
    preload              none, or device: keep a training set that fits in the memory of the device
    fast_dev_run         one batch of everything, to see that it works
    """

    epochs: int = 10
    batch_size: int | Auto = AUTO
    optimizer: Optimizer = "adamw"
    learning_rate: float | Auto = AUTO
    momentum: float = 0.9
    weight_decay: float = 1e-4
    schedule: Schedule = "cosine"
    warmup_epochs: float = 0.0
    freeze: str | int | None = None
    accumulate: int = 1
    gradient_clip: float | None = None
    precision: Precision = "auto"
    compile: bool = False
    early_stopping: int | None = None
    checkpoints: bool = True
    monitor: str = AUTO
    save_top_k: int = 1
    seed: int = 0
    devices: int | str | tuple[int, ...] = AUTO
    nodes: int = 1
    strategy: str = AUTO
    accelerator: str = AUTO
    preload: Preload | None = None
    fast_dev_run: bool = False

    def __post_init__(self) -> None:
        one_of("optimizer", self.optimizer, get_args(Optimizer))
        one_of("schedule", self.schedule, get_args(Schedule))
        one_of("precision", self.precision, get_args(Precision))
        if self.preload is not None:
            one_of("preload", self.preload, get_args(Preload))
        for name in ("epochs", "accumulate", "nodes"):
            _at_least(name, getattr(self, name), 1)
        for name in ("save_top_k", "seed"):
            _at_least(name, getattr(self, name), 0)
        _check_devices(self.devices)
        if self.batch_size != AUTO:
            _at_least("batch_size", self.batch_size, 1)
        if self.learning_rate != AUTO:
            _above("learning_rate", self.learning_rate)
        if self.optimizer != "sgd":
            refuse_unused(self, "momentum", f"{self.optimizer} has none. Leave it out, or pass optimizer='sgd'.")
        if not self.checkpoints:
            refuse_unused(self, "save_top_k", "checkpoints are off. Leave one of the two out.")
            if self.early_stopping is None:
                refuse_unused(
                    self,
                    "monitor",
                    "checkpoints are off, and early_stopping too. Turn one of them on, or leave it out.",
                )


@dataclass(frozen=True)
class FeedOptions:
    """How samples are brought to the network; nothing here changes what is learned, but `on_bad_sample`.

    workers         auto: tuned while running
    executor        auto, thread, subprocess or process
    memory          bytes that batches and caches may take, such as 4 GB; auto: half of what is free
    cache           none, memory, or a folder
    prefetch        batches made ahead; auto: tuned
    on_bad_sample   raise, or substitute
    max_bad         bad samples, as count or fraction, after which training stops
    """

    workers: int | Auto = AUTO
    executor: Executor = AUTO
    memory: int | str = AUTO
    cache: str | None = None
    prefetch: int | Auto = AUTO
    on_bad_sample: OnBadSample = "raise"
    max_bad: int | float | None = None

    def __post_init__(self) -> None:
        refuse_urls(self.cache)
        one_of("executor", self.executor, get_args(Executor))
        one_of("on_bad_sample", self.on_bad_sample, get_args(OnBadSample))
        if self.on_bad_sample == "raise":
            refuse_unused(
                self,
                "max_bad",
                "with on_bad_sample='raise' the first bad sample is an error. Pass on_bad_sample='substitute' too, or "
                "leave it out.",
            )


@dataclass(frozen=True)
class RunOptions:
    """The Run folder and what is shown.

    folder      where the Run is written
    resume      auto: go on where an unfinished Run of the same settings stopped; never: a folder in use is an error
    progress    a progress bar
    watch       print every few seconds whether data or compute is the limit
    """

    folder: str = ""
    resume: Literal["auto", "never"] = "auto"
    progress: bool = True
    watch: bool = False

    def __post_init__(self) -> None:
        refuse_urls(self.folder)


def _at_least(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name}={value!r} must be a whole number from {least}.")


def _check_devices(devices: Any) -> None:
    """As Lightning takes them: how many (-1 for all), which ones, or both as text."""
    numbers = devices.split(",") if isinstance(devices, str) else devices
    if devices == AUTO or (
        isinstance(devices, int) and not isinstance(devices, bool) and (devices > 0 or devices == -1)
    ):
        return
    is_list = isinstance(numbers, (tuple, list)) and len(numbers) > 0
    if not is_list or not all(str(number).strip().removeprefix("-").isdecimal() for number in numbers):
        raise OptionError(
            f"devices={devices!r} must be {AUTO}, a number of devices or their numbers, such as 2 or [0, 1]."
        )


def _above(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise OptionError(f"{name}={value!r} must be a number above zero.")


# All options of a training together, as `ps.train` takes them by name and a Run writes them by section.


SECTIONS: dict[str, Any] = {"data": DataOptions, "train": TrainOptions, "feed": FeedOptions, "run": RunOptions}
# What may differ when a Run is gone on with: it changes how fast it goes, where, and what is shown.
MAY_DIFFER = {
    "data": ("path", "options"),  # the fingerprint of the data is compared when its flow is restored
    "train": ("devices", "nodes", "strategy", "accelerator", "compile"),
}
COMPARED = ("data", "task", "model", "train")


class Described(Protocol):
    """What settings need to know of a task, also of one that is trained in stages."""

    kind: ClassVar[str]

    def settings(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Settings:
    """The options of every section."""

    data: DataOptions = field(default_factory=DataOptions)
    train: TrainOptions = field(default_factory=TrainOptions)
    feed: FeedOptions = field(default_factory=FeedOptions)
    run: RunOptions = field(default_factory=RunOptions)

    def sections(self, task: Described) -> dict[str, dict[str, Any]]:
        """The complete recipe."""
        options = {name: getattr(self, name) for name in SECTIONS}
        sections: dict[str, dict[str, Any]] = recipe_sections(task.kind, task.settings(), **options)
        return sections


def option_names() -> dict[str, str]:
    """The options of all sections, and the section of each."""
    return {one.name: section for section, kind in SECTIONS.items() for one in fields(kind)}


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Options by name, each to the section that it belongs to."""
    homes = option_names()
    unknown = [name for name in options if name not in homes]
    if unknown:
        raise OptionError(f"there is no option {unknown[0]!r}.{nearest(unknown[0], list(homes))}")
    chosen = {
        section: kind(**{name: value for name, value in options.items() if homes[name] == section})
        for section, kind in SECTIONS.items()
    }
    return Settings(**chosen)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The keys of two recipes that stand in the way of going on from one with the other."""
    found = []
    for section in COMPARED:
        old, new = before.get(section) or {}, now.get(section) or {}
        names = [name for name in {**old, **new} if name not in MAY_DIFFER.get(section, ())]
        found += [
            f"{section}.{name} was {old.get(name)!r}, now {new.get(name)!r}"
            for name in names
            if old.get(name) != new.get(name)
        ]
    return found
