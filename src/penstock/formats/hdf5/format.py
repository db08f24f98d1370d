"""HDF5 files: how they are told, and how an export of ours is read again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.formats.exports.export_manifest import FRAME_LIST_NAME
from penstock.formats.format import Format

if TYPE_CHECKING:
    from penstock.formats.exports.export_manifest import ExportFacts
    from penstock.samples import Store


def open_export(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
    from penstock.formats.exports.exported import columns_of, of_videos
    from penstock.formats.hdf5.hdf5 import HDF5
    from penstock.formats.videos.videos import Videos

    if facts.layout == "deepethogram":
        files = [folder / video / f"{video}.h5" for video in facts.videos]
        labels = {video: folder / video / f"{video}_labels.csv" for video in facts.videos}
        return of_videos(Videos(files, **{"size": None, **options}), facts, folder / FRAME_LIST_NAME, labels)
    return HDF5(folder, **{**columns_of(facts), **options})


HDF5 = Format(
    "hdf5",
    "penstock.formats.hdf5.hdf5:HDF5",
    endings=(".h5", ".hdf5", ".he5", ".hdf"),
    magic=b"\x89HDF\r\n\x1a\n",
    writer="penstock.formats.hdf5.hdf5_writer:Hdf5",
    layouts=("deepethogram",),
    open_export=open_export,
)
