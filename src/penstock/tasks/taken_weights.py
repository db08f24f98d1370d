"""What a network takes over from the weights that its training begins with, and how that is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch

from penstock.errors import RecipeError
from penstock.tasks.weight_files import KnownWeights, Weights
from penstock.wording import counted

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
            words.append("outputs " + ", ".join(f"{word}: {_listed(names)}" for word, names in named if names))
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
        raise RecipeError(
            f"weights={place!r} is a model of the task {found}, and {kind} cannot begin with it. "
            f"Name a Run or a file of {kind}, a file with a plain network, or none."
        )


def need_same_setting(weights: Mapping[str, torch.Tensor], name: str, ours: Any, place: str) -> None:
    """Refuse a model of Penstock whose network was made by another setting."""
    theirs = weights.said.get(name) if isinstance(weights, KnownWeights) and weights.kind else None
    if theirs is not None and theirs != ours:
        raise RecipeError(
            f"weights={place!r} has {name} {theirs}, and this task has {name} {ours}: their networks differ. "
            f"Set {name} to {theirs}, or begin with other weights."
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN_CLASSES]) + (" …" if len(names) > SHOWN_CLASSES else "")
