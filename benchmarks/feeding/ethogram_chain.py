"""From a video to its ethogram: the whole chain, and a plain loop over the same networks."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.feeding import long_videos
from penstock.formats.videos.frame_streams import FrameStream
from penstock.formats.videos.framing import make_framing
from penstock.formats.videos.supplying import named_videos, supply_of

SIDE, SMALL_SIDE, BATCH = 224, 64, 16
CHAIN_FRAMES, LOOP_FRAMES, ROUNDS = 480, 48, 3
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
    """Frames per second of the chain and of the loop, in turns; the medians. Both must say the same."""
    import penstock as ps

    path = long_videos.shortened(home, CHAIN_FRAMES)
    model: Any = ps.load(model_file(home, "fast", SIDE), device="cpu")
    frames = _first_frames(path, LOOP_FRAMES + model.task.frames)
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        taken, chained = _chain(model, path)
        found[0].append(CHAIN_FRAMES / taken)
        start = time.perf_counter()
        anew = np.concatenate([logits.numpy() for logits in motions_anew(model.network, frames, LOOP_FRAMES)])
        found[1].append(LOOP_FRAMES / (time.perf_counter() - start))
        if np.abs(anew - chained[:LOOP_FRAMES]).max() > LOGITS_APART:
            raise RuntimeError("the chain and the loop do not say the same of the same frames")
    return statistics.median(found[0]), statistics.median(found[1])


def _chain(model: Any, path: Path) -> tuple[float, Any]:
    """Seconds from the file to all that is written, and the logits of every frame."""
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        model.predict(path, output=folder, precision="32")  # as the loop computes
        taken = time.perf_counter() - start
        with h5py.File(next(Path(folder).glob("*_outputs.h5"))) as file:
            return taken, file["resnet18"]["logits"][()]


def motions_anew(network: Any, frames: Any, count: int) -> Iterator[Any]:
    """The logits of the first frames, each by its own stack of frames, all of whose motions are computed."""
    import torch

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
    """The same pixels as the chain sees, in memory before the clock starts."""
    import torch

    framing = make_framing((SIDE, SIDE), "stretch", None)
    for video in FrameStream([supply_of(named_videos(path)[0], framing)]):
        return torch.from_numpy(np.concatenate([block.pixels for block in video.blocks()])[:count])
    raise RuntimeError(f"{path} is gone")


def code_for(home: Path, path: Path) -> str:
    """A program that predicts one video with a small network, for a process that is watched."""
    model = model_file(home, "tiny", SMALL_SIDE)
    return (
        "import tempfile, penstock as ps\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        f"    ps.predict({str(model)!r}, {str(path)!r}, output=folder, device='cpu')\n"
    )
