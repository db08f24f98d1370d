"""The sections of a recipe, as a Run writes them, and how values are written so that recipes read them again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import yaml

from penstock.runs.layout import plain

# Settings of a task that stand in the section `model`; the others stand in `task`.
MODEL_KEYS = ("backbone", "weights")
# Texts that a recipe would read as no value, in any case of letters.
WORDS_FOR_NONE = ("none", "null", "~", "")


def recipe_sections(
    kind: str, task: Mapping[str, Any], *, data: Any, train: Any, feed: Any, run: Any
) -> dict[str, dict[str, Any]]:
    """A complete recipe: the kind and settings of a task, and the four dataclasses of options."""
    return {
        "data": dataclasses.asdict(data),
        "task": {"kind": kind, **{key: value for key, value in task.items() if key not in MODEL_KEYS}},
        "model": {key: value for key, value in task.items() if key in MODEL_KEYS},
        "train": dataclasses.asdict(train),
        "feed": dataclasses.asdict(feed),
        "run": dataclasses.asdict(run),
    }


class _Dumper(yaml.SafeDumper):  # type: ignore[misc] # PyYAML has no types
    """Quotes texts that a recipe could take for something else: none, and what begins like a number."""


def _quoted_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    is_doubtful = text.lower() in WORDS_FOR_NONE or not text[0].isalpha()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if is_doubtful else None)


_Dumper.add_representer(str, _quoted_text)


def yaml_text(value: Any, **options: Any) -> str:
    """A value as YAML that recipes read as the same value."""
    text: str = yaml.dump(plain(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, **options)
    return text
