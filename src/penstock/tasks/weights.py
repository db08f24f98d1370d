"""Weights to start from: their files, how they fit into a network, and what was taken of them.

    imagenet                         torchvision's own, downloaded once by torch
    a path                           .pth, .pt, .ckpt or .safetensors
    hf://owner/name[@revision][/file]   a file of a repository on huggingface.co

Nothing is downloaded unless a word above asks for it, and then only when a training begins.
"""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import torch
from torch import nn

from penstock.errors import DataError, OptionError, Problem, require
from penstock.storage.documents import load_json
from penstock.storage.whole_files import whole_file
from penstock.tasks.backbones import TINY, head_name
from penstock.wording import counted

# Files of weights: torch's own, read without running anything in them, and safetensors.


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


# What a network takes over from the weights that its training begins with, and how that is said.


SHOWN_CLASSES = 8
# Nothing is computed with these numbers, and files from before torch counted batches lack them.
COUNTERS = "num_batches_tracked"
# Tasks whose models hold a plain network that others can begin with.
PLAIN = ("", "classification")


@dataclass(frozen=True)
class Taken:
    """What was taken over.

    tensors_taken    tensors of the network that hold the given weights, all or, in a head, some of their rows
    tensors          tensors that the network has
    new              parts that stay as they were drawn, and why, in words
    classes_kept     classes whose outputs were taken by name
    classes_new      classes whose outputs are new
    classes_unused   classes of the file that the task does not have
    tensors_unused   given tensors that the network has no place for
    model            the task that the weights are of; empty where they are not of Penstock
    """

    tensors_taken: int
    tensors: int
    new: tuple[str, ...] = ()
    classes_kept: tuple[str, ...] = ()
    classes_new: tuple[str, ...] = ()
    classes_unused: tuple[str, ...] = ()
    tensors_unused: int = 0
    model: str = ""

    def facts(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def line(self, weights: str) -> str:
        """One sentence about weights of this name."""
        words = [f"begins with {weights}: {self.tensors_taken:,} of {counted(self.tensors, 'tensor')} taken"]
        if self.classes_new or self.classes_unused:
            named = (("kept", self.classes_kept), ("new", self.classes_new), ("not used", self.classes_unused))
            words.append("outputs " + ", ".join(f"{word}: {_listed_names(names)}" for word, names in named if names))
        words += self.new
        if self.tensors_unused:
            words.append(f"{counted(self.tensors_unused, 'tensor')} of the file not used")
        return "; ".join(words) + "."


def taken_from(facts: Mapping[str, Any]) -> Taken:
    """What `Taken.facts` wrote."""
    values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in facts.items()}
    return Taken(**values)


def count_taken(own: Mapping[str, torch.Tensor], given: Iterable[str]) -> tuple[int, int]:
    """How many tensors of a network are given, and how many it has."""
    names = {name for name in own if not name.endswith(COUNTERS)}
    return len(names & set(given)), len(names)


def with_known_classes(
    given: Weights,
    own: Mapping[str, torch.Tensor],
    axes: Mapping[str, tuple[int, int]],
    theirs: Sequence[str],
    ours: Sequence[str],
) -> Weights:
    """Tensors with a row or column for each class, put together by the names of classes; ours for the others.

    `axes` has for each tensor the axis of its classes, and the place of the first one.
    """
    same = [(theirs.index(name), place) for place, name in enumerate(ours) if name in theirs]
    found = dict(given)
    for name, (axis, first) in axes.items():
        if name not in given or name not in own:
            continue
        mixed = own[name].clone().movedim(axis, 0)
        value = given[name].movedim(axis, 0)
        if len(value) != first + len(theirs) or value.shape[1:] != mixed.shape[1:]:
            continue  # of another network: whoever compares shapes says so
        mixed[:first] = value[:first]
        for their_place, our_place in same:
            mixed[first + our_place] = value[first + their_place]
        found[name] = mixed.movedim(0, axis).contiguous()
    return found


class Classes(NamedTuple):
    """Classes of a task beside those of the weights that it begins with."""

    kept: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def compare_classes(theirs: Sequence[str], ours: Sequence[str]) -> Classes:
    """Our classes that they have, ours that they do not have, and theirs that we do not have; by name."""
    if not theirs:
        return Classes()
    kept = tuple(name for name in ours if name in theirs)
    new, unused = (tuple(name for name in names if name not in kept) for names in (ours, theirs))
    return Classes(kept, new, unused)


def model_kind(weights: Mapping[str, torch.Tensor]) -> str:
    """The task that weights are of; empty where nobody says so."""
    return weights.kind if isinstance(weights, KnownWeights) else ""


