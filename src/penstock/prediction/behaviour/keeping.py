"""Where ethograms go: a folder (`prediction_folders.py`), one file, or memory."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import Problem
from penstock.prediction.behaviour.decisions import Decisions
from penstock.results.ethogram_files import HDF5_ENDINGS
from penstock.results.ethograms import Ethogram
from penstock.results.feature_files import FeatureFile

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
