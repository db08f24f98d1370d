"""Where things are in a Run, and how values are written there.

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

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
