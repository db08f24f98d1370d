"""Clips out of JPEG frames in one HDF5 file, in threads; its library lets one thread read at a time."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import simplejpeg

from benchmarks.feeding.peers.arrow_clips import frames_of
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

SIDE = 224


def stored(settings: Settings) -> Path:
    return Path(settings["home"]) / "recordings.h5"


def prepare(settings: Settings) -> None:
    target = stored(settings)
    if target.exists():
        return
    frames = frames_of(settings["pack"])
    unfinished = target.with_suffix(".unfinished")
    with h5py.File(unfinished, "w") as file:
        table = file.create_dataset("frames", (len(frames),), h5py.vlen_dtype(np.uint8))
        for number, frame in enumerate(frames):
            table[number] = np.frombuffer(frame, np.uint8)
    unfinished.rename(target)


def build(settings: Settings) -> Epoch:
    frames = h5py.File(stored(settings))["frames"]
    length, batch = settings["frames"], settings["batch"]

    def make(starts: list[int]) -> tuple[Any, Any]:
        clips = np.empty((len(starts), length, SIDE, SIDE, 3), np.uint8)
        for clip, start in zip(clips, starts, strict=True):
            for offset, data in enumerate(frames[start : start + length]):
                simplejpeg.decode_jpeg(data, "RGB", buffer=clip[offset])
        return clips, np.array(starts)

    def epoch_of(epoch: int) -> Batches:
        starts = random.Random(epoch).choices(range(len(frames) - length), k=settings["count"])
        parts = [starts[first : first + batch] for first in range(0, len(starts), batch)]
        with ThreadPoolExecutor(settings["workers"]) as pool:
            yield from pool.map(make, parts)

    return epoch_of


if __name__ == "__main__":
    serve(["h5py", "simplejpeg"], build, prepare)
