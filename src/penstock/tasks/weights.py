"""Weights to begin with: where they come from, and how they fit into a network.

    imagenet                         torchvision's own, downloaded once by torch
    a path                           .pth, .pt, .ckpt or .safetensors
    hf://owner/name[@revision][/file]   a file of a repository on huggingface.co

Nothing is downloaded unless a word above asks for it, and then only when a training begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import torch
from torch import nn

from penstock.errors import DataError, Problem, RecipeError, require
from penstock.tasks.backbones import TINY, head_name
from penstock.tasks.taken_weights import COUNTERS, Taken, compare_classes, count_taken, model_kind, with_known_classes
from penstock.tasks.weight_files import Weights, read_weights

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
        raise RecipeError(f"there are no ImageNet weights for {TINY!r}. Use weights=None, or another backbone.")
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
        raise RecipeError(f"weights={address!r} must be hf://owner/name, with @revision and /file where they matter.")
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
        raise RecipeError(f"these weights are not of a {name}: {'; '.join(problems)}.")
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
