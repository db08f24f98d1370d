"""Pascal VOC: one XML per image. The numbers are kept as the file has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.parsers import expat

import numpy as np

from penstock.errors import DataError, Problem
from penstock.formats.boxes.box_tables import frame_of_boxes
from penstock.formats.boxes.rows import ImageName, Rows, make_rows, numbered
from penstock.formats.paths import PathLike, expand, files_below
from penstock.storage.locations import refuses_urls
from penstock.storage.plain_files import open_file, read_file, read_text

if TYPE_CHECKING:
    import pandas as pd

ANNOTATIONS, IMAGES = "Annotations", "JPEGImages"
# Lists of ImageSets/Main that tell a split; `trainval` joins two, and `cat_train` is about one class.
SPLIT_LISTS = ("train", "val", "test", "gap")
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


@refuses_urls()
def read_pascal_voc(path: PathLike | Sequence[PathLike]) -> pd.DataFrame:
    """The boxes of a Pascal VOC file, a folder or pattern of them: image_path, xmin, ymin, xmax, ymax, label."""
    files = [file for given in expand(path) for file in (files_below(given, [".xml"]) if given.is_dir() else [given])]
    rows = voc_rows(files)
    if rows.problems:
        raise DataError(rows.problems)
    return frame_of_boxes(rows)


class _Object:
    """One <object> while it is read."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.texts: dict[str, str] = {}
        self.repeated: list[str] = []

    def corners(self) -> list[float]:
        """Four numbers; NaN for one that is missing or no number."""
        return [_number(self.texts.get(name, "")) for name in _CORNERS]


class _Document:
    """What one XML says: the name of its image, and its objects with their lines."""

    def __init__(self) -> None:
        self.root = ""
        self.filename = ""
        self.damaged = False
        self.objects: list[_Object] = []
        self.misplaced = ""  # the first <object> that is not where Pascal VOC has it
        self._path: list[str] = []
        self._text: list[str] = []
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def parse(self, data: bytes) -> None:
        self._parser.Parse(data, True)

    def _start(self, name: str, _: dict[str, str]) -> None:
        self.root = self.root or name
        self._path.append(name)
        self._text = []
        if name == "object" and len(self._path) == 2:
            self.objects.append(_Object(self._parser.CurrentLineNumber))
        elif name == "object" and "object" not in self._path[:-1]:
            self.misplaced = self.misplaced or "/".join(self._path)

    def _characters(self, text: str) -> None:
        self._text.append(text)

    def _end(self, name: str) -> None:
        text = "".join(self._text).strip()
        depth = len(self._path)
        if depth == 2 and name == "filename":
            self.filename = text
        elif self._path[1:2] == ["object"]:
            self._keep(name, depth, text)
        self._path.pop()
        self._text = []

    def _keep(self, name: str, depth: int, text: str) -> None:
        """The name of an object, and its own corners; those of <part> lie deeper and are left alone."""
        inside_box = depth == 4 and self._path[2] == "bndbox" and name in _CORNERS
        if inside_box or (depth == 3 and name == "name"):
            found = self.objects[-1]
            found.repeated += [name] if name in found.texts else []
            found.texts[name] = text


def is_xml(file: Path) -> bool:
    """Whether a file begins as XML does, whatever its ending."""
    with open_file(file) as opened:
        return opened.read(256).removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"<?xml", b"<annotation"))


