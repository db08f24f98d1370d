"""One writer at a time for each pack. The lock vanishes with its process, however that ends."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import PackError
from penstock.storage.whole_files import try_lock


class BeingWritten(PackError):  # noqa: N818 - it is a state, and whoever waits for it catches it
    """Another process is writing this pack."""


@contextmanager
def writer_lock(pack: Path) -> Iterator[None]:
    """Hold the lock of a pack, or raise at once when another process does."""
    path = pack.with_name(f".{pack.name}.lock")
    descriptor = _locked_descriptor(path, pack)
    try:
        yield
    finally:
        with suppress(PermissionError):  # Windows keeps open files; the next writer takes this one over
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _locked_descriptor(path: Path, pack: Path) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        except PermissionError as error:
            raise PackError(f"{path.parent} cannot be written to. Choose another path.") from error
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise PackError(
                f"{path} is a link and not ours; it is left alone. Remove it, or choose another path."
            ) from error
        if not _has_lock(descriptor, path):
            os.close(descriptor)
            raise BeingWritten(f"another process is writing {pack}. Wait for it, or choose another path.")
        # The holder before us may have removed the file between our opening and our locking it.
        if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
        os.close(descriptor)


def _has_lock(descriptor: int, path: Path) -> bool:
    """Whether this process has the lock; where the disk has none, the file that was made for it is removed again."""
    try:
        return try_lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        path.unlink(missing_ok=True)
        raise PackError(
            f"{path} cannot be locked: {error.strerror}. The disk of {path.parent} has no locks (NFS without a lock "
            "service?), and two writers of one name would not notice each other. Choose a path on another disk, "
            "or have locks turned on."
        ) from error
