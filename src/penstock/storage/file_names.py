"""File names as text that every format can store.

A name on Linux is bytes. Python gives a byte that is no UTF-8 as a lone surrogate, which no UTF-8 file or Arrow column
can hold. In keys, groups, classes and tables such a byte is written as `\\xe9`; files are opened by their real name.
"""

from __future__ import annotations


def readable_name(name: str) -> str:
    """A name as plain text; what is UTF-8 stays as it is."""
    if name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
