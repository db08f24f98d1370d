"""One writer at a time for each pack. The lock vanishes with its process, however that ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import PackError


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
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except PermissionError as error:
            raise PackError(f"{path.parent} cannot be written to. Choose another path.") from error
        if not _try_lock(descriptor):
            os.close(descriptor)
            raise BeingWritten(f"another process is writing {pack}. Wait for it, or choose another path.")
        # The holder before us may have removed the file between our opening and our locking it.
        if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
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
