"""Clips out of a mapped Arrow file of frames, JPEG or raw, in threads: the plain loop, with no pipeline around it."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import simplejpeg

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

SIDE = 224


def frames_of(pack: str) -> list[Any]:
    """The bytes of every frame, in order, as views of mapped memory."""
    frames: list[Any] = []
    for path in sorted(Path(pack).glob("shard-*.arrow")):
        with pa.memory_map(str(path)) as file:
            column = pa.ipc.open_file(file).read_all().column("image")
        frames += [memoryview(value.as_buffer()).cast("B") for value in column]
    return frames


def decoded(data: Any, into: Any) -> None:
    if len(data) == into.nbytes:
        into[:] = np.frombuffer(data, np.uint8).reshape(into.shape)
    else:
        simplejpeg.decode_jpeg(data, "RGB", buffer=into)


def build(settings: Settings) -> Epoch:
    frames, length, batch = frames_of(settings["pack"]), settings["frames"], settings["batch"]

    def make(starts: list[int]) -> tuple[Any, Any]:
        clips = np.empty((len(starts), length, SIDE, SIDE, 3), np.uint8)
        for clip, start in zip(clips, starts, strict=True):
            for offset in range(length):
                decoded(frames[start + offset], clip[offset])
        return clips, np.array(starts)

    def epoch_of(epoch: int) -> Batches:
        starts = random.Random(epoch).choices(range(len(frames) - length), k=settings["count"])
        parts = [starts[first : first + batch] for first in range(0, len(starts), batch)]
        with ThreadPoolExecutor(settings["workers"]) as pool:
            yield from pool.map(make, parts)

    return epoch_of


if __name__ == "__main__":
    serve(["pyarrow", "simplejpeg", "numpy"], build)
