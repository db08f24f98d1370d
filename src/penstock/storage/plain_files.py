"""Files that others made, opened for reading: a pipe would wait for ever and a device never ends.

| path leads to                    | becomes                                            |
|----------------------------------|----------------------------------------------------|
| a file                           | an open file, its bytes, its text                  |
| a folder                         | IsADirectoryError                                  |
| a pipe, a socket, a device       | OSError that says so, before anything is opened    |

Readers catch OSError anyway. A library that opens files by itself is given a path after `refuse_special`.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

# A pipe that takes the place of a file between asking and opening is opened without waiting, and then refused.
READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def refuse_special(path: str | os.PathLike[str]) -> None:
    """Raise OSError where a path is no regular file; a link is what it leads to."""
    refuse_special_mode(os.stat(path).st_mode, path)  # noqa: PTH116 - asked for every image


def refuse_special_mode(mode: int, path: str | os.PathLike[str]) -> None:
    """The same for a mode that is known already."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    kind = _KINDS.get(stat.S_IFMT(mode), "something special")
    raise OSError(errno.EINVAL, f"it is {kind}, not a file", os.fspath(path))


def open_file(path: str | os.PathLike[str], buffer_size: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """A regular file, open for reading its bytes."""
    return io.BufferedReader(open_unbuffered(path), buffer_size)


def open_unbuffered(path: str | os.PathLike[str]) -> io.FileIO:
    """The same for who reads large stretches."""
    refuse_special(path)
    descriptor = os.open(path, READING)
    try:
        refuse_special_mode(os.fstat(descriptor).st_mode, path)
        return io.FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: str | os.PathLike[str]) -> bytes:
    """All bytes of a regular file."""
    with open_file(path) as file:
        return file.read()


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8", errors: str = "strict") -> str:
    """All text of a regular file, with \\n at the end of its lines."""
    with open_file(path) as file, io.TextIOWrapper(file, encoding=encoding, errors=errors) as text:
        return text.read()


def special_kind(path: str | os.PathLike[str]) -> str:
    """What is at a path that is neither file nor folder, in words; empty otherwise, or where nothing is."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return ""
    return _KINDS.get(stat.S_IFMT(mode), "")
