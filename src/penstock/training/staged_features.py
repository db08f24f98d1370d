"""Features of every frame of whole videos, kept in files while the sequence stage is trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from penstock.flow.flow import Flow
from penstock.flow.making.clips import rows_of_videos
from penstock.samples import Store, Subset
from penstock.storage.whole_files import whole_file
from penstock.tasks.behaviour.behaviour import Behaviour
from penstock.tasks.behaviour.frame_data import VideoFeatures, video_ranges
from penstock.tasks.behaviour.networks import BehaviourNetwork
from penstock.tasks.behaviour.stages import sized
from penstock.tasks.behaviour.streaming import STORED_AS, FeatureStream
from penstock.tasks.checkpoints import FULL, read_checkpoint
from penstock.tasks.inference.folding import made_to_answer
from penstock.training.options import FeedOptions, TrainOptions
from penstock.training.trainers import device_type

BATCH_FRAMES = 64


def network_of_frames(checkpoint: Path, train: TrainOptions, precision: str) -> BehaviourNetwork:
    """The network of a finished frames stage, on the device that trains, as prediction will use it."""
    return answering_network(read_checkpoint(checkpoint, kind="behaviour_frames").network(), train, precision)


def answering_network(network: Any, train: TrainOptions, precision: str) -> BehaviourNetwork:
    """The very network that prediction makes of this one: only then are its scores those of training."""
    device = torch.device(device_type(train))
    made: Any = made_to_answer(network.to(device).eval(), device, short=precision != FULL)
    return made  # type: ignore[no-any-return]


def extracted_features(
    task: Behaviour, network: BehaviourNetwork, precision: str, source: Store, folder: Path, feed: FeedOptions
) -> list[VideoFeatures]:
    """A file for each video; those that are there are whole, and are not made again."""
    labels = task.labels_of(source)
    found = []
    for number, rows in enumerate(rows_of_videos(source, video_ranges(source))):
        path = folder / f"video-{number:05d}.npy"
        if not path.exists():
            _write(task, network, precision, Subset(source, rows.indices), path, feed)
        found.append(VideoFeatures(path, rows.spread(labels, missing=-1)))
    return found


def _write(
    task: Behaviour, network: BehaviourNetwork, precision: str, video: Store, path: Path, feed: FeedOptions
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {
        name: getattr(feed, name) for name in ("workers", "executor", "memory", "on_bad_sample", "max_bad")
    }
    flow = sized(Flow(task.seen(video), **options), task, video).batch(BATCH_FRAMES)
    stream = FeatureStream(network, network.mean.device, precision)
    shape = (len(video), network.frames.feature_count)
    with whole_file(path) as partial:
        rows = np.lib.format.open_memmap(partial, mode="w+", dtype=STORED_AS, shape=shape)
        done = 0
        for batch in flow:
            done = _put(rows, done, stream.push(torch.from_numpy(batch["image"])).features)
        _put(rows, done, stream.finish().features)
        rows.flush()
    flow.close()


def _put(rows: Any, done: int, features: torch.Tensor) -> int:
    stop = done + len(features)
    rows[done:stop] = features.cpu().numpy()
    return stop
