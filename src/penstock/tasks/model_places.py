"""Where a model lies: one way to read what users write for it, whether it is loaded, or training begins with it.

runs/trees                    a Run: its best checkpoint, or its last
best.ckpt  m.safetensors  m.pt  NEON.pl      a file
folder with model.safetensors or pytorch_model.bin      what save_pretrained writes
hf://owner/name               a repository on huggingface.co
weecology/deepforest-tree     the detectors that DeepForest publishes, by its names for them
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from penstock.errors import DataError, Problem, nearest
from penstock.runs import layout
from penstock.runs.run import Run
from penstock.tasks.weights import HUB, HUB_FILES, IMAGENET

PUBLISHED = ("weecology/deepforest-tree", "weecology/deepforest-bird", "weecology/deepforest-livestock")


def model_file(place: str | os.PathLike[str], which: Literal["best", "last"] = "best") -> str | Path:
    """The file, or the address on the hub, that a user means; an error lists what was tried."""
    text = os.fspath(place)
    if text.startswith(HUB):
        return text
    path = Path(text).expanduser()
    if path.is_file():
        return path
    if (path / layout.SETTINGS).is_file():
        return Run(path).checkpoint(which)
    inside = [path / name for name in HUB_FILES if (path / name).is_file()]
    if inside:
        return inside[0]
    if text in PUBLISHED and not path.exists():
        return HUB + text
    raise DataError([_not_found(text, path)])


def place_of(weights: str) -> str:
    """The same for the weights that training begins with, among which imagenet is a word of its own."""
    return weights if weights == IMAGENET else str(model_file(weights))


def _not_found(text: str, path: Path) -> Problem:
    runs = sorted(one.parent.as_posix() for one in path.glob(f"*/{layout.SETTINGS}")) if path.is_dir() else []
    there = f"the folder has no {layout.SETTINGS} of a Run and no {' or '.join(HUB_FILES)}"
    what = there if path.is_dir() else "there is no such file or folder, and it is no name of a published model"
    names = f" Did you mean {runs[0]!r}?" if runs else nearest(text, PUBLISHED)
    remedy = "Name a Run, a checkpoint, .safetensors, .pt, a folder of save_pretrained, or hf://owner/name"
    return Problem(text, None, f"this is no model: {what}", f"{remedy}.{names}" if names else remedy)
