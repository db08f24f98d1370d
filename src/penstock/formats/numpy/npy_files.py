"""`.npy` and `.npz` files, mapped where their bytes lie in one piece."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import npy
from penstock.errors import DataError, Problem
from penstock.storage.free_memory import check_unpacked
from penstock.storage.mapped import mapped_array
from penstock.storage.plain_files import open_file

_OBJECTS = "it holds Python objects, which are read by running code from the file"
_SAID_OF_OBJECTS = ("allow_pickle", "Object arrays", "Python objects")  # by numpy
_SAVE_AGAIN = "Save plain numbers: np.save(path, np.stack(list_of_arrays))"


def load_npy(path: Path) -> NDArray[Any]:
    """A .npy file as a mapped array."""
    try:
        with open_file(path) as file:
            return _mapped(path, file, path.stat().st_size)
    except (ValueError, OSError, EOFError) as error:
        raise _unreadable(path, error) from error


# The longest end of an archive with its comment, and the count of an archive with more than 65,534 members.
_LONGEST_END, _COUNTED_ELSEWHERE = 22 + 65_535, 65_535


def load_npz(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz file: stored ones are mapped, compressed ones are read once."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_count(path, len(archive.infolist()))
            return {info.filename.removesuffix(".npy"): _member(path, archive, info) for info in archive.infolist()}
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, struct.error) as error:
        raise _unreadable(path, error) from error


def _check_count(path: Path, listed: int) -> None:
    """Refuse an archive whose end counts other members than its list has: zipfile does not compare them."""
    with open_file(path) as file:
        file.seek(max(path.stat().st_size - _LONGEST_END, 0))
        end = file.read()
    at = end.rfind(b"PK\5\6")
    counted = struct.unpack_from("<H", end, at + 10)[0] if 0 <= at <= len(end) - 22 else None
    if counted not in (listed, _COUNTED_ELSEWHERE):
        raise ValueError(f"its list has {listed} arrays, and its end counts {counted}")


def _member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    try:
        if info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 0x1:
            return _mapped_member(path, info)
        check_unpacked(info.file_size, info.compress_size)
        with archive.open(info) as member:
            # No more than was declared: what follows is not asked for.
            return npy.load_npy(member.read(info.file_size))
    except (ValueError, RuntimeError, EOFError, struct.error, zlib.error, zipfile.BadZipFile) as error:
        raise _unreadable(path, error, info.filename) from error


def _mapped_member(path: Path, info: zipfile.ZipInfo) -> NDArray[Any]:
    """The name and extra field before a member may differ from those in the directory, so its own header is read."""
    with open_file(path) as file:
        file.seek(info.header_offset)
        header = file.read(30)
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            raise ValueError("its archive is damaged")
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        start = info.header_offset + 30 + name_length + extra_length
        file.seek(start)
        return _mapped(path, file, min(info.file_size, path.stat().st_size - start))


def _mapped(path: Path, file: IO[bytes], size: int) -> NDArray[Any]:
    """The array that begins here in a file and has at most so many bytes with its header."""
    shape, is_fortran, dtype = npy.read_npy_header(file, size)
    if not math.prod(shape) * dtype.itemsize:
        return np.zeros(shape, dtype)
    return mapped_array(path, dtype, shape, file.tell(), is_fortran=is_fortran)


def _unreadable(path: Path, error: Exception, member: str = "") -> DataError:
    where = f"{member}: " if member else ""
    if any(words in str(error) for words in _SAID_OF_OBJECTS):
        return DataError([Problem(str(path), None, f"{where}{_OBJECTS}", _SAVE_AGAIN)])
    what = f"{where}it cannot be read ({error})"
    return DataError([Problem(str(path), None, what, "Check that it is a whole file that numpy.save or savez wrote")])
