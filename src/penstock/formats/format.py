"""What a format is to Penstock: how it is recognised, what reads it, what writes it; and what is looked at for that."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.formats.exports.export_manifest import SAMPLES_NAME
from penstock.storage.plain_files import open_file

if TYPE_CHECKING:
    from penstock.formats.exports.export_manifest import ExportFacts
    from penstock.samples import Store

# Files that say nothing about what is beside them.
SILENT = ("readme.txt", "license.txt", "dataset_info.json", "requirements.txt", "classes.txt", SAMPLES_NAME)
# A folder is looked at so far: enough to tell its kind, also where it holds millions of files.
LOOKED_AT = 2000


class Found(NamedTuple):
    """Which class reads a path; empty where none can, `seen` then says what is there."""

    kind: str
    seen: str = ""


def is_named_so(look: Look, name: str) -> bool:
    """A file of this format by its first bytes or its name, or a folder of nothing but such files."""
    return look.kinds == {name} if look.is_folder else look.kind == name


@dataclass(frozen=True)
class Format:
    """A format. Modules are named and not imported: a format costs nothing before it is used.

    name         as `export(to=…)` calls it
    reader       module:class of the Source that reads it
    called       what messages call it, by default the name of that class
    infix        a part of the names of its files that says enough, wherever it stands
    endings      of its files
    magic        their first bytes, which count more than endings
    marks        whether a folder says by itself that it is one, whatever else is in it
    recognise    what reads a file or folder that no folder's mark decided; None where it is none of this format.
                 By default `reader`, for files with these first bytes or endings, and for folders of nothing else
    writer       module:class of what writes it (`formats.exporting.pieces.FormatWriter`)
    layouts      those that its writer has beside the usual one
    open_export  what reads an export again, so that nothing is guessed
    """

    name: str
    reader: str
    called: str = ""
    infix: str = ""
    endings: Sequence[str] = ()
    magic: bytes | None = None
    marks: Callable[[Path], bool] | None = None
    recognise: Callable[[Look], Found | None] | None = None
    writer: str = ""
    layouts: tuple[str, ...] = ()
    open_export: Callable[[Path, ExportFacts, dict[str, Any]], Store] | None = None

    @property
    def kind(self) -> str:
        """What reads it, by name."""
        return self.called or self.reader.partition(":")[2]

    def answer(self, look: Look) -> Found | None:
        """What reads it, None where it is none of this format."""
        if self.recognise is not None:
            return self.recognise(look)
        return Found(self.kind, look.seen) if is_named_so(look, self.name) else None


def load(place: str) -> Any:
    """What module:name says, imported now."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


class Look:
    """What is at a path, looked at once for all formats."""

    def __init__(self, path: Path, formats: Sequence[Format]) -> None:
        self.path, self.is_folder = path, path.is_dir()
        self._formats = formats

    @cached_property
    def begin(self) -> bytes:
        """The first bytes of a file."""
        with open_file(self.path) as file:
            return file.read(16)

    @cached_property
    def kind(self) -> str:
        """The format of a file, by its first bytes, then by its name; empty where it is of none."""
        by_name = self.kind_by_name(self.path)
        return next((one.name for one in self._formats if one.magic and self.begin.startswith(one.magic)), by_name)

    @cached_property
    def files(self) -> list[Path]:
        """The first visible files below a folder."""
        found: list[Path] = []
        for file in self.path.rglob("*"):
            if not any(piece.startswith(".") for piece in file.relative_to(self.path).parts) and file.is_file():
                found.append(file)
                if len(found) == LOOKED_AT:
                    break
        return found

    @cached_property
    def kinds(self) -> set[str]:
        """The formats of the files in a folder; files of none (README, checksums) say nothing."""
        return {self.kind_by_name(file) for file in self.files} - {""}

    def files_of(self, name: str) -> list[Path]:
        """The files in a folder that are of this format, by their names."""
        return [file for file in self.files if self.kind_by_name(file) == name]

    def kind_by_name(self, file: Path) -> str:
        name = file.name.lower()
        for one in self._formats:
            if one.infix and one.infix in name:
                return one.name
        if name in SILENT:
            return ""
        return next((one.name for one in self._formats if name.endswith(tuple(one.endings))), "")

    @cached_property
    def seen(self) -> str:
        """What is there, for messages."""
        if not self.is_folder:
            return f"a file that begins with {self.begin[:8]!r}"
        endings = Counter(file.suffix.lower() for file in self.files)
        return ", ".join(f"{count:,} {ending or 'without ending'}" for ending, count in endings.most_common(6))
