"""Windows over features of whole videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.tasks.behaviour.frame_data import FeatureWindows, VideoFeatures


def video(folder: Path, name: str, count: int) -> VideoFeatures:
    np.save(folder / name, np.arange(count, dtype=np.float16)[:, None].repeat(2, axis=1))
    return VideoFeatures(folder / name, np.ones((count, 1), np.int8))


def test_every_frame_is_in_a_window_and_short_videos_are_filled_up(tmp_path: Path) -> None:
    windows = FeatureWindows(
        [video(tmp_path, "a.npy", 10), video(tmp_path, "b.npy", 2)], frames=4, step=3, behaviours=("walk",)
    )
    samples = [windows.decode(windows.read(index)) for index in range(len(windows))]
    assert [sample["features"][:, 0].tolist() for sample in samples] == [
        [0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9], [0, 1, 0, 0],
    ]  # fmt: skip
    assert samples[-1]["label"][:, 0].tolist() == [1, 1, -1, -1]
    assert [int(sample["length"]) for sample in samples] == [4, 4, 4, 2]


def test_windows_without_a_label_are_left_out(tmp_path: Path) -> None:
    one = video(tmp_path, "a.npy", 8)
    one.labels[:4] = -1
    assert len(FeatureWindows([one], frames=4, step=4, behaviours=("walk",))) == 1