def need_model_of(weights: Mapping[str, torch.Tensor], kind: str, place: str, also: Sequence[str] = PLAIN) -> None:
    """Refuse the model of a task that this one cannot begin with."""
    found = model_kind(weights)
    if found not in (kind, *also):
        raise OptionError(
            f"weights={place!r} is a model of the task {found}, and {kind} cannot begin with it. "
            f"Name a Run or a file of {kind}, a file with a plain network, or none."
        )


def need_same_setting(weights: Mapping[str, torch.Tensor], name: str, ours: Any, place: str) -> None:
    """Refuse a model of Penstock whose network was made by another setting."""
    theirs = weights.said.get(name) if isinstance(weights, KnownWeights) and weights.kind else None
    if theirs is not None and theirs != ours:
        raise OptionError(
            f"weights={place!r} has {name} {theirs}, and this task has {name} {ours}: their networks differ. "
            f"Set {name} to {theirs}, or begin with other weights."
        )


def _listed_names(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN_CLASSES]) + (" …" if len(names) > SHOWN_CLASSES else "")


IMAGENET = "imagenet"
HUB = "hf://"
HUB_FILES = ("model.safetensors", "pytorch_model.bin")
# Prefixes that trainers and wrappers put before the names of a network's weights.
PREFIXES = ("network.", "model.", "module.", "backbone.", "_orig_mod.")
# Further heads that some networks of torchvision were trained with and nobody asks.
SIDE_HEADS = ("aux1.", "aux2.", "AuxLogits.")
SHOWN_KEYS = 5
# How long a server may take to answer the first question; a missing network is said after that.
TRY_SECONDS = 5


def pretrained_weights(weights: str, backbone: str) -> Weights:
    """The weights that a word or a path stands for."""
    if weights == IMAGENET:
        return _from_torchvision(backbone)
    if weights.startswith(HUB):
        return read_weights(downloaded(hub_place(weights)))
    return read_weights(Path(weights).expanduser())


def _from_torchvision(backbone: str) -> Weights:
    import torchvision

    if backbone == TINY:
        raise OptionError(f"there are no ImageNet weights for {TINY!r}. Use weights=None, or another backbone.")
    default: Any = torchvision.models.get_model_weights(backbone).DEFAULT
    try:
        _try_connection(default.url)
        weights: Weights = default.get_state_dict(progress=True, check_hash=True)
    except (OSError, RuntimeError) as error:  # torch says RuntimeError where a download is damaged
        raise unreachable(f"the ImageNet weights of {backbone} ({default.url})", error) from error
    return weights


def _try_connection(url: str) -> None:
    """Raise OSError soon if there is no way to a server; torch would wait for minutes. Nothing is asked for a file
    that is there already."""
    if (Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]).is_file():
        return
    with urlopen(Request(url, method="HEAD"), timeout=TRY_SECONDS):
        pass


class HubPlace(NamedTuple):
    """A file on huggingface.co; without a name the first of the usual ones that is there."""

    repository: str
    revision: str | None
    file: str | None


def hub_place(address: str) -> HubPlace:
    """Read hf://owner/name[@revision][/file]."""
    found = re.fullmatch(r"hf://([\w.-]+/[\w.-]+)(?:@([\w.-]+))?(?:/(.+))?", address)
    if not found:
        raise OptionError(f"weights={address!r} must be hf://owner/name, with @revision and /file where they matter.")
    return HubPlace(*found.groups())


def downloaded(place: HubPlace) -> Path:
    """The file on this machine: downloaded with a progress bar, or from the cache of huggingface_hub."""
    found = _first_there(place, [place.file] if place.file else list(HUB_FILES))
    if found is None:
        wanted = place.file or " or ".join(HUB_FILES)
        remedy = "Name one: hf://owner/name/file.safetensors"
        raise DataError([Problem(place.repository, None, f"there is no file {wanted}", remedy)])
    return found


def downloaded_beside(place: HubPlace, name: str) -> Path | None:
    """Another file of the same repository, or None if the repository has no such file."""
    return _first_there(place, [name])


