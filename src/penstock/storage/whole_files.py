"""Files that appear under their name only when they are complete, whatever happens; and locks on files.

Everything is written into a new folder beside the target that nobody else may enter, under a name that nobody can
guess: a link that somebody laid there is not followed. The folder is locked as long as its process lives; what a
killed process left is removed by the next one that writes there.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

# A lock on an open file, which the system takes away with its process, however that ends.


def try_lock(descriptor: int) -> bool:
    """Whether this process has the lock now; OSError where the disk has no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_LEFTOVER = re.compile(r"\..*\.[a-z0-9_]{8}\.partial")
_NAME_LENGTH = 100  # of a name that may itself be as long as names can be
_SYNCED_AT_ONCE = 8
_tidied: set[str] = set()


@contextmanager
def whole_file(path: str | Path, *, sync: bool = True) -> Iterator[Path]:
    """A path to write to; the file takes the target's name once the block ends without an error."""
    with whole_files(path, sync=sync) as partial:
        yield partial


def write_whole(path: str | Path, content: str | bytes, *, sync: bool = True) -> None:
    """Replace a file as a whole; readers see the old one or the new one."""
    with whole_file(path, sync=sync) as partial:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def whole_files(path: str | Path, *, sync: bool = True) -> Iterator[Path]:
    """The same for a file that others come with, such as a shapefile: all take their names, the target last."""
    target = Path(path)
    with private_folder(target) as folder:
        yield folder / target.name
        files = sorted(folder.iterdir(), key=lambda file: file.name == target.name)
        if sync:
            sync_files(files)
        for file in files:
            file.replace(target.with_name(file.name))
    if sync:
        sync_folder(target.parent)


@contextmanager
def private_folder(target: Path) -> Iterator[Path]:
    """A folder beside the target that nobody else can write to; it is gone after the block."""
    parent = target.parent
    remove_leftovers(parent)
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=f".{target.name[:_NAME_LENGTH]}.", suffix=".partial"))
        descriptor = _locked(folder)
        if descriptor is not None:
            break
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor >= 0:
            os.close(descriptor)


def _locked(folder: Path) -> int | None:
    """A lock that tells others that this process lives; −1 where there are no locks, None where they were faster."""
    if os.name != "posix":
        return -1
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if try_lock(descriptor) and folder.exists():
            return descriptor
    except OSError:  # a disk without locks: nobody else gets one there either
        return descriptor
    os.close(descriptor)
    return None


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left unfinished in a folder; once in each process, since a folder may be large."""
    place = os.path.abspath(folder)  # noqa: PTH100 - links stay as they are
    if place in _tidied or os.name != "posix":
        return
    _tidied.add(place)
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if _LEFTOVER.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                _remove_if_left(Path(entry.path))


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if os.fstat(descriptor).st_uid == os.getuid() and try_lock(descriptor):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)


def sync_files(files: list[Path]) -> None:
    """See that these files are on the disk, some at a time: each waits for the disk, not for the processor."""
    if len(files) < 2:
        for file in files:
            _sync(file)
        return
    with ThreadPoolExecutor(min(_SYNCED_AT_ONCE, len(files))) as pool:
        list(pool.map(_sync, files))


def sync_tree(folder: Path) -> None:
    """The same for everything below a folder, and for the names themselves."""
    for here, _, names in os.walk(folder, topdown=False):
        sync_files([Path(here, name) for name in names])
        sync_folder(Path(here))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """The new name itself reaches the disk, where folders can be synced."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
