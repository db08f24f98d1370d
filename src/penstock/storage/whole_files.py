"""Files that appear under their name only when they are complete, whatever happens to the process or the disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path beside the target to write to; it takes the target's name once the block ends without an error."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        yield partial
        _sync(partial)
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Replace a file as a whole; readers see the old one or the new one."""
    with whole_file(path) as partial:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """The new name itself reaches the disk, where folders can be synced."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def whole_files(path: str | Path) -> Iterator[Path]:
    """The same for a file that others come with, such as a shapefile: they are written in a folder beside the target.

    All take their names when the block ends without an error, the target last.
    """
    target = Path(path)
    folder = target.with_name(f".{target.name}.{os.getpid()}.partial")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder / target.name
        for file in sorted(folder.iterdir(), key=lambda file: file.name == target.name):
            _sync(file)
            file.replace(target.with_name(file.name))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _sync_folder(target.parent)
