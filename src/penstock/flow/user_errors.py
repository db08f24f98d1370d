"""Errors in functions of the user, with the line of theirs that raised them."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from pathlib import Path

from penstock.codecs.headers import UnreadableImage
from penstock.errors import OptionError, PackError

OURS = str(Path(__file__).resolve().parents[1])
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def reason_of(error: BaseException) -> str:
    """What happened, with the kind of error and the user's own line if it is not one of ours."""
    text = str(error) or "without a message"
    if isinstance(error, (OSError, PackError, OptionError, UnreadableImage)):
        return text
    return f"{type(error).__name__}: {text}{_place(error)}"


def reason_in_function(error: BaseException) -> str:
    """The same for what only functions of the user can raise: also of an OSError the line is told."""
    if isinstance(error, (PackError, OptionError)):
        return str(error)
    return f"{type(error).__name__}: {str(error) or 'without a message'}{_place(error)}"


def _place(error: BaseException) -> str:
    """The innermost line that is neither ours nor of a library; of a library, if there is no other."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(OURS)]
    own = [frame for frame in frames if not frame.filename.startswith(LIBRARIES)]
    found = next(iter(reversed(own or frames)), None)
    if found is None or found.filename == getattr(sys.modules[__name__], "__file__", None):
        return ""
    return f" (in {found.name}, {found.filename} line {found.lineno})"
