"""Files of weights: torch's own, read without running anything in them, and safetensors."""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from penstock.errors import DataError, Problem
from penstock.storage.documents import load_json
from penstock.storage.whole_files import whole_file

SAFETENSORS = ".safetensors"
META = "penstock"  # the key of what a file of ours says of itself
Weights = dict[str, torch.Tensor]

_OBJECT = re.compile(r"(?:GLOBAL|class|function|global)\s+([\w.]+\.\w+)")


class KnownWeights(dict[str, torch.Tensor]):
    """Weights, with what their file says of them: the task that they are of, its classes and its other settings."""

    kind: str = ""  # none: the file is not of Penstock
    classes: tuple[str, ...] = ()
    said: Mapping[str, Any] = {}

    def named(self, weights: Weights) -> KnownWeights:
        """Other weights with the same words."""
        found = KnownWeights(weights)
        found.kind, found.classes, found.said = self.kind, self.classes, self.said
        return found


def read_weights(path: str | Path) -> KnownWeights:
    """The weights in a file: a state_dict, a checkpoint that holds one, or safetensors; always onto the CPU."""
    if Path(path).suffix == SAFETENSORS:
        weights, described = read_safetensors(path)
        return with_own_words(weights, described_meta(described))
    content = read_torch(path)
    return with_own_words(weights_in(content, path), content.get(META) if isinstance(content, Mapping) else None)


def described_meta(described: Mapping[str, str]) -> Any:
    """What a safetensors file of ours says of itself; None for others."""
    try:
        return load_json(described[META])
    except (KeyError, ValueError):
        return None


def with_own_words(weights: Weights, meta: Any) -> KnownWeights:
    """Weights with the task, classes and settings that a file of Penstock names for them."""
    found = KnownWeights(weights)
    task = meta.get("task") if isinstance(meta, Mapping) else None
    if not isinstance(task, Mapping) or not isinstance(task.get("settings"), Mapping):
        return found
    found.kind = str(task.get("kind", ""))
    settings = task["settings"]
    inner = settings.get("behaviour")  # a stage of a behaviour training has the settings of the whole in its own
    found.said = inner if isinstance(inner, Mapping) else settings
    names = found.said.get("behaviours", found.said.get("classes"))
    if isinstance(names, (list, tuple)):
        found.classes = tuple(str(name) for name in names)
    return found


def read_torch(path: str | Path, map_location: Any = "cpu") -> Any:
    """What torch saved in a file, as long as it is tensors and plain values."""
    if not Path(path).is_file():
        raise refused(path, "no such file", "Check the path")
    try:
        return torch.load(path, map_location=map_location, weights_only=True)
    except pickle.UnpicklingError as error:
        raise _not_read(path, error) from error
    except (RuntimeError, EOFError, ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise refused(path, f"cannot be read: {_first_line(error)}", "It may be cut short; copy it again") from error


def _not_read(path: str | Path, error: pickle.UnpicklingError) -> DataError:
    """A file without an end, or one that wants to run code."""
    if "Unsupported" in str(error) or "GLOBAL" in str(error):
        found = _OBJECT.search(str(error))  # the rest is torch's advice to run the file all the same
        return refused(
            path,
            f"it holds Python objects{f' ({found[1]})' if found else ''}, which Penstock does not load",
            "Save the state_dict of the model, or safetensors, with the program that made it",
        )
    return refused(path, "it is no file of weights, or cut short", "Copy it again, or choose another file")


def read_safetensors(path: str | Path) -> tuple[Weights, dict[str, str]]:
    """Weights, and what the file says of itself."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise refused(path, "no such file", "Check the path")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise refused(path, f"cannot be read: {_first_line(error)}", "It may be cut short; copy it again") from error


def write_weights(path: str | Path, weights: Mapping[str, torch.Tensor], meta: Mapping[str, Any]) -> None:
    """Write weights with `meta` beside them: safetensors, or a file of torch as checkpoints are; by the ending."""
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    with whole_file(path) as partial:
        if Path(path).suffix == SAFETENSORS:
            from safetensors.torch import save_file

            save_file(kept, partial, {"format": "pt", "penstock": json.dumps(meta)})
        else:
            torch.save({"state_dict": {f"network.{name}": kept[name] for name in kept}, "penstock": meta}, partial)


def weights_in(content: Any, path: str | Path) -> Weights:
    """The tensors of what a file holds: itself, or under the usual names."""
    for name in ("state_dict", "model", "model_state_dict"):
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    if not isinstance(content, Mapping) or not any(isinstance(value, torch.Tensor) for value in content.values()):
        raise refused(path, f"it holds {type(content).__name__} and no weights", "Pass a state_dict or safetensors")
    return {str(name): value for name, value in content.items() if isinstance(value, torch.Tensor)}


def refused(path: str | Path, what: str, remedy: str) -> DataError:
    """The error of one file."""
    return DataError([Problem(str(path), None, what, remedy)])


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
