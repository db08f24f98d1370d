"""One video of a set: its frames in order or by number, each with its labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.errors import DataError, Problem
from penstock.formats.videos.frame_labels import FrameLabels, Labels, RowLabels
from penstock.formats.videos.pictures import Footage, end_of, until
from penstock.samples import Origin, Raw, Sample, Segment
from penstock.wording import counted


@dataclass(frozen=True)
class VideoPart(Segment):
    """A part of a Videos source (see `penstock.samples.Segment`)."""

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
        begin = max(0, start - 2)  # two more tell when the last one ends, also where nothing is left to be given
        count, time_seconds, interval_seconds = begin, float("nan"), float("inf")
        for count, picture in enumerate(self.footage.pictures(begin), begin + 1):
            if count > begin + 1:
                interval_seconds = picture.time_seconds - time_seconds
            time_seconds = picture.time_seconds
            if count > start:
                yield Raw(count - 1, picture)
        misfits = self._misfits(count, time_seconds, interval_seconds)
        if misfits:
            raise DataError(misfits)

    def decode(self, raw: Raw) -> Sample:
        picture = raw.data
        sample: Sample = {"image": self.footage.rgb(picture)}
        sample.update(self._described(raw.index, picture.time_seconds, picture.until_seconds))
        return sample

    def annotations(self, index: int) -> Sample:
        times = self.footage.times()
        until_seconds = until(times, index, is_whole=self._is_whole(len(times)))
        return self._described(index, float(times[index]), until_seconds)

    def label_rows(self, labels: FrameLabels) -> Labels:
        """The labels of all frames that decode."""
        times = self.footage.times()
        rows = labels.over(times)
        if not self._is_whole(len(times)):
            rows[-1] = self.annotations(len(times) - 1)["labels"]  # later events are not of the last frame
        return rows

    def _is_whole(self, frames: int) -> bool:
        return self.footage.whole_count(frames) == frames

    def _described(self, number: int, time_seconds: float, until_seconds: float) -> Sample:
        labels = {} if self.labels is None else {"labels": self.labels.at(number, time_seconds, until_seconds)}
        place = {"time": time_seconds, "frame": number, "key": f"{self.key}#{number}", "group": self.group}
        return {**labels, **place, **({} if self.split is None else {"split": self.split})}

    def problems(self) -> list[Problem]:
        """What can be seen cheaply; where label rows and packets differ in number, the frames are counted exactly."""
        found = self.footage.problems()
        if all(problem.warning for problem in found) and self.labels is not None:
            is_cut_off = self.footage.whole_count(0) > 0
            if is_cut_off or (isinstance(self.labels, RowLabels) and len(self.labels.values) != self.expected):
                return [*found, *self.damage()]
        return found

    def damage(self) -> list[Problem]:
        """What a full pass finds."""
        found = self.footage.damage()
        try:
            times = np.asarray(self.footage.times())
        except DataError as error:
            return found or list(error.problems)
        last_seconds = float(times[-1]) if len(times) else float("nan")
        return found + self._misfits(len(times), last_seconds, end_of(times) - last_seconds)

    def uncounted(self) -> list[Problem]:
        """Why its frames cannot be counted, or not be used with their labels; those of a lost end may be left out."""
        try:
            times = np.asarray(self.footage.times())
        except DataError as error:
            return list(error.problems)
        if not len(times):
            return []
        misfits = self._misfits(len(times), float(times[-1]), end_of(times) - float(times[-1]))
        return [problem for problem in misfits if not (problem.warning or problem.unreadable)]

    def _misfits(self, frames: int, last_seconds: float, interval_seconds: float) -> list[Problem]:
        """Where labels and frames do not fit; an end that is lost, with labels of the whole video, may be left out."""
        if self.labels is None:
            return []
        end_seconds = last_seconds + interval_seconds
        found = self.labels.misfits(self.key, frames, end_seconds)
        whole = self.footage.whole_count(frames)
        whole_seconds = end_seconds + (whole - frames) * interval_seconds
        if self.labels.end_within(frames, end_seconds) or not self.labels.end_within(whole, whole_seconds):
            return found
        return [self._lost_end(frames, whole)]

    def _lost_end(self, frames: int, whole: int) -> Problem:
        labels = "label rows" if isinstance(self.labels, RowLabels) else "events"
        what = f"decodes {frames:,} of {counted(whole, 'frame')}; the {labels} from frame {frames:,} on have no picture"
        remedy = (
            f"Copy the video again, or pack with on_bad_sample='skip' to leave out the {whole - frames:,} at its end"
        )
        return Problem(self.footage.file, frames, what, remedy, unreadable=True)
