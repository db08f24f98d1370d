"""export.yaml: what an export is and what it was made from; and an export as Python sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import PackError
from penstock.formats.exports.export_manifest import MANIFEST_NAME, MARK
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_text
from penstock.storage.writing.places import Made
from penstock.wording import counted

EXPORT = Made("export", MANIFEST_NAME, has_folders=True)


@dataclass(frozen=True)
class Export:
    """A finished export: where it is and what is in it, as export.yaml says."""

    path: Path
    to: str
    samples: int
    files: int
    bytes: int
    splits: dict[str, int]
    classes: tuple[str, ...]
    videos: tuple[dict[str, Any], ...] = ()
    left_out: tuple[str, ...] = ()
    skipped: tuple[dict[str, Any], ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    made_from: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"<Export {self.path.name}: {counted(self.samples, 'sample')} as {self.to}, {counted(self.files, 'file')}>"
        )


def write_manifest(folder: Path, values: dict[str, Any]) -> None:
    """Write export.yaml, last, with the number and size of all other files."""
    sizes = [path.stat().st_size for path in files_of(folder)]
    values = {"format": MARK, **values, "files": len(sizes), "bytes": sum(sizes)}
    text = json.dumps(values, indent=1, ensure_ascii=False)
    (folder / MANIFEST_NAME).write_text(text + "\n", encoding="utf-8")


def read_export(path: str | Path) -> Export:
    """What export.yaml says, or why this is no export."""
    folder = Path(path)
    try:
        values = load_json(read_text(folder / MANIFEST_NAME))
        return Export(
            path=folder,
            to=values["to"],
            samples=values["samples"],
            files=values["files"],
            bytes=values["bytes"],
            splits=values["splits"],
            classes=tuple(values["classes"]),
            videos=tuple(values["videos"]),
            left_out=tuple(values["left_out"]),
            skipped=tuple(values["skipped"]),
            options=values["options"],
            made_from=values["made_from"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PackError(f"{folder / MANIFEST_NAME} does not describe an export: {error}") from error


def refuse_if_touched(folder: Path) -> None:
    """Replacing an export removes its folder: refuse where it holds anything else."""
    known = read_export(folder)
    sizes = [path.stat().st_size for path in files_of(folder)]
    if (len(sizes), sum(sizes)) != (known.files, known.bytes):
        raise PackError(
            f"{folder} has {counted(len(sizes), 'file')} of {sum(sizes):,} bytes, and was written with "
            f"{counted(known.files, 'file')} of "
            f"{known.bytes:,}. Somebody changed it, so it is not replaced: remove it yourself, or choose another path."
        )


def files_of(folder: Path) -> Iterator[Path]:
    """Every file of an export but its manifest."""
    for here, _, names in os.walk(folder):
        for name in names:
            path = Path(here, name)
            if path != folder / MANIFEST_NAME:
                yield path
