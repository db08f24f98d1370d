"""Every kind of task by its name, as recipes and checkpoints write it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.errors import OptionError, nearest

if TYPE_CHECKING:
    from penstock.tasks.task import Task

# Where each kind lives; nothing is imported before it is asked for.
HOMES = {
    "classification": ("penstock.tasks.classification", "Classification"),
    "detection": ("penstock.tasks.detection.detection", "Detection"),
    "behaviour": ("penstock.tasks.behaviour.behaviour", "Behaviour"),
}
# Stages of a training that has several, as their Runs and checkpoints name them; no recipe asks for one.
STAGES = {
    "behaviour_flow": ("penstock.tasks.behaviour.stages", "FlowStage"),
    "behaviour_frames": ("penstock.tasks.behaviour.stages", "FramesStage"),
    "behaviour_sequence": ("penstock.tasks.behaviour.stages", "SequenceStage"),
}


def task_class(kind: str) -> Any:
    """The class of a kind of task."""
    homes = HOMES | STAGES
    if kind not in homes:
        raise OptionError(f"task {kind!r} is not one of {', '.join(HOMES)}.{nearest(str(kind), list(HOMES))}")
    module, name = homes[kind]
    return getattr(importlib.import_module(module), name)


def task_from(kind: str, settings: Mapping[str, Any]) -> Task:
    """The task that these settings were taken from."""
    try:
        task: Task = task_class(kind)(**settings)
    except TypeError as error:
        raise OptionError(f"the settings of a {kind} do not fit: {error}.") from error
    return task
