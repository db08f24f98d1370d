"""`open`: a path becomes the Source that reads it; what it is, is recognised by what is there, never by a flag.

Looking at a pack imports no source: what recognises the other formats is imported when something is no pack.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import DataError, OptionError, PackError, PenstockError, Problem, nearest
from penstock.packing.layout import INDEX_NAME, MANIFEST_NAME
from penstock.packing.reader import Pack
from penstock.storage.locations import refuses_urls

if TYPE_CHECKING:
    from penstock.formats.format import Found

PathLike = str | os.PathLike[str]


@refuses_urls()
def open(path: PathLike, *, verify: bool = False, **options: Any) -> Any:  # noqa: A001 - the verb is `penstock.open`
    """Open a pack, or any other data that Penstock recognises, as a Source.

    `options` go to the constructor of the source that reads it, such as `label="y"` for HDF5. With `verify`, the
    checksums of a pack (of each sample) or of MDS shards are checked when they are read.
    """
    first = _first(path)
    if first is None or is_pack(first):
        _refuse(options, "a pack")
        return Pack(os.fspath(path), verify=verify)  # which says that there is nothing, or that it is not finished
    found = _recognised(first)
    if not found.kind:
        raise _unrecognised(path, found)
    make = constructor(found.kind)
    if verify:
        options["verify"] = _verified(make, found.kind)
    _check_options(make, found.kind, options)
    return make(path, **options)


def is_pack(path: Path) -> bool:
    """Whether a path is meant to be a pack: one that lost its manifest is told so, not taken for Arrow files."""
    return path.is_dir() and (
        path.suffix == ".pack" or any((path / name).is_file() for name in (MANIFEST_NAME, INDEX_NAME))
    )


@refuses_urls()
def kind_of(path: PathLike) -> str:
    """The name of the constructor that `open` would choose; empty where it would choose none."""
    first = _first(path)
    if first is None or is_pack(first):
        return "Pack"
    return _recognised(first).kind


def constructor(kind: str) -> Callable[..., Any]:
    """A source class by its name; its module is imported now."""
    from penstock.formats.registry import reader_of

    return reader_of(kind)


def _first(path: PathLike) -> Path | None:
    """What is there under this path or pattern; None where there is nothing."""
    if Path(path).exists():
        return Path(path)
    if "*" not in os.fspath(path):
        return None
    from penstock.formats.paths import expand

    return expand(path)[0]


def _recognised(path: Path) -> Found:
    from penstock.formats.registry import recognised

    return recognised(path)


def _refuse(options: dict[str, Any], what: str) -> None:
    if options:
        raise OptionError(f"open has no option {next(iter(options))!r} for {what}. Options: verify.")


def _verified(make: Callable[..., Any], kind: str) -> bool:
    if "verify" not in inspect.signature(make).parameters:
        raise OptionError(f"verify=True is for packs and MDS shards; this is read by {kind}, which has no checksums.")
    return True


def _check_options(make: Callable[..., Any], kind: str, options: dict[str, Any]) -> None:
    """A wrong option is said by its name; classes that take columns check those themselves."""
    parameters = inspect.signature(make).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    legal = list(parameters)[1:]
    for name in options:
        if name not in legal:
            raise OptionError(f"{kind} has no option {name!r}.{nearest(name, legal)} Options: {', '.join(legal)}.")


def _unrecognised(path: PathLike, found: Found) -> PenstockError:
    is_folder = Path(path).is_dir()
    if is_folder and not any(Path(path).iterdir()):
        return DataError([Problem(os.fspath(path), None, "the folder is empty", "Name the folder with your data")])
    pack = f"it has no {MANIFEST_NAME}, so it is not a pack, and " if is_folder else ""
    return PackError(
        f"{os.fspath(path)} is not recognised: {pack}there is {found.seen}. "
        "Say what it is, with penstock.Images, Boxes, Rasters, Videos, HDF5 or Parquet, or `penstock pack images` …"
    )
