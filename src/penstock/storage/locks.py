"""A lock on an open file, which the system takes away with its process, however that ends."""

from __future__ import annotations


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