def voc_rows(files: Sequence[Path]) -> Rows:
    """Rows of VOC files; a file without objects lists its image as a negative."""
    images, lines, tables, labels, boxes = [], [], [], [], []
    broken: list[bool] = []
    problems: list[Problem] = []
    for number, file in enumerate(files):
        document = _read(file, problems)
        images.append(ImageName(document.filename.replace("\\", "/"), file.parent, stem=file.stem))
        for found in document.objects:
            corners = found.corners()
            wrong = _wrong_corners(file, found) if found.repeated or any(np.isnan(corners)) else []
            problems += wrong
            boxes.append([np.nan] * 4 if wrong else corners)
            broken.append(bool(wrong))
            lines.append(found.line)
            labels.append(found.texts.get("name", ""))
            tables.append(number)
        if not document.objects:
            boxes.append([np.nan] * 4)
            broken.append(document.damaged)
            lines.append(1)
            labels.append("")
            tables.append(number)
    codes, names = numbered(labels)
    kept = [name for name in names if name]
    order = np.array([kept.index(name) if name else -1 for name in names], np.int64)
    return make_rows(
        tables=[str(file) for file in files],
        images=images,
        labels=kept,
        table=tables,
        line=lines,
        image=tables,
        label=order[codes] if len(codes) else [],
        box=boxes,
        broken=broken,
        problems=problems,
    )


def is_voc_root(folder: Path) -> bool:
    """Whether a folder has the layout of Pascal VOC's own."""
    return (folder / ANNOTATIONS).is_dir() and (folder / IMAGES).is_dir()


def voc_root_rows(folder: Path) -> Rows:
    """Rows of a whole VOC folder: the images are in JPEGImages, and the lists in ImageSets/Main tell the splits."""
    files = files_below(folder / ANNOTATIONS, [".xml"])
    if not files:
        raise DataError([Problem(str(folder / ANNOTATIONS), None, "there is no .xml file in it", "Name the files")])
    rows = voc_rows(files)
    lists = {name: _listed(folder / "ImageSets" / "Main" / f"{name}.txt") for name in SPLIT_LISTS}
    splits = {
        number: found[0]
        for number, file in enumerate(files)
        if len(found := [name for name, stems in lists.items() if file.stem in stems]) == 1
    }
    images = tuple(image._replace(folder=folder / IMAGES) for image in rows.images)
    # Lists that leave images out, or have some twice, are no splits.
    return replace(rows, images=images, splits=splits if len(splits) == len(files) else {})


def _listed(path: Path) -> set[str]:
    try:
        return {line.strip() for line in read_text(path, errors="replace").splitlines()}
    except OSError:
        return set()


def _read(file: Path, problems: list[Problem]) -> _Document:
    """What a file says; a damaged one says nothing but the name of its image."""
    document = _Document()
    before = len(problems)
    try:
        document.parse(read_file(file))
    except expat.ExpatError as error:
        what = f"is no whole XML: {expat.ErrorString(error.code)}"
        problems.append(Problem(str(file), error.lineno, what, "Export the file again"))
    except OSError as error:
        problems.append(Problem(str(file), None, f"cannot be read: {error.strerror}", "Check the file"))
    else:
        if document.root != "annotation":
            what = f"is no Pascal VOC file: its first element is <{document.root}>, expected <annotation>"
            problems.append(Problem(str(file), None, what, "Leave it out, or export it as Pascal VOC"))
        elif document.misplaced:
            what = f"is no Pascal VOC file: its objects are in {document.misplaced}, expected annotation/object"
            problems.append(Problem(str(file), None, what, "Leave it out, or export it as Pascal VOC"))
    if len(problems) > before:
        document.damaged, document.objects = True, []
    return document


def _wrong_corners(file: Path, found: _Object) -> list[Problem]:
    """What is wrong with the corners of an object, each by its name."""
    problems = []
    if found.repeated:
        what = f"in this object {found.repeated[0]} stands more than once"
        problems.append(Problem(str(file), found.line, what, "Write one <object> for each box"))
    for name in _CORNERS:
        text = found.texts.get(name)
        if text is None or not np.isfinite(_number(text)):
            what = f"{name} is missing" if not text else f"{name} {text!r} is not a finite number"
            problems.append(Problem(str(file), found.line, f"in this object {what}", "Write a number in pixels"))
    return problems


def _number(text: str) -> float:
    """The number, or NaN for what is none or not finite."""
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if np.isfinite(value) else np.nan
