"""The complete settings, those that differ from the defaults first."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.reporting.markup import Markup, folded, joined, note, shortened, table, tag
from penstock.reporting.run_settings import Setting, further_choices, run_settings
from penstock.reporting.stories import Story
from penstock.reporting.wording import MISSING, value_text
from penstock.wording import counted

LONGEST_VALUE = 200


def settings(story: Story) -> Markup | None:
    """What was asked for, and what Penstock chose."""
    found = run_settings(story)
    if not found:
        return None
    changed = [one for one in found if not one.is_default]
    same = [one for one in found if one.is_default]
    asked = (
        _table(changed, "Settings that differ from their defaults") if changed else note("All are at their defaults.")
    )
    return joined([asked, _further(story), _folded(same)])


def setting_name(section: str, key: str) -> Markup:
    return tag("code", tag("span", f"{section}.", class_="dim"), shortened(key, 60))


def _table(rows: Sequence[Setting], label: str) -> Markup:
    made = [
        [
            setting_name(*one.path),
            tag("code", shortened(one.text, LONGEST_VALUE)),
            tag("code", MISSING if one.default is None else shortened(one.default, 60), class_="dim"),
        ]
        for one in rows
    ]
    return table(["key", "value", "default"], made, numbers=False, label=label)


def _further(story: Story) -> Markup | None:
    choices = further_choices(story)
    if not choices:
        return None
    rows = [
        [tag("code", shortened(name, 60)), tag("code", shortened(value_text(value)))] for name, value in choices.items()
    ]
    return joined([tag("h3", "Chosen by Penstock"), table([], rows, class_="plain", numbers=False, label="Choices")])


def _folded(same: Sequence[Setting]) -> Markup | None:
    if not same:
        return None
    return folded(f"{counted(len(same), 'setting')} at the default", _table(same, "Settings at their defaults"))
