"""What is asked before packing begins, and how failures are put into words."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import DataError, HopError, PackError, Problem, RecipeError
from penstock.packing.layout import MANIFEST_NAME
from penstock.packing.options import PackOptions
from penstock.samples import Source, raise_problems


def partial_folder(target: Path) -> Path:
    return target.with_name(target.name + ".partial")


def check_target(target: Path, resume: bool, overwrite: bool) -> None:
    if resume and overwrite:
        raise RecipeError("--resume goes on with a pack and --overwrite starts anew; give one of them.")
    if target.exists() and not (target / MANIFEST_NAME).exists():
        raise PackError(f"{target} exists and is not a pack; it is left alone. Choose another name with -o.")
    if target.exists() and not overwrite:
        raise PackError(f"{target} exists already. Pass --overwrite to replace it, or choose another name with -o.")
    if partial_folder(target).exists() and not (resume or overwrite):
        raise PackError(
            f"{partial_folder(target)} is an unfinished pack. Pass --resume to go on with it, "
            "or --overwrite to start anew."
        )


def check_source(source: Source, options: PackOptions) -> None:
    """Raise all known problems of a source before anything is written."""
    problems: list[Problem] = list(source.problems()) if hasattr(source, "problems") else []
    if getattr(source, "damage_is_known", False):
        problems += source.damage()  # type: ignore[attr-defined]
    if options.on_bad_sample == "skip":
        problems = [problem for problem in problems if not problem.unreadable]
    raise_problems(problems)


@contextmanager
def every_damage(source: Source) -> Iterator[None]:
    """When one image file turns out to be broken, look at the others too, so that all are named at once."""
    try:
        yield
    except HopError as error:
        if not getattr(source, "encoded_images", False) or not hasattr(source, "damage"):
            raise
        problems = source.damage()
        if len(problems) < 2:
            raise
        raise DataError(problems) from error


@contextmanager
def clear_words(target: Path) -> Iterator[None]:
    """Say what a failing disk means for the user."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise PackError(
            f"the disk is full: {target.parent} has no space left. Finished shards are kept in "
            f"{partial_folder(target)}: free some space and run again with --resume."
        ) from error
