"""Machine, libraries, command and log."""

from __future__ import annotations

from typing import Any

from penstock.reporting.markup import Markup, folded, joined, shortened, table, tag
from penstock.reporting.stories import Story
from penstock.reporting.wording import value_text, without_folders

TOLD_ABOVE = ("started", "ended", "seconds", "outcome", "devices", "libraries")
LONGEST_LOG = 20_000  # characters


def environment(story: Story) -> Markup | None:
    """What the Run was made with."""
    told = {name: value for name, value in story.environment.items() if name not in TOLD_ABOVE}
    libraries = story.environment.get("libraries")
    rows = [[name, _value(name, value)] for name, value in told.items()]
    if isinstance(libraries, dict):
        rows += [[shortened(name, 40), shortened(version, 40)] for name, version in libraries.items()]
    parts = [table([], rows, class_="plain", numbers=False, label="Environment")] if rows else []
    return joined([*parts, _log(story)]) or None


def _value(name: str, value: Any) -> Markup:
    if name == "command" and isinstance(value, list):
        return tag("code", shortened(" ".join(without_folders(str(word)) for word in value), 400))
    return shortened(value_text(value), 400)


def _log(story: Story) -> Markup | None:
    text = without_folders(story.run.log().strip())
    if not text:
        return None
    shown = text if len(text) <= LONGEST_LOG else f"…{text[-LONGEST_LOG:]}"
    return folded("what was said while training", tag("pre", shown, tabindex="0"))
