"""Files of NumPy: how they are told, and how an export of ours is read again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.formats.format import Format

if TYPE_CHECKING:
    from penstock.formats.exports.export_manifest import ExportFacts
    from penstock.samples import Store


def open_export(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
    from penstock.formats.exports.exported import columns_of
    from penstock.formats.numpy.arrays import Arrays

    ending = ".npz" if facts.layout == "npz" else ""
    paths = [folder / f"{video}{ending}" for video in facts.videos]
    return Arrays(paths or (folder / "samples.npz" if ending else folder), **{**columns_of(facts), **options})


NUMPY = Format(
    "numpy",
    "penstock.formats.numpy.arrays:Arrays",
    endings=(".npy", ".npz"),
    magic=b"\x93NUMPY",
    writer="penstock.formats.numpy.numpy_writer:Numpy",
    layouts=("npz",),
    open_export=open_export,
)
