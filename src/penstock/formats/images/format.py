"""Image files: in folders by class, beside a table, as frames of videos; what else lies there says who reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.formats.exports.export_manifest import FRAMES_NAME
from penstock.formats.format import Format, Found, Look
from penstock.formats.paths import IMAGE_ENDINGS
from penstock.formats.rasters.format import TIFF_ENDINGS, are_rasters

if TYPE_CHECKING:
    from penstock.formats.exports.export_manifest import ExportFacts
    from penstock.samples import Store

NAME, TABLES = "directory", "csv"


def recognise(look: Look) -> Found | None:
    if not look.is_folder:
        if look.kind != NAME:
            return None
        return Found("Rasters" if look.path.suffix.lower() in TIFF_ENDINGS else "", "one image")
    return Found(_kind_of_folder(look), look.seen) if look.kinds in ({NAME}, {NAME, TABLES}) else None


def _kind_of_folder(look: Look) -> str:
    """Maps, images beside a table of boxes, or images whose folders are classes.

    Maps beside tables are not guessed: whether the tables belong to them must be said (`Rasters(…, boxes=…)`).
    """
    from penstock.formats.tables import kind_of_table

    tables = look.files_of(TABLES)
    if any(kind_of_table(table) == "Boxes" for table in tables):
        return "Boxes"
    if not are_rasters(look.files_of(NAME)):
        return "Images"
    return "" if any(table.suffix.lower() != ".txt" for table in tables) else "Rasters"


def open_export(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
    from penstock.formats.boxes.boxes import Boxes
    from penstock.formats.exports.exported import classes_of, of_videos, with_table
    from penstock.formats.images.images import Images
    from penstock.formats.videos.videos import Videos

    has_boxes = any(field.kind == "boxes" for field in facts.schema.fields)
    if facts.videos and not has_boxes:
        videos = Videos([folder / video for video in facts.videos], **{"size": None, **options})
        labels = {video: folder / "labels" / f"{video}.csv" for video in facts.videos}
        return of_videos(videos, facts, folder / FRAMES_NAME, labels)
    table = folder / (FRAMES_NAME if facts.videos else "labels.csv")
    if has_boxes:
        return with_table(Boxes(folder / "boxes.csv", **{**classes_of(facts), **options}), facts, table)
    return with_table(Images(table, **{**classes_of(facts), **options}), facts, table)


DIRECTORY = Format(
    NAME,
    "penstock.formats.images.images:Images",
    endings=tuple(IMAGE_ENDINGS),
    recognise=recognise,
    writer="penstock.formats.images.directory_writer:Directory",
    layouts=("named", "numbered"),
    open_export=open_export,
)
