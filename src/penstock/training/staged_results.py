"""The end of a staged training: thresholds, shortest bouts, scores of the whole chain, the checkpoint that predicts.

Everything is chosen on the validation split; where there is none, on the training data, and that is said.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.flow.making.clips import rows_of_videos
from penstock.results.behaviour_scores import BehaviourScores, best_thresholds, score_ethograms
from penstock.results.bouts import shortest_bouts
from penstock.results.ethogram_tables import ethogram_details
from penstock.results.ethograms import Ethogram
from penstock.runs.layout import TRAINING_PREFIX, plain
from penstock.runs.writing import RunWriter
from penstock.samples import Store
from penstock.tasks.behaviour.behaviour import Behaviour
from penstock.tasks.behaviour.frame_data import VideoFeatures, frame_times, made_from, video_name, video_ranges
from penstock.tasks.behaviour.networks import BehaviourNetwork
from penstock.tasks.behaviour.settings import AUTO
from penstock.tasks.behaviour.streaming import sequence_logits
from penstock.tasks.checkpoints import NETWORK, NEWEST_VERSION, read_checkpoint
from penstock.training.checkpoints import WholeCheckpoints
from penstock.training.data_splits import TrainingData
from penstock.training.options import Settings
from penstock.training.staged_features import answering_network

CHECKPOINT = "best.ckpt"


def write_results(
    writer: RunWriter,
    task: Behaviour,
    settings: Settings,
    precision: str,
    data: TrainingData,
    features: tuple[list[VideoFeatures], list[VideoFeatures]],
    checkpoints: tuple[Path, Path],
) -> None:
    """Decide on the validation videos, score them, and write checkpoint, scores and details."""
    network = _combined(task, checkpoints)
    train, val = features
    source, videos = (data.val, val) if data.val is not None and val else (data.train, train)
    if not val:
        writer.say("without a validation split, thresholds are chosen on the training data, and scores flatter.")
    ethograms = _ethograms(task, answering_network(network, settings.train, precision), source, videos)
    fitted = _decided(task, ethograms, [video.labels for video in train])
    ethograms = [_with_decisions(fitted, one) for one in ethograms]
    scores = score_ethograms(ethograms)
    said = {"input": packed_by(data.train), "precision": precision}
    _save(writer.checkpoints / CHECKPOINT, fitted, network, settings, scores, said)
    kept = {"score_thresholds": fitted.score_thresholds, "min_bout_frames": fitted.min_bout_frames}
    details = {"kind": "behaviour", **scores.details(), "ethograms": ethogram_details(ethograms), **kept}
    details["judged_on"] = "validation" if val else "training"
    writer.write_details(details)
    # Scores on the data that it learned from are no result: under these names nobody takes them for one.
    prefix = "" if val else TRAINING_PREFIX
    found = {f"{prefix}{name}": value for name, value in scores.scores().items()}
    writer.log_metrics(found, epoch=settings.train.epochs, step=0)


def _combined(task: Behaviour, checkpoints: tuple[Path, Path]) -> BehaviourNetwork:
    """One network of the parts that the stages have trained."""
    network: Any = task.network()
    frames, sequence = (read_checkpoint(path).weights for path in checkpoints)
    network.load_parts(frames, ("motion", "frames"))
    network.load_parts(sequence, ("sequence",))
    return network.eval()  # type: ignore[no-any-return]


def _ethograms(
    task: Behaviour, network: BehaviourNetwork, source: Store, videos: list[VideoFeatures]
) -> list[Ethogram]:
    found = []
    ranges = video_ranges(source)
    for frames, rows, video in zip(ranges, rows_of_videos(source, ranges), videos, strict=True):
        probabilities = task.probabilities(sequence_logits(network, np.load(video.path, mmap_mode="r")))
        found.append(
            Ethogram(
                task.behaviours,
                probabilities,
                thresholds=np.float32(0.5),  # type: ignore[arg-type]
                min_bout_frames=np.int64(1),  # type: ignore[arg-type]
                times_s=frame_times(source, frames, rows),
                name=video_name(source, frames.start),
                exclusive=task.exclusive,
                labels=video.labels,
            )
        )
    return found


def _decided(task: Behaviour, ethograms: list[Ethogram], train_labels: list[Any]) -> Behaviour:
    """With thresholds and shortest bouts, where the user has not fixed them."""
    if task.score_thresholds == AUTO:
        probabilities = np.concatenate([one.probabilities for one in ethograms])
        labels = np.concatenate([one.labels for one in ethograms if one.labels is not None])
        task = replace(task, score_thresholds=tuple(best_thresholds(probabilities, labels).tolist()))
    if task.min_bout_frames == AUTO:
        task = replace(task, min_bout_frames=_shortest(task, ethograms, train_labels))
    return task


def _shortest(task: Behaviour, ethograms: list[Ethogram], train_labels: list[Any]) -> tuple[int, ...]:
    """What all but a few labelled bouts reach; one frame for a behaviour whose F1 would suffer from it."""
    lengths = shortest_bouts(train_labels, task.min_bout_percentile)
    single = replace(task, min_bout_frames=(1,) * len(lengths))
    longer = replace(task, min_bout_frames=tuple(int(length) for length in lengths))
    before, after = (score_ethograms([_with_decisions(each, one) for one in ethograms]).f1 for each in (single, longer))
    return tuple(1 if new < old else int(length) for new, old, length in zip(after, before, lengths, strict=True))


def _with_decisions(task: Behaviour, ethogram: Ethogram) -> Ethogram:
    return replace(
        ethogram,
        thresholds=np.array(task.score_thresholds, np.float32),
        min_bout_frames=np.array(task.min_bout_frames, np.int64),
    )


def packed_by(source: Any) -> dict[str, Any]:
    """How frames were brought to their size when the data were packed: new videos must be seen in the same way."""
    first = made_from(source)[0]
    return {name: plain(first[name]) for name in ("fit", "crop") if first.get(name)}


def _save(
    path: Path,
    task: Behaviour,
    network: BehaviourNetwork,
    settings: Settings,
    scores: BehaviourScores,
    said: dict[str, Any],
) -> None:
    content = {
        "state_dict": {NETWORK + name: value for name, value in network.state_dict().items()},
        "penstock": {
            "version": NEWEST_VERSION,
            "task": {"kind": task.kind, "settings": plain(task.settings())},
            **said,
            "thresholds": task.thresholds,
            "recipe": plain(settings.sections(task)),
            "scores": plain(scores.scores()),
        },
    }
    WholeCheckpoints().save_checkpoint(content, path)
