"""What is asked before packing begins, and how failures are put into words."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import DEFAULT_QUALITY
from penstock.errors import DataError, HopError, OptionError, PackError
from penstock.problems import refuse_problems
from penstock.samples import Store
from penstock.storage.mapped import refuse_lost_files
from penstock.storage.writing.options import AUTO, LOSSLESS, SampleOptions
from penstock.storage.writing.parallel import thread_pool
from penstock.storage.writing.places import Places
from penstock.storage.writing.stamps import stamp_of


def check_source(source: Store, options: SampleOptions) -> None:
    """Raise all known problems of a source before anything is written."""
    if options.executor == "process":
        _check_picklable(source)
    refuse_problems(source, leaves_unreadable=options.on_bad_sample == "skip")


def check_quality(source: Store, options: SampleOptions) -> None:
    """Refuse a quality where nothing is encoded, or nothing that has one."""
    if options.quality == DEFAULT_QUALITY or options.codec != AUTO or "frame" in source.schema:
        return
    is_png = source.parts is not None and source.default_codec in LOSSLESS
    if is_png or not options.changes_pixels:
        stored = "tiles become png" if is_png else "image files stay as they are, and other pixels become png"
        raise OptionError(f"quality={options.quality} has no effect: {stored}. Pass codec='jpeg' too, or leave it out.")


def _check_picklable(source: Store) -> None:
    try:
        pickle.dumps(source)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise OptionError(
            f"executor process sends the source to other processes, and this one cannot be pickled: {error}. "
            "Define its class in a module that can be imported, or use executor thread."
        ) from error


def check_unchanged(source: Store, start: int, stamps: NDArray[np.uint64], workers: int) -> None:
    """Raise when samples, from number `start` on, are not those that an interrupted run stamped."""
    with thread_pool(workers) as pool:
        indices = range(start, start + len(stamps))
        now = np.fromiter(pool.map(lambda index: stamp_of(source, index), indices), np.uint64, len(stamps))
    changed = np.flatnonzero(now != stamps)
    if len(changed):
        more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise PackError(
            f"cannot resume: {source.describe(start + int(changed[0]))} changed since it was packed{more}. "
            "Pass overwrite=True to start again."
        )


@contextmanager
def every_damage(source: Store) -> Iterator[None]:
    """When one image file turns out to be broken, look at the others too, so that all are named at once."""
    try:
        yield
    except HopError as error:
        if not source.encoded_images:
            raise
        problems = source.damage()
        if len(problems) < 2:
            raise
        raise DataError(problems) from error


@contextmanager
def clear_words(places: Places) -> Iterator[None]:
    """Say what a failing disk means for the user."""
    try:
        yield
    except Exception as error:
        refuse_lost_files()  # which is then the reason, whatever became of zeros
        if isinstance(error, FileNotFoundError) and not places.content.exists():
            what = f"{places.workshop} was removed while it was being written to. Nothing of it is left: run again."
            raise PackError(what) from error
        if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        kept = "Finished shards are kept: " if places.workshop.exists() else ""
        advice = "free some space and run again with resume=True." if kept else "Free some space and run again."
        raise PackError(f"the disk is full: {places.target.parent} has no space left. {kept}{advice}") from error
