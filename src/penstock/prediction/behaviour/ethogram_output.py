"""Where ethograms go: a folder that grows video by video, one file, or memory."""

from __future__ import annotations

import csv
import json
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, Problem
from penstock.prediction.behaviour.decisions import Decisions
from penstock.results.ethogram_files import HDF5_ENDINGS
from penstock.results.ethograms import Ethogram
from penstock.results.feature_files import FeatureFile
from penstock.runs.layout import plain
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_text
from penstock.storage.whole_files import whole_file, write_whole

Logits = NDArray[np.float32]


class Keeper(Protocol):
    """Takes the answer for each video when it is complete; called by one thread for each device."""

    def target(self, name: str) -> Path:
        """The file beside which the features of a video grow."""
        ...

    def has(self, name: str, made_by: str) -> bool:
        """Whether a video is done, by the same model and in the same way."""
        ...

    def save(self, ethogram: Ethogram, made_by: str, logits: Logits, features: FeatureFile, group: str) -> None:
        """Keep an answer, whose numbers are mapped from the features and go with them."""
        ...

    def fail(self, name: str, problems: Sequence[Problem]) -> None:
        """A video that cannot be read."""
        ...

    def problems(self, name: str) -> Sequence[Problem]:
        """What was wrong with a video, also where it was done before."""
        ...

    def decisions(self, name: str) -> Decisions | None:
        """What was counted of a video, also where it was done before; None if it could not be read."""
        ...


class Memory:
    """Ethograms for a program; features grow in a temporary folder and are gone at the end."""

    def __init__(self) -> None:
        self.ethograms: dict[str, Ethogram] = {}
        self._failed: dict[str, Sequence[Problem]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def target(self, name: str) -> Path:
        path = Path(self._folder.name, f"{name}.h5")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def has(self, name: str, made_by: str) -> bool:
        return False

    def save(self, ethogram: Ethogram, made_by: str, logits: Logits, features: FeatureFile, group: str) -> None:
        self.ethograms[ethogram.name] = replace(
            ethogram, probabilities=np.array(ethogram.probabilities), times_s=np.array(ethogram.times_s)
        )

    def fail(self, name: str, problems: Sequence[Problem]) -> None:
        self._failed[name] = problems

    def problems(self, name: str) -> Sequence[Problem]:
        return self.ethograms[name].problems if name in self.ethograms else self._failed.get(name, ())

    def decisions(self, name: str) -> Decisions | None:
        return Decisions.of(self.ethograms[name]) if name in self.ethograms else None


class OneFile:
    """One video's answer as one file, in the format that its ending says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._problems: Sequence[Problem] = ()
        self._decisions: Decisions | None = None

    def target(self, name: str) -> Path:
        return self.path

    def has(self, name: str, made_by: str) -> bool:
        return False

    def save(self, ethogram: Ethogram, made_by: str, logits: Logits, features: FeatureFile, group: str) -> None:
        self._problems, self._decisions = ethogram.problems, Decisions.of(ethogram)
        if self.path.suffix.lower() in HDF5_ENDINGS:
            ethogram.save(self.path, logits=logits, features=features, features_group=group)
        else:
            ethogram.save(self.path)

    def fail(self, name: str, problems: Sequence[Problem]) -> None:
        self._problems = problems

    def problems(self, name: str) -> Sequence[Problem]:
        return self._problems

    def decisions(self, name: str) -> Decisions | None:
        return self._decisions


# The folder that predictions of videos are written to, one video after another; what is there is not done again.
#
# predictions/
#   predictions.json           which videos are done, by what they were made, what was wrong with them, and in how many
#                              frames the rule of shortest bouts changed the answer, or a probability nears a threshold
#   summary.csv                time in each behaviour, number and mean length of bouts, of every video
#   mouse_1_ethogram.csv       frame by frame: time, 0 or 1 and the probability for each behaviour
#   mouse_1_bouts.csv          start, stop and duration of each bout
#   mouse_1_predictions.csv    0 and 1 alone, in DeepEthogram's layout
#   mouse_1_outputs.h5         features, logits and probabilities, in DeepEthogram's layout


RECORD, SUMMARY = "predictions.json", "summary.csv"
# Layouts of tables by the ending of their names.
TABLES = {"_ethogram.csv": "tidy", "_bouts.csv": "bouts", "_predictions.csv": "deepethogram"}
OUTPUTS = "_outputs.h5"
VERSION = 1


class PredictionFolder:
    """Written to by one thread for each device; every file appears when it is complete."""

    def __init__(self, folder: Path) -> None:
        if folder.is_file():
            raise OptionError(f"output={str(folder)!r} is a file; ethograms of videos need a folder.")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = threading.Lock()
        self._videos: dict[str, dict[str, Any]] = _read(folder / RECORD)

    def target(self, name: str) -> Path:
        """Where the features of a video go; names with folders in them get folders."""
        path = self._path(name, OUTPUTS)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _path(self, name: str, ending: str) -> Path:
        path = self.folder / f"{name}{ending}"
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise OptionError(f"a video called {name!r} would be written outside of {self.folder}. Rename it.")
        return path

    def has(self, name: str, made_by: str) -> bool:
        """Whether a video is done, by the same model and in the same way."""
        files = all(self._path(name, ending).is_file() for ending in (*TABLES, OUTPUTS))
        return files and self._videos.get(name, {}).get("made_by") == made_by

    def save(
        self, ethogram: Ethogram, made_by: str, logits: NDArray[np.float32], features: FeatureFile, group: str
    ) -> None:
        """All files of a video; it is noted as done when the last one is there."""
        name = ethogram.name
        ethogram.save(self.target(name), logits=logits, features=features, features_group=group)
        for ending, layout in TABLES.items():
            ethogram.save(self._path(name, ending), layout)
        note = {
            "made_by": made_by,
            **Decisions.of(ethogram).facts(),
            "problems": [problem.as_dict() for problem in ethogram.problems],
            "summary": ethogram.summary().to_dict("records"),
        }
        self._note(name, note)

    def fail(self, name: str, problems: Sequence[Problem]) -> None:
        """Note a video that cannot be read."""
        self._note(name, {"problems": [problem.as_dict() for problem in problems]})

    def problems(self, name: str) -> list[Problem]:
        return [Problem(**problem) for problem in self._videos.get(name, {}).get("problems", ())]

    def decisions(self, name: str) -> Decisions | None:
        noted = self._videos.get(name, {})
        return Decisions(*(noted[field] for field in Decisions._fields)) if "changed_frames" in noted else None

    def _note(self, name: str, note: dict[str, Any]) -> None:
        with self._lock:
            self._videos[name] = plain(note)
            content = {"version": VERSION, "videos": dict(sorted(self._videos.items()))}
            write_whole(self.folder / RECORD, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
            _write_summary(
                self.folder / SUMMARY,
                [row for _, one in sorted(self._videos.items()) for row in one.get("summary", [])],
            )


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """What an earlier command noted; what cannot be read is made anew, as are the videos in it."""
    try:
        content = load_json(read_text(path))
        videos: dict[str, dict[str, Any]] = content["videos"] if content["version"] == VERSION else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return videos


def _write_summary(path: Path, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    with whole_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
