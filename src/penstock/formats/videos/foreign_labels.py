"""Label files of other programs that are not read: what they are, and how to get what is read out of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from penstock.errors import Problem
from penstock.storage.plain_files import open_file

_BEGINNING_BYTES = 4096
_IN_BORIS = "In BORIS, export Observations > Export events > Tabular events as TSV or CSV, and pass that file"
_AS_CSV = "Save the sheet as CSV, and pass that file"
_AS_EVENTS = "Export a table with the columns video, start_s, stop_s, behaviour as CSV, and pass that file"


class ForeignKind(NamedTuple):
    """A kind of file, by its ending or by how it begins."""

    what: str
    remedy: str
    endings: tuple[str, ...] = ()
    beginning: re.Pattern[bytes] | None = None


_KINDS = (
    ForeignKind(
        "a BORIS project",
        _IN_BORIS,
        (".boris",),
        re.compile(rb'\s*\{.*"(behaviors_conf|project_format_version)"', re.S),
    ),
    ForeignKind(
        "a BENTO annotation file",
        _AS_EVENTS,
        (".annot",),
        re.compile(rb"\s*Bento annotation file", re.IGNORECASE),
    ),
    ForeignKind(
        "a spreadsheet (Excel or OpenDocument)",
        _AS_CSV,
        (".xlsx", ".xls", ".xlsm", ".ods"),
        re.compile(rb"PK\x03\x04|\xd0\xcf\x11\xe0"),
    ),
    ForeignKind(
        "a file of The Observer",
        _AS_EVENTS,
        (".otx", ".otb", ".odx", ".odf"),
        re.compile(rb".{0,200}<(\w+:)?OBS_", re.S),
    ),
    ForeignKind(
        "an ELAN annotation document", _AS_EVENTS, (".eaf",), re.compile(rb".{0,300}<ANNOTATION_DOCUMENT", re.S)
    ),
    ForeignKind(
        "a file of JWatcher", _AS_EVENTS, (".faf", ".fmf", ".dat"), re.compile(rb"FirstLineOfData", re.IGNORECASE)
    ),
    ForeignKind("a SLEAP project, which holds poses and no behaviours", _AS_EVENTS, (".slp",)),
    ForeignKind("a MATLAB file", _AS_EVENTS, (".mat",), re.compile(rb"MATLAB 5\.0")),
    ForeignKind("a pickle, which may run code and is never read", _AS_EVENTS, (".pkl", ".pickle")),
    ForeignKind(
        "a JABS annotation file", _AS_EVENTS, (), re.compile(rb'\s*\{.*"(labels|unfragmented_labels)"\s*:', re.S)
    ),
    ForeignKind("JSON", _AS_EVENTS, (".json",), re.compile(rb"\s*[\{\[]\s*[\"\{\[]")),
    ForeignKind("a web page", _AS_CSV, (".html", ".htm"), re.compile(rb"\s*<(!doctype|html)", re.IGNORECASE)),
    ForeignKind("XML", _AS_EVENTS, (".xml",), re.compile(rb"\s*<\?xml")),
)
FOREIGN_ENDINGS = frozenset(
    ending for kind in _KINDS for ending in kind.endings if ending not in (".dat", ".json", ".xml")
)


def foreign_problem(path: Path, *, warning: bool = False) -> Problem | None:
    """That a file is of another program, in one line; None where it may be a table."""
    kind = _kind(path)
    if kind is None:
        return None
    return Problem(path.as_posix(), None, f"is {kind.what}, which is not read as labels", kind.remedy, warning=warning)


def _kind(path: Path) -> ForeignKind | None:
    ending = path.suffix.lower()
    by_ending = next((kind for kind in _KINDS if ending in kind.endings), None)
    if by_ending is not None or not path.is_file():
        return by_ending
    with open_file(path) as file:
        beginning = file.read(_BEGINNING_BYTES).removeprefix(b"\xef\xbb\xbf")
    return next((kind for kind in _KINDS if kind.beginning is not None and kind.beginning.match(beginning)), None)
