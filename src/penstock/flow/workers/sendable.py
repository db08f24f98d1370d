"""A program as something that can be sent to worker processes, or a clear word on why it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cloudpickle

from penstock.errors import RecipeError
from penstock.flow.making.chains import function_name
from penstock.flow.making.program import Program
from penstock.flow.steps import Map
from penstock.flow.workers.parcels import Parcel, wrapped

REMEDY = (
    "What is open or locked (files, connections, locks, generators) cannot be sent to another process: make it inside "
    'the function, or use executor="thread".'
)


def parcel_of(program: Program) -> tuple[Parcel, list[int]]:
    """The program as a parcel, and its descriptors. Functions of a script or notebook are sent as they are."""
    try:
        return wrapped(program, cloudpickle.dumps, "the program")
    except RecipeError:
        raise
    except Exception as error:
        raise RecipeError(
            f"{_culprit(program)} cannot be sent to worker processes: {_reason(error)}. {REMEDY}"
        ) from error


def _culprit(program: Program) -> str:
    """The first part of a program that cannot be pickled by itself."""
    for words, part in _parts(program):
        try:
            cloudpickle.dumps(part)
        except Exception:  # noqa: BLE001 - whatever pickling raises, this is the part that is looked for
            return words
    return "this flow"


def _parts(program: Program) -> Iterator[tuple[str, Any]]:
    chains = [*(leaf.chain for leaf in program.leaves), program.batch_chain]
    for link in (link for chain in chains for link in chain):
        step = link.step
        if isinstance(step, Map):
            yield f"step {link.number}, map({function_name(step.function)}): this function", step.function
        else:
            yield f"step {link.number}, {step.name}: this step", step
    for leaf in program.leaves:
        yield f"the source {leaf.source.kind.__name__}", leaf.source


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")
