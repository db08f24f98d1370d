"""Small pictures of a Run, inside of a page."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from penstock.reporting.markup import Markup, tag

MOST_BYTES = 300_000  # a thumbnail has a few thousand; what is larger was not made by a training
KINDS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}


def thumbnail(folder: Path, name: Any, description: str) -> Markup:
    """A picture of a Run, or a frame that says that there is none."""
    source = picture_source(folder, name)
    if source is None:
        return tag("div", "no picture", class_="blank", role="img", aria_label=f"No picture: {description}")
    return tag("img", src=source, alt=description)


def picture_source(folder: Path, name: Any) -> str | None:
    """A picture of a Run as an address that holds it; None where there is none."""
    content = _picture(folder, name) if isinstance(name, str) else None
    kind = None if content is None else next((kind for head, kind in KINDS.items() if content.startswith(head)), None)
    return None if content is None or kind is None else f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _picture(folder: Path, name: str) -> bytes | None:
    """The bytes of a file in the Run; a name that leads out of it is not followed."""
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return path.read_bytes()
    except (OSError, ValueError):  # such as a name that no system has
        return None
