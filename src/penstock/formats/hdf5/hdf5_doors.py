"""h5py behind one door: an HDF5 file is opened only where all of it lies in that file.

External storage, external links and virtual datasets let a file name any other file of the machine as its content.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.errors import DataError, Problem, require
from penstock.storage.plain_files import refuse_special

# What h5py raises on damage, beside OSError.
DAMAGE = (OSError, KeyError, RuntimeError, ValueError, TypeError, OverflowError, AttributeError, MemoryError)


def open_hdf5_file(path: Path, purpose: str = "Reading HDF5", *, check: bool = True, **options: Any) -> Any:
    """An open file; OSError where it cannot be opened, DataError where it names other files."""
    h5py = require("h5py", "formats", purpose)
    refuse_special(path)
    file = h5py.File(path, "r", **options)
    if not check:
        return file
    try:
        found = _other_file(file)
    except DAMAGE as error:
        file.close()
        raise DataError(
            [Problem(str(path), None, f"it is damaged ({_line(error)})", "Copy or write it again")]
        ) from error
    if found:
        file.close()
        what = f"{found}, and only data inside the file are read"
        raise DataError([Problem(str(path), None, what, "Copy the data into one file, for example with h5repack")])
    return file


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _other_file(file: Any) -> str:
    """What in a file lies in another one; empty where nothing does. Groups may be linked in circles."""
    import h5py

    seen, groups = set(), [file["/"]]
    while groups:
        group = groups.pop()
        address = h5py.h5o.get_info(group.id).addr
        if address in seen:
            continue
        seen.add(address)
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                return f"{group.name.rstrip('/')}/{name} is a link to the file {link.filename!r}"
            if isinstance(link, h5py.SoftLink):
                continue  # to a place in this file, which is visited by its own name
            item = group[name]
            if isinstance(item, h5py.Group):
                groups.append(item)
            elif isinstance(item, h5py.Dataset) and (found := _outside(item)):
                return found
    return ""


def _outside(dataset: Any) -> str:
    if dataset.external:
        return f"{dataset.name} is stored in the file {dataset.external[0][0]!r}"
    if dataset.is_virtual:
        others = [source.file_name for source in dataset.virtual_sources() if source.file_name != "."]
        if others:
            return f"{dataset.name} is made of the file {others[0]!r}"
    return ""
