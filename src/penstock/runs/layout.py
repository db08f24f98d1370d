"""Where things are in a Run, and how values are written there and read again.

runs/pets/
  settings.yaml        the complete recipe (data, task, model, train, feed, run), and under `chosen` what auto became
  metrics.jsonl        a line each log: {"epoch": 1, "step": 120, "train_loss": …} or {…, "val_loss": …, "accuracy": …}
  feed.jsonl           what each hop did, every few seconds
  details.json         what a report draws of the validation: confusion matrix, curves
  worst.json, thumbs/  the samples that were answered most wrongly, with pictures
  samples.json         samples that could not be read, with reasons
  environment.json     machine, libraries, command, when it started and how it ended
  log.txt              what was said
  checkpoints/         last.ckpt, and best.ckpt or best-1.ckpt … best-k.ckpt
  stages/              where training has stages: a Run of each
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import DataError, Problem
from penstock.storage.documents import load_json, load_yaml
from penstock.storage.plain_files import read_text

SETTINGS = "settings.yaml"
METRICS = "metrics.jsonl"
FEED = "feed.jsonl"
DETAILS = "details.json"
WORST = "worst.json"
THUMBNAILS = "thumbs"
SAMPLES = "samples.json"
ENVIRONMENT = "environment.json"
LOG = "log.txt"
CHECKPOINTS = "checkpoints"
STAGES = "stages"

CHOSEN = "chosen"  # the section of the settings that holds what auto became

# In a line of metrics: what marks a validation, and what is no score of it.
VALIDATION_LOSS = "val_loss"
NO_SCORES = ("epoch", "step", "learning_rate")
TRAINING_PREFIX = "train_"


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays become lists, and numbers that are not finite, which it cannot say, null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Path):
        return value.as_posix()
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no plain form: {value!r}")


# The sections of a recipe, as a Run writes them, and how values are written so that recipes read them again.


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


# Files of a Run as values; what is damaged is said by file and line.


def json_file(path: Path, absent: Any) -> Any:
    """The content of a JSON file, or what stands for a file that is not there."""
    if not path.exists():
        return absent
    try:
        return load_json(read_text(path))
    except ValueError as error:
        raise damaged(path, None, str(error)) from None


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; none if there is no log, and without a last line that a killed process left unfinished."""
    if not path.exists():
        return []
    lines = read_text(path, errors="replace").split("\n")
    return [_value(path, number, line) for number, line in enumerate(lines[:-1], 1) if line]


def _value(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = load_json(line)
    except ValueError as error:
        raise damaged(path, number, str(error)) from None
    if not isinstance(value, dict):
        raise damaged(path, number, "it is not a set of names and values")
    return value


def yaml_file(path: Path) -> dict[str, Any]:
    """The content of a YAML file with sections."""
    try:
        value = load_yaml(read_text(path))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise damaged(path, None, " ".join(str(error).split())) from None
    if not isinstance(value, dict):
        raise damaged(path, None, "it has no sections")
    return value


def damaged(path: Path, line: int | None, reason: str) -> DataError:
    return DataError([Problem(path.as_posix(), line, f"this cannot be read: {reason}", "Take the file from a backup")])
