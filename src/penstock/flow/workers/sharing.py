"""Memory that processes share: without a name, so that nothing is left behind however they end.

A file in memory (memfd) is made, sized and handed over by descriptor. Once all have mapped it, no descriptor is
needed any more; the system takes the memory back with the last mapping.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import socket
import weakref
from typing import Any

from penstock.errors import RecipeError


def is_available() -> bool:
    """Whether this system has memory without a name, and can hand over descriptors."""
    return hasattr(os, "memfd_create") and hasattr(socket, "send_fds")


def new_memory(size: int, purpose: str) -> int:
    """The descriptor of `size` bytes that exist: using memory that was only promised could end the process."""
    descriptor = os.memfd_create("penstock", os.MFD_CLOEXEC)
    try:
        os.posix_fallocate(descriptor, 0, max(size, 1))
    except OSError as error:
        os.close(descriptor)
        raise RecipeError(
            f"there is no shared memory left for {purpose}: {size / 2**20:,.1f} MB were needed ({error.strerror}). "
            'Use smaller batches, a smaller prefetch, fewer workers, or executor="thread", which needs none.'
        ) from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def mapped(descriptor: int, size: int, *, private: bool = False) -> Any:
    """The memory behind a descriptor as a writable buffer, mapped until nobody holds it.

    `private` keeps what is written to this process. Python's mmap would keep a descriptor for each mapping, and a
    user who keeps a thousand batches would run out of them.
    """
    size = max(size, 1)
    kind = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED
    address = _library().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, kind, descriptor, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, f"{size:,} bytes of shared memory cannot be mapped: {os.strerror(number)}")
    memory = (ctypes.c_ubyte * size).from_address(address)
    # Not at exit: arrays over it may be in use until the very end.
    weakref.finalize(memory, _library().munmap, address, size).atexit = False
    return memory


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    number = ctypes.c_int
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, number, number, number, ctypes.c_int64)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return library
