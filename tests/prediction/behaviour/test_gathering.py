"""Features of a video that is left at any frame and taken up again: the same bits."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.formats.videos.frame_streams import FrameStream
from penstock.formats.videos.framing import make_framing
from penstock.formats.videos.supplying import named_videos, supply_of
from penstock.prediction.behaviour.ethogram_output import PredictionFolder
from penstock.prediction.behaviour.watching import TIMES, Gatherer, columns_of, ethogram_of, taken_up
from penstock.results.feature_files import FeatureFile


def gather(model: ps.Model, path: Path, file: FeatureFile) -> int:
    """Bring a file to the end of its video; gives the frame that was begun with."""
    (placed,), (named,) = model.copies, named_videos(path)
    begin = taken_up(placed.network, placed.device, file)
    for video in FrameStream([(supply_of(named, make_framing((64, 64), "stretch", None)), begin)], workers=1):
        Gatherer(placed, "32", file, first=begin.frame).gather(video, lambda _: None)
    return begin.frame


def all_of(file: FeatureFile) -> dict[str, Any]:
    return {name: np.array(file.column(name)) for name in file.columns}


@pytest.fixture(scope="module")
def gathered(mice_model: Path, mice_videos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The features of a whole video."""
    model = ps.load(mice_model, device="cpu")
    with FeatureFile(tmp_path_factory.mktemp("whole") / "a.h5", columns_of(model.network), {}) as file:
        assert gather(model, mice_videos / "animal_0.mp4", file) == 0
        return all_of(file)


@pytest.mark.parametrize(("frames", "begun"), [(1, 0), (20, 0), (21, 16), (48, 32), (53, 48), (119, 112)])
def test_a_video_that_is_left_at_any_frame_gives_the_same_bits(
    mice_model: Path, mice_videos: Path, gathered: dict[str, Any], tmp_path: Path, frames: int, begun: int
) -> None:
    model = ps.load(mice_model, device="cpu")
    with FeatureFile(tmp_path / "a.h5", columns_of(model.network), {}) as file:
        file.append({name: values[:frames] for name, values in gathered.items()})
        # Blocks begin where they would have begun, and what the first clip looks back at is there.
        assert gather(model, mice_videos / "animal_0.mp4", file) == begun
        for name, values in all_of(file).items():
            np.testing.assert_array_equal(values, gathered[name], err_msg=name)


def test_the_answer_for_a_long_video_is_mapped_and_written_in_memory_that_hardly_grows(
    mice_model: Path, tmp_path: Path
) -> None:
    """An hour at 30 frames per second has 108,000 frames: what each of them costs is what memory grows by."""
    model: Any = ps.load(mice_model, device="cpu")
    _memory_of_the_answer(model, tmp_path / "first", 100)  # imports what tables need, which would be counted
    held, peak = _memory_of_the_answer(model, tmp_path / "then", 20_000)
    # Logits, probabilities and times of all frames would be 32 bytes each.
    assert held / 20_000 < 4
    # What is needed for a moment: times, and 0 and 1 for each behaviour, besides 4,096 rows of the table as text.
    assert peak / 20_000 < 200


def _memory_of_the_answer(model: Any, folder: Path, frames: int) -> tuple[int, int]:
    """Bytes that the answer holds, and the most that writing it takes on top."""
    keeper, columns = PredictionFolder(folder), columns_of(model.network)
    with FeatureFile(keeper.target("mouse"), columns, {}) as file:
        rows = {name: np.zeros((frames, column.width), column.dtype) for name, column in columns.items()}
        file.append(rows | {TIMES: np.arange(frames)[:, None] / 30})
        del rows
        tracemalloc.start()
        try:
            ethogram, logits = ethogram_of(model.task, model.network, file, "mouse")
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            keeper.save(ethogram, "", logits, file, "resnet18")
            assert len(ethogram.predictions) == len(logits) == frames
            return held, tracemalloc.get_traced_memory()[1] - held
        finally:
            tracemalloc.stop()
