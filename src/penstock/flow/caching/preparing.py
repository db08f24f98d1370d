"""What a source must do once before an epoch."""

from __future__ import annotations

from penstock.samples import Source


def prepare(source: Source) -> None:
    """Let a source do what it must do once before an epoch, in the process of the consumer."""
    prepares = getattr(source, "prepare", None)
    if prepares is not None:
        prepares()


def is_prepared(source: Source) -> bool:
    """Whether `prepare` would change nothing."""
    return bool(getattr(source, "is_prepared", True))
