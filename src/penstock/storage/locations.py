"""Where data may lie: on disks that the system has; names as text, and the folder for what is kept."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from penstock.errors import DataError, OptionError, Problem
from penstock.storage.plain_files import special_kind

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

# A letter and a colon is a drive of Windows.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
MODELS = "hf://"
OPTIONAL_PATHS = ("data", "images")  # arguments with a default that are paths if they are given


def refuse_urls(*values: Any, is_model: bool = False) -> None:
    """Raise for any of these values, or items of a list, that is a URL (hf:// names a model), a pipe or a device."""
    for value in values:
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, str | os.PathLike):
                _refuse_url(item, is_model)
                _refuse_special(item)


def _refuse_special(path: str | os.PathLike[str]) -> None:
    kind = special_kind(path)
    if kind:
        what = f"it is {kind}, not a file or folder"
        raise DataError([Problem(str(path), None, what, "Copy what comes from it into a file, and pass that")])


def _refuse_url(path: str | os.PathLike[str], is_model: bool) -> None:
    text = os.fspath(path)
    if not isinstance(text, str) or _SCHEME.match(text) is None:
        return
    # pathlib makes s3:/data of s3://data; a folder that really has such a name exists.
    is_url = "://" in text if isinstance(path, str) else not Path(path).exists()
    if not is_url or (is_model and text.startswith(MODELS)):
        return
    if text.startswith("file:"):
        raise OptionError(f"{text} is a URL. Pass the path of the file alone, without file://.")
    if text.startswith(MODELS):
        raise OptionError(f"{text} names a model, and this asks for a local path. Pass the path of a file or folder.")
    raise OptionError(
        f"{text} is a URL, and Penstock reads and writes local disks only. "
        "Copy the data to a local disk, or mount the store, and pass that path."
    )


def refuse_empty(value: Any) -> None:
    """Raise for a path, or an item of a list, that is an empty text: Python would take it for the current folder."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, str) and not item:
            raise OptionError("the path is empty. Name a file or folder; '.' is the current folder.")


def refuses_urls(*, model: str | None = None) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """A door: no argument of the function may be a pipe, a device or a URL, except hf:// for the one that is a model.

    An argument that must be given, `data` or `images` may not be an empty text, which would be the current folder.
    Names of classes may look like URLs (ontologies have such names), so a list of them is not looked at.
    """

    def decorate(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        required = names[: len(names) - len(function.__defaults__ or ())]

        @functools.wraps(function)
        def checked(*positional: Arguments.args, **named: Arguments.kwargs) -> Answer:
            for name, value in (*zip(names, positional, strict=False), *named.items()):
                if name != "self" and not (name == "classes" and isinstance(value, list | tuple)):
                    refuse_urls(value, is_model=name == model)
                if name in (*required, *OPTIONAL_PATHS):
                    refuse_empty(value)
            return function(*positional, **named)

        return checked

    return decorate


# File names as text that every format can store.
#
# A name on Linux is bytes. Python gives a byte that is no UTF-8 as a lone surrogate, which no UTF-8 file or Arrow
# column can hold. In keys, groups, classes and tables such a byte is written as `\xe9`; files are opened by their
# real name.


def readable_name(name: str) -> str:
    """A name as plain text; what is UTF-8 stays as it is."""
    if name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


# Where Penstock keeps what it worked out once: settings that were found, samples that a filter chose.


def cache_folder() -> Path:
    """PENSTOCK_CACHE, else `penstock` in the cache folder of the user; it need not exist."""
    own = os.environ.get("PENSTOCK_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "penstock"
