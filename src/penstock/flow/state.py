"""Where a flow is, as a few numbers; and what must be equal for them to mean the same batches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from penstock.errors import RecipeError

VERSION = 1


class Reached(NamedTuple):
    """How far a flow has come, in batches of this rank: the next one is `batch` of `epoch`."""

    epoch: int
    batch: int
    bad: int  # substitutes so far in this epoch


@dataclass(frozen=True)
class State:
    """The next batch: of which epoch, which number; and of which plan, made by which decoder."""

    version: int
    plan: str  # fingerprint: source, seed, steps and global batch; not workers, ranks or executor
    decoder: str
    epoch: int
    batch: int
    bad: int  # substitutes so far in this epoch

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def checked_state(state: Any) -> State:
    """A state that was read from somewhere."""
    names = list(State.__dataclass_fields__)
    if not isinstance(state, dict) or set(state) != set(names):
        raise RecipeError(f"restore takes what state() gave: a mapping with {', '.join(names)}.")
    if state["version"] != VERSION:
        raise RecipeError(f"this state has version {state['version']}; this Penstock reads version {VERSION}.")
    numbers = [state["epoch"], state["batch"], state["bad"]]
    if not all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers):
        raise RecipeError("epoch, batch and bad of a state are whole numbers from 0. Was the file edited?")
    return State(**state)


def check_same(state: State, plan: str, decoder: str, allow_other: bool) -> None:
    """Whether a state means the same batches here."""
    if state.plan != plan:
        raise RecipeError(
            f"this state belongs to another plan ({state.plan}, here {plan}): source, seed, steps and global batch "
            "size must be the same; workers, executor and world size may differ."
        )
    if state.decoder != decoder and not allow_other:
        raise RecipeError(
            f"this state was taken with {state.decoder}, and here {decoder} decodes: pixels may differ by a level. "
            "Pass restore(state, allow_other=True) to go on all the same."
        )
