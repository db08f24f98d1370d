"""Errors on their way from a worker process: their kind, their cause, and where in the user's code it happened."""

from __future__ import annotations

import pickle
import traceback
from typing import NamedTuple

import cloudpickle

from penstock.errors import PenstockError


class Carried(NamedTuple):
    """An error as bytes; `story` is the traceback of what went wrong first."""

    error: bytes
    cause: bytes | None
    story: str


class WorkerError(PenstockError):
    """Stands for an error that cannot leave its process; its text says which it was."""


def carried(error: BaseException) -> Carried:
    """An error as something that can be sent."""
    cause = error.__cause__
    story = "".join(traceback.format_exception(cause or error)).rstrip()
    return Carried(_pickled(error), None if cause is None else _pickled(cause), f"In a worker process:\n{story}")


def revived(carried: Carried) -> BaseException:
    """The error again, with the traceback of the worker as a note of what went wrong first."""
    error = _loaded(carried.error)
    if carried.cause is None:
        error.add_note(carried.story)
        return error
    cause = _loaded(carried.cause)
    cause.add_note(carried.story)
    error.__cause__ = cause
    return error


def _pickled(error: BaseException) -> bytes:
    """An error that comes back as it was, or one that stands for it."""
    try:
        body = cloudpickle.dumps(error)
        if isinstance(pickle.loads(body), type(error)):
            return bytes(body)
    except Exception:  # noqa: BLE001 - the pickling of a user's error may fail in any way; its text is sent instead
        pass
    return pickle.dumps(WorkerError(f"{type(error).__name__}: {error}"))


def _loaded(body: bytes) -> BaseException:
    error: BaseException = pickle.loads(body)
    return error
