"""Reading checkpoints: weights and plain values, never code. Nothing of Lightning is needed.

    state_dict      the network's weights, each name behind "network."
    penstock        version, task (kind, settings), thresholds, scores, recipe, flow_state, …

A safetensors file that `Model.save` wrote has the same under the key "penstock" of its own description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from penstock.errors import RecipeError
from penstock.storage.documents import load_json
from penstock.tasks.kinds import HOMES, STAGES, task_from
from penstock.tasks.weight_files import SAFETENSORS, Weights, read_safetensors, read_torch, refused
from penstock.tasks.weights import HUB, downloaded, hub_place

if TYPE_CHECKING:
    from penstock.tasks.task import Task

NEWEST_VERSION = 1
NETWORK = "network."
META = "penstock"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a checkpoint holds: the task, the weights of its network, and all else that it says."""

    path: Path
    task: Task
    weights: Weights
    meta: Mapping[str, Any]

    def network(self) -> torch.nn.Module:
        """A network with these weights; names or shapes that do not fit are an error."""
        with torch.random.fork_rng(devices=[]):  # its first weights are replaced at once, and should cost nobody a draw
            network = self.task.network()
        _check_weights(self.path, network.state_dict(), self.weights)
        network.load_state_dict(self.weights)
        return network


def read_checkpoint(path: str | Path, *, kind: str | None = None) -> Checkpoint:
    """Read a checkpoint of Penstock, or a published detector (also hf://owner/name); with `kind`, only one of that
    kind of task."""
    weights, meta = _content(path)
    return Checkpoint(Path(path), _task(path, meta, kind), weights, meta)


def _content(path: str | Path) -> tuple[Weights, Mapping[str, Any]]:
    text = str(path)
    file = downloaded(hub_place(text)) if text.startswith(HUB) else Path(path)
    own = _safetensors(file) if file.suffix == SAFETENSORS else _torch_file(file)
    return own or _published(path, file)


def _torch_file(path: Path) -> tuple[Weights, Mapping[str, Any]] | None:
    """What Penstock wrote; None for a file of others."""
    content = read_torch(path)
    if not isinstance(content, Mapping) or not isinstance(content.get(META), Mapping):
        return None
    found = content.get("state_dict")
    if not isinstance(found, Mapping):
        raise refused(path, "it has no weights", "Train again, or choose another checkpoint")
    weights = {
        name.removeprefix(NETWORK): value
        for name, value in found.items()
        if name.startswith(NETWORK) and isinstance(value, torch.Tensor)
    }
    return weights, content[META]


def _safetensors(path: Path) -> tuple[Weights, Mapping[str, Any]] | None:
    weights, described = read_safetensors(path)
    if META not in described:
        return None
    try:
        meta = load_json(described[META])
    except ValueError:
        raise _not_ours(path) from None
    if not isinstance(meta, Mapping):
        raise _not_ours(path)
    return weights, meta


def _published(path: str | Path, file: Path) -> tuple[Weights, Mapping[str, Any]]:
    """A detector that others published, with the task that it was trained for."""
    from penstock.tasks.detection.detector_files import is_detector, published_settings, read_detector
    from penstock.tasks.detection.published_names import names_of_ours

    found = read_detector(path, file)
    if not is_detector(found):
        raise _not_ours(path)
    task = {"kind": "detection", "settings": published_settings(found, path)}
    return names_of_ours(found), {"version": NEWEST_VERSION, "task": task}


def _not_ours(path: str | Path) -> Exception:
    return refused(
        path,
        "it holds weights, perhaps, but not what they are for",
        "A checkpoint of a Run has that; begin a training with weights=… to use other files",
    )


def _task(path: str | Path, meta: Mapping[str, Any], kind: str | None) -> Task:
    version = meta.get("version")
    if not isinstance(version, int) or version > NEWEST_VERSION:
        raise refused(
            path,
            f"it is of version {version}, and this Penstock reads up to {NEWEST_VERSION}",
            "Update Penstock: pip install -U penstock",
        )
    described = meta.get("task")
    if not isinstance(described, Mapping) or not isinstance(described.get("settings"), Mapping):
        raise refused(path, "it does not say which task it is of", "It is damaged; choose another checkpoint")
    found = described.get("kind")
    if kind is not None and found != kind:
        raise refused(path, f"it is of the task {found!r}, and {kind!r} is needed", "Choose a checkpoint of that task")
    if found not in HOMES | STAGES:
        raise refused(path, f"it is of the task {found!r}, which this Penstock does not know", "Update Penstock")
    try:
        return task_from(found, described["settings"])
    except RecipeError as error:
        raise refused(path, f"its settings are not understood: {error}", "Update Penstock") from error


def _check_weights(path: Path, own: Weights, given: Weights) -> None:
    wrong = sorted(
        name
        for name in own.keys() | given.keys()
        if name not in own or name not in given or own[name].shape != given[name].shape
    )
    if wrong:
        some = ", ".join(wrong[:5]) + (" …" if len(wrong) > 5 else "")
        raise refused(path, f"{len(wrong)} weights do not fit the network: {some}", "It is damaged; choose another one")
