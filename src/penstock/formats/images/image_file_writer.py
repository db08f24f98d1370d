"""Images as files, one for each sample, named by their keys."""

from __future__ import annotations

from collections.abc import Callable

from penstock.codecs.headers import sniff
from penstock.formats.exporting.names import clean
from penstock.formats.exporting.pieces import Brief, Piece
from penstock.formats.exporting.rendering import ENDINGS
from penstock.storage.writing.preparing import Row

# Name without ending and path of the image, both as they are in the export.
Annotate = Callable[[Piece, Row, str, str], None]


class ImageFiles:
    """Writes the image of each sample below a folder, then lets the format write what belongs to it."""

    def __init__(self, brief: Brief, piece: Piece, folder: str, annotate: Annotate, *, folders: bool = True) -> None:
        self.brief, self.piece, self.folder = brief, piece, folder
        self.annotate, self.folders = annotate, folders

    def add(self, row: Row) -> None:
        name = self.piece.claim(self.brief.names, self.name_of(row))
        path = f"{self.folder}/{name}.{ENDINGS[sniff(row.payload)]}"
        self.piece.add_file(self.brief.folder, path, row.payload)
        self.annotate(self.piece, row, name, path)

    def name_of(self, row: Row) -> str:
        return clean(str(row.values["key"]), folders=self.folders)

    def close(self) -> None:
        """Every file is whole already."""

    def abandon(self) -> None:
        """Nothing is open."""