def _first_there(place: HubPlace, names: list[str]) -> Path | None:
    hub: Any = require("huggingface_hub", "train", f"Downloading {place.repository}")
    errors: Any = require("huggingface_hub.errors", "train", f"Downloading {place.repository}")
    for name in names:
        wanted = {"repo_id": place.repository, "filename": name, "revision": place.revision}
        try:
            # One short try: hf_hub_download would try six times, for a minute each, before it gives up.
            hub.get_hf_file_metadata(hub.hf_hub_url(**wanted), timeout=TRY_SECONDS)
            return Path(hub.hf_hub_download(**wanted, etag_timeout=TRY_SECONDS))
        except Exception as error:  # noqa: BLE001 - each version of huggingface_hub has errors of another HTTP library
            is_absent = isinstance(error, errors.EntryNotFoundError)
            if not is_absent or isinstance(error, errors.LocalEntryNotFoundError):  # the latter: for want of a network
                return _from_cache(hub, errors, place, name, error)
    return None


def _from_cache(hub: Any, errors: Any, place: HubPlace, name: str, error: Exception) -> Path:
    """The file that an earlier download left, where the server cannot be reached or refuses."""
    try:
        return Path(hub.hf_hub_download(place.repository, name, revision=place.revision, local_files_only=True))
    except (errors.LocalEntryNotFoundError, OSError):
        raise unreachable(f"{place.repository}/{name} from {hub.constants.ENDPOINT}", error) from error


def unreachable(what: str, error: BaseException) -> DataError:
    """A download that did not come."""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    remedy = "Check the network, or download it elsewhere and pass the path of the file"
    return DataError([Problem(what, None, f"could not be downloaded: {reason}", remedy)])


def load_fitting(
    network: nn.Module, weights: Mapping[str, torch.Tensor], name: str, classes: Sequence[str] = ()
) -> Taken:
    """Take over weights whose names and shapes fit, and of the head the outputs of classes with the same name.

    A head whose classes nobody knows is taken where it has as many outputs; else ours stays as it is.
    """
    own = network.state_dict()
    all_given = without_prefix(weights, own)
    head = head_name(network) + "."
    given = {key: value for key, value in all_given.items() if not key.startswith(SIDE_HEADS) or key in own}
    theirs = tuple(getattr(weights, "classes", ()))
    compared = compare_classes(theirs, classes)
    why: tuple[str, ...] = ()
    if theirs and theirs != tuple(classes) and compared.kept:
        given = with_known_classes(given, own, {key: (0, 0) for key in own if key.startswith(head)}, theirs, classes)
    elif (theirs and not compared.kept) or not _fits(given, own, head):
        why = (f"the head is new ({_outputs(given, own, head, theirs)})",)
        given = {key: value for key, value in given.items() if not key.startswith(head)}
    wanted = {key for key in own if key in given or not key.startswith(head)}
    problems = differences(own, given, wanted)
    if problems:
        raise OptionError(f"these weights are not of a {name}: {'; '.join(problems)}.")
    network.load_state_dict(given, strict=False)
    unused = sum(key not in own for key in all_given)
    return Taken(*count_taken(own, given), why, *compared, unused, model_kind(weights))


def _fits(given: Weights, own: Mapping[str, torch.Tensor], head: str) -> bool:
    return all(key in given and given[key].shape == own[key].shape for key in own if key.startswith(head))


def _outputs(given: Weights, own: Mapping[str, torch.Tensor], head: str, theirs: Sequence[str]) -> str:
    """Why a head is not taken."""
    if theirs:
        return "none of its classes has the same name there"
    there = given.get(f"{head}weight")
    if there is None:
        return "the file has none"
    return f"{len(there):,} outputs there, {len(own[f'{head}weight']):,} here"


def without_prefix(weights: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> Weights:
    """Names without what trainers put before them, as often as that makes more of them fit."""
    given = dict(weights)
    while not any(key in own for key in given):
        prefix = next((one for one in PREFIXES if any(key.startswith(one) for key in given)), None)
        if prefix is None:
            break
        given = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
    return given


def differences(own: Mapping[str, torch.Tensor], given: Weights, wanted: set[str]) -> list[str]:
    """What is missing among the wanted weights, what is unknown, and what has another shape; in words."""
    missing = [key for key in wanted if key not in given and not key.endswith(COUNTERS)]
    extra = [key for key in given if key not in own]
    other = [
        f"{key} ({_shape(given[key])} instead of {_shape(own[key])})"
        for key in own
        if key in given and given[key].shape != own[key].shape
    ]
    named = (("missing", sorted(missing)), ("unknown", extra), ("of another shape", other))
    return [f"{len(keys)} {word}: {_listed(keys)}" for word, keys in named if keys]


def _listed(keys: list[str]) -> str:
    return ", ".join(keys[:SHOWN_KEYS]) + (" …" if len(keys) > SHOWN_KEYS else "")


def _shape(tensor: torch.Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "one number"
