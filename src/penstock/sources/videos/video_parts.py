"""One video of a set: its frames in order or by number, each with its labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.errors import DataError, Problem
from penstock.samples import Origin, Raw, Sample
from penstock.sources.videos.frame_labels import FrameLabels, RowLabels
from penstock.sources.videos.pictures import Footage, end_of, until


@dataclass(frozen=True)
class VideoPart:
    """A part of a Videos source (see `penstock.samples.Part`)."""

    key: str
    group: str
    footage: Footage
    labels: FrameLabels | None
    split: str | None = None

    @property
    def expected(self) -> int:
        try:
            return self.footage.expected()
        except DataError:  # streaming it says what is wrong
            return 0

    @property
    def label_counts(self) -> dict[int, int]:
        """How many frames show each behaviour, as far as can be known without decoding."""
        if self.labels is None or not self.expected:
            return {}
        present = (self.labels.over(self.footage.expected_times()) == 1).sum(axis=0)
        return {number: int(count) for number, count in enumerate(present) if count}

    def origin(self) -> Origin:
        return self.footage.origin()

    def stream(self, start: int = 0) -> Iterator[Raw]:
        """The frames in order, decoded once; raises at the end where labels and frames do not fit."""
        count, time_seconds, interval_seconds = start, float("nan"), float("inf")
        for count, picture in enumerate(self.footage.pictures(start), start + 1):
            if count > start + 1:
                interval_seconds = picture.time_seconds - time_seconds
            time_seconds = picture.time_seconds
            yield Raw(count - 1, picture)
        misfits = [] if self.labels is None else self.labels.misfits(self.key, count, time_seconds + interval_seconds)
        if misfits:
            raise DataError(misfits)

    def decode(self, raw: Raw) -> Sample:
        picture = raw.data
        sample: Sample = {"image": self.footage.rgb(picture)}
        sample.update(self._described(raw.index, picture.time_seconds, picture.until_seconds))
        return sample

    def annotations(self, index: int) -> Sample:
        times = self.footage.times()
        return self._described(index, float(times[index]), until(times, index))

    def _described(self, number: int, time_seconds: float, until_seconds: float) -> Sample:
        labels = {} if self.labels is None else {"labels": self.labels.at(number, time_seconds, until_seconds)}
        place = {"time": time_seconds, "frame": number, "key": f"{self.key}#{number}", "group": self.group}
        return {**labels, **place, **({} if self.split is None else {"split": self.split})}

    def problems(self) -> list[Problem]:
        """What can be seen cheaply; where label rows and packets differ in number, the frames are counted exactly."""
        found = self.footage.problems()
        if not found and isinstance(self.labels, RowLabels) and len(self.labels.values) != self.expected:
            return self.damage()
        return found

    def damage(self) -> list[Problem]:
        """What a full pass finds."""
        found = self.footage.damage()
        if any(not problem.warning for problem in found):
            return found
        return found + self._misfits()

    def _misfits(self) -> list[Problem]:
        try:
            times = self.footage.times()
        except DataError as error:
            return list(error.problems)
        return [] if self.labels is None else self.labels.misfits(self.key, len(times), end_of(np.asarray(times)))
