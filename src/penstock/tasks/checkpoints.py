"""Checkpoints: where a model lies, reading it without running code, and the precision that it keeps.

    state_dict      the network's weights, each name behind "network."
    penstock        version, task (kind, settings), thresholds, scores, recipe, flow_state, …

A safetensors file that `Model.save` wrote has the same under the key "penstock" of its own description.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch

from penstock.errors import DataError, OptionError, Problem, nearest, one_of
from penstock.runs import layout
from penstock.runs.run import Run
from penstock.storage.documents import load_json
from penstock.tasks.kinds import HOMES, STAGES, task_from
from penstock.tasks.weights import (
    HUB,
    HUB_FILES,
    IMAGENET,
    SAFETENSORS,
    Weights,
    downloaded,
    hub_place,
    read_safetensors,
    read_torch,
    refused,
)

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
    from penstock.tasks.detection.detector_files import is_detector, names_of_ours, published_settings, read_detector

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
    except OptionError as error:
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


# Where a model lies: one way to read what users write for it, whether it is loaded, or training begins with it.
#
# runs/trees                    a Run: its best checkpoint, or its last
# best.ckpt  m.safetensors  m.pt  NEON.pl      a file
# folder with model.safetensors or pytorch_model.bin      what save_pretrained writes
# hf://owner/name               a repository on huggingface.co
# weecology/deepforest-tree     the detectors that DeepForest publishes, by its names for them


PUBLISHED = ("weecology/deepforest-tree", "weecology/deepforest-bird", "weecology/deepforest-livestock")


def model_file(place: str | os.PathLike[str], which: Literal["best", "last"] = "best") -> str | Path:
    """The file, or the address on the hub, that a user means; an error lists what was tried."""
    text = os.fspath(place)
    if text.startswith(HUB):
        return text
    path = Path(text).expanduser()
    if path.is_file():
        return path
    if (path / layout.SETTINGS).is_file():
        return Run(path).checkpoint(which)
    inside = [path / name for name in HUB_FILES if (path / name).is_file()]
    if inside:
        return inside[0]
    if text in PUBLISHED and not path.exists():
        return HUB + text
    raise DataError([_not_found(text, path)])


def place_of(weights: str) -> str:
    """The same for the weights that training begins with, among which imagenet is a word of its own."""
    return weights if weights == IMAGENET else str(model_file(weights))


def _not_found(text: str, path: Path) -> Problem:
    runs = sorted(one.parent.as_posix() for one in path.glob(f"*/{layout.SETTINGS}")) if path.is_dir() else []
    there = f"the folder has no {layout.SETTINGS} of a Run and no {' or '.join(HUB_FILES)}"
    what = there if path.is_dir() else "there is no such file or folder, and it is no name of a published model"
    names = f" Did you mean {runs[0]!r}?" if runs else nearest(text, PUBLISHED)
    remedy = "Name a Run, a checkpoint, .safetensors, .pt, a folder of save_pretrained, or hf://owner/name"
    return Problem(text, None, f"this is no model: {what}", f"{remedy}.{names}" if names else remedy)


# With how many bits a network computes: decided when it is trained, kept in its checkpoint, used ever after.


AUTO, FULL = "auto", "32"
HALVES = {"bf16": torch.bfloat16, "16": torch.float16}
PRECISIONS = (AUTO, FULL, *HALVES)


class Precision(NamedTuple):
    """What a model computes with, and why, in words."""

    name: str
    words: str


def short_name(lightning: object) -> str:
    """Our name of a precision of Lightning: 32-true is 32, bf16-mixed is bf16."""
    return str(lightning).split("-", maxsplit=1)[0]


def can_compute(precision: str, device: torch.device) -> bool:
    """Whether a device computes with it; Lightning, too, takes bf16 in place of 16 on a CPU."""
    if precision == FULL:
        return True
    if device.type == "cuda":
        return precision == "16" or (precision == "bf16" and torch.cuda.is_bf16_supported())
    return precision == ("bf16" if device.type == "cpu" else "16")


def computed_precision(lightning: object, device: torch.device) -> str:
    """What a training computes with that asks Lightning for this."""
    asked = short_name(lightning)
    return "bf16" if asked == "16" and not can_compute(asked, device) else asked


def choose_precision(asked: str, trained: str | None, devices: Sequence[torch.device]) -> Precision:
    """What a model answers with: as it was trained, unless a user asks for another, or a device cannot."""
    one_of("precision", asked, PRECISIONS)
    unable = [device.type for device in devices if not can_compute(trained or FULL if asked == AUTO else asked, device)]
    if asked != AUTO:
        if unable:
            raise OptionError(f"precision={asked!r}: a {unable[0]} does not compute with it. Use 32.")
        other = f"; it was trained with {trained}, so answers and scores may differ a little"
        return Precision(asked, f"precision {asked}, as asked{other if trained not in (None, asked) else ''}.")
    if trained is None:
        return Precision(FULL, f"precision {FULL}; the model does not say with which it was trained.")
    if unable:
        why = f"it was trained with {trained}, with which a {unable[0]} does not compute"
        return Precision(FULL, f"precision {FULL}: {why}, so answers and scores may differ a little from training.")
    return Precision(trained, f"precision {trained}, as in training.")


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """A context in which a network computes so."""
    return torch.autocast(device.type, HALVES[precision]) if precision in HALVES else nullcontext()
