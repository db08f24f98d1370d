"""Indexes that took reading through files to make are kept, for as long as those files stay the same.

    cache folder / indexes / <hash of files and options> / about.json, one .npy for each column

Columns are mapped when they are found again, so that an index of 10⁷ samples costs no memory in any process. An index
that is missing, broken, or cannot be written is made again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.codecs.npy import HEADER_DAMAGE
from penstock.formats.indexed.mapped_files import FileState
from penstock.storage.documents import load_json
from penstock.storage.locations import cache_folder
from penstock.storage.mapped import guarded
from penstock.storage.plain_files import read_text
from penstock.storage.whole_files import private_folder

VERSION = 1
MOST_INDEXES = 200
_ABOUT = "about.json"


@dataclass(frozen=True)
class Index:
    """Columns with one row for each sample, and what is true of all of them; `about` is plain JSON."""

    columns: dict[str, NDArray[Any]]
    about: dict[str, Any]


def index_name(states: Sequence[FileState], options: Any) -> str:
    """What tells an index from all others: the files as they are, and what was asked of them."""
    return xxhash.xxh3_128_hexdigest(repr((VERSION, [tuple(state) for state in states], options)).encode())


def kept_index(name: str, make: Callable[[], Index]) -> Index:
    """The index of this name, made where it is not there yet."""
    folder = _folder(name)
    found = None if folder is None else _read(folder)
    if found is not None:
        return found
    made = make()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)  # a broken one
        _write(folder, made)
    return made


def _folder(name: str) -> Path | None:
    try:
        return cache_folder() / "indexes" / name
    except RuntimeError:  # there is no home folder
        return None


def _read(folder: Path) -> Index | None:
    try:
        about = load_json(read_text(folder / _ABOUT))
        columns = {one: _mapped(folder / f"{one}.npy") for one in about["columns"]}
        return Index(columns, dict(about["about"]))
    except (OSError, AttributeError, *HEADER_DAMAGE):  # made again
        return None


def _mapped(path: Path) -> NDArray[Any]:
    """A column as a plain array over mapped bytes; an empty file cannot be mapped."""
    try:
        return guarded(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError:
        return np.asarray(np.load(path, allow_pickle=False))


def _write(folder: Path, index: Index) -> None:
    """Keep it, whole or not at all; a folder that cannot be written is no error, nor a process that was faster."""
    with suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with private_folder(folder) as workshop:
            made = workshop / folder.name
            made.mkdir()
            for name, column in index.columns.items():
                np.save(made / f"{name}.npy", column)
            text = json.dumps({"columns": list(index.columns), "about": index.about})
            (made / _ABOUT).write_text(text, encoding="utf-8")
            made.rename(folder)
        _forget_oldest(folder.parent)


def _forget_oldest(folder: Path) -> None:
    """What is still mapped somewhere stays readable there."""
    found = sorted((path for path in folder.iterdir() if not path.name.startswith(".")), key=_changed)
    for path in found[: max(len(found) - MOST_INDEXES, 0)]:
        shutil.rmtree(path, ignore_errors=True)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process forgot it just now
        return 0.0


def joined_texts(name: str, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Texts as two columns: all their bytes, and where each ends."""
    encoded = [text.encode("utf-8", "surrogateescape") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64) if encoded else np.zeros(0, np.int64)
    return {f"{name}.bytes": np.frombuffer(b"".join(encoded), np.uint8), f"{name}.ends": ends}


def text_of(columns: dict[str, NDArray[Any]], name: str, index: int) -> str:
    """One of the texts of `joined_texts`."""
    ends = columns[f"{name}.ends"]
    start = int(ends[index - 1]) if index else 0
    return columns[f"{name}.bytes"][start : int(ends[index])].tobytes().decode("utf-8", "surrogateescape")
