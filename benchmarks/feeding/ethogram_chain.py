"""From a video to its ethogram: the whole chain, and a plain loop over the same networks."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.feeding import data

SIDE, SMALL_SIDE, BATCH = 224, 64, 16
CHAIN_FRAMES, LOOP_FRAMES, ROUNDS = 900, 64, 3
LOGITS_APART = 1e-3


def model_file(home: Path, size: str, side: int) -> Path:
    """A model that is not trained; nobody who measures rates can tell."""
    import torch

    import penstock as ps

    path = home / f"behaviour-{size}-{side}.safetensors"
    if not path.exists():
        torch.manual_seed(0)
        channels = ((120.0,) * 3, (60.0,) * 3)
        task = ps.Behaviour(
            behaviours=("background", "walk", "rear"),
            size=size,
            weights=None,
            image_size=(side, side),
            normalize=channels,
            score_thresholds=(0.5,) * 3,
            min_bout_frames=(1,) * 3,
        )
        ps.Model(task, task.network(), device="cpu").save(path)
    return path


def rates(home: Path) -> tuple[float, float]:
    """Frames per second of the chain and of the loop, in turns; the medians."""
    import penstock as ps

    path = sorted(data.original_videos(home)[0].glob("*.mp4"))[0]
    model: Any = ps.load(model_file(home, "fast", SIDE), device="cpu")
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        found[0].append(CHAIN_FRAMES / _chain_seconds(model, path))
        start = time.perf_counter()
        count = sum(len(logits) for logits in motions_anew(model.network, path, LOOP_FRAMES))
        found[1].append(count / (time.perf_counter() - start))
    return statistics.median(found[0]), statistics.median(found[1])


def _chain_seconds(model: Any, path: Path) -> float:
    folder = tempfile.mkdtemp()
    try:
        start = time.perf_counter()
        model.predict(path, output=folder)
        return time.perf_counter() - start
    finally:
        shutil.rmtree(folder)


def motions_anew(network: Any, path: Path, count: int) -> Iterator[Any]:
    """The logits of the first frames, each by its own stack of frames, all of whose motions are computed."""
    import torch

    frames = torch.from_numpy(_first_frames(path, count + network.plan.frames))
    half = network.plan.frames // 2
    places = (torch.arange(count)[:, None] + torch.arange(-half, half + 1)).clamp(min=0)
    with torch.inference_mode():
        for start in range(0, count, BATCH):
            stacks = frames[places[start : start + BATCH]]  # copied: this is what is moved to a device
            pixels = network.pixels(stacks.flatten(0, 1)).unflatten(0, stacks.shape[:2])
            first, second = pixels[:, :-1].flatten(0, 1), pixels[:, 1:].flatten(0, 1)
            flows = network.motion(first, second)[0].unflatten(0, (len(stacks), -1))
            yield network.frames(network.seen_images(pixels), flows)[1]


def _first_frames(path: Path, count: int) -> Any:
    import av
    import numpy as np
    from av.video.reformatter import VideoReformatter

    reformatter = VideoReformatter()
    frames = []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            frames.append(reformatter.reformat(frame, width=SIDE, height=SIDE, format="rgb24").to_ndarray())
            if len(frames) == count:
                break
    return np.stack(frames)


def code_for(home: Path, path: Path) -> str:
    """A program that predicts one video with a small network, for a process that is watched."""
    model = model_file(home, "tiny", SMALL_SIDE)
    return (
        "import tempfile, penstock as ps\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        f"    ps.predict({str(model)!r}, {str(path)!r}, output=folder, device='cpu')\n"
    )
