"""What is already answered, so that an interruption costs some seconds of work.

crowns.gpkg.partial/
  plan.json              what is looked at, by which model and how; other work begins anew
  block-000000.npz       boxes of finished windows, whole or absent: which image, which window, and its boxes

Windows are independent of one another, so what a block holds is what another run would find. The folder is taken
away when the table has its name.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import OptionError
from penstock.prediction.boxes.mosaics import SceneBoxes
from penstock.prediction.boxes.options import FindingOptions
from penstock.prediction.models import Model
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_text
from penstock.storage.whole_files import write_whole

PLAN = "plan.json"
WORK = "penstock predict"
BLOCKS = "block-*.npz"
BLOCK_SECONDS = 5.0
Window = tuple[int, int]  # number of the image, number of the window in it


class Journal:
    """Boxes of finished windows, kept in a folder beside the table that is to be."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder, self._clock = folder, clock
        self.finished: dict[int, dict[int, SceneBoxes]] = {}  # by image, then by window
        self._unwritten: dict[Window, SceneBoxes] = {}
        self._written_at = clock()
        self._next = 0

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Take over what was finished of the same work; all else that a journal left is thrown away."""
        text = json.dumps({"work": WORK, **plan}, indent=1, ensure_ascii=False)
        begun = self._begun()
        if begun == load_json(text):
            self._take_over()
            return
        if begun is not None:
            shutil.rmtree(self.folder)
        self.folder.mkdir(exist_ok=True)
        write_whole(self.folder / PLAN, text)

    def _begun(self) -> dict[str, Any] | None:
        """The plan that is there; None where there is nothing. A folder of somebody else is left alone."""
        if not self.folder.exists():
            return None
        try:
            found = load_json(read_text(self.folder / PLAN))
        except (OSError, ValueError):
            found = None
        if isinstance(found, dict) and found.get("work") == WORK:
            return found
        if self.folder.is_dir() and not any(self.folder.glob("[!.]*")):
            return {}  # killed before the plan was written
        raise OptionError(
            f"{self.folder} is in the way and not ours; it is left alone. Rename it, or choose another path."
        )

    def _take_over(self) -> None:
        for path in sorted(self.folder.glob(BLOCKS)):
            for (image, number), found in _read(path).items():
                self.finished.setdefault(image, {})[number] = found
            self._next = int(path.stem.rpartition("-")[2]) + 1

    def add(self, window: Window, found: SceneBoxes) -> None:
        """One more window is finished; every few seconds those since the last time are written."""
        self._unwritten[window] = found
        if self._clock() - self._written_at >= BLOCK_SECONDS:
            self._write()

    def _write(self) -> None:
        windows, found = list(self._unwritten), list(self._unwritten.values())
        columns = SceneBoxes(*(np.concatenate(column) for column in zip(*found, strict=True)))
        block = io.BytesIO()
        counts = np.array([len(one.scores) for one in found])
        np.savez(block, windows=np.array(windows), counts=counts, **columns._asdict())
        write_whole(self.folder / f"block-{self._next:06d}.npz", block.getvalue())
        self._next += 1
        self._unwritten.clear()
        self._written_at = self._clock()

    def end(self) -> None:
        """The table has its name: nothing of this is needed any more."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Kept:
    """The windows of one image in a journal."""

    def __init__(self, journal: Journal, image: int) -> None:
        self._journal, self._image = journal, image
        self.finished = journal.finished.get(image, {})

    def add(self, number: int, found: SceneBoxes) -> None:
        self._journal.add((self._image, number), found)


def kept_by(journal: Journal | None, image: int) -> Kept | None:
    """The windows of an image, where somebody keeps a journal."""
    return None if journal is None else Kept(journal, image)


def _read(path: Path) -> dict[Window, SceneBoxes]:
    """The windows of a block; none of one that is damaged: they are looked at again."""
    try:
        with np.load(path, allow_pickle=False) as block:
            columns = SceneBoxes(block["boxes"], block["labels"], block["scores"])
            ends = np.cumsum(block["counts"])
            rows = np.split(np.arange(len(columns.scores)), ends[:-1])
            windows = [(int(image), int(number)) for image, number in block["windows"]]
            return dict(zip(windows, (columns.taken(some) for some in rows), strict=True))
    except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile):
        return {}


def plan_of(model: Model, files: list[Path], options: FindingOptions) -> dict[str, Any]:
    """All that an answer depends on, as JSON."""
    within = options.within
    return {
        "files": [[str(file), *_stamp(file)] for file in files],
        "model": _model_print(model),
        "task": model.task.settings(),
        "precision": [model.precision],
        "windows": {name: _plain(getattr(options, name)) for name in ("tile_px", "overlap", "bands", "gsd")},
        "within": None if within is None else hashlib.blake2b(_area_bytes(within), digest_size=16).hexdigest(),
    }


def _stamp(path: Path) -> tuple[int, int]:
    try:
        state = path.stat()
    except OSError:  # said when its turn comes
        return 0, 0
    return state.st_size, state.st_mtime_ns


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (tuple, list)) else value


def _area_bytes(within: Any) -> bytes:
    if hasattr(within, "to_json"):
        return str(within.to_json()).encode()
    path = Path(within)
    return f"{path.absolute()} {_stamp(path)}".encode()


def _model_print(model: Model) -> str:
    """A number that changes when a weight does."""
    found = hashlib.blake2b(digest_size=16)
    for name, value in model.network.state_dict().items():
        found.update(name.encode())
        found.update(value.detach().cpu().float().contiguous().numpy().tobytes())
    return found.hexdigest()
