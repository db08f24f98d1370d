"""Run folders as trainings leave them, made in a moment."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.codecs.images import encode_image
from penstock.flow.measuring.metrics import HOPS
from penstock.results.ethogram_tables import ethogram_details
from penstock.results.ethograms import Ethogram
from penstock.runs.layout import recipe_sections
from penstock.runs.writing import RunWriter
from penstock.training.options import DataOptions, FeedOptions, RunOptions, TrainOptions

CLASSES = ("cat", "dog", "rabbit")
GOAL = {"name": "accuracy", "larger_is_better": True}
STEPS = 20  # of an epoch
TASK: dict[str, Any] = {
    "size": 224,
    "multi_label": False,
    "label_smoothing": 0.1,
    "backbone": "mobilenet_v2",
    "weights": "imagenet",
}


def finished_run(
    folder: Path,
    *,
    classes: Sequence[str] = CLASSES,
    epochs: int = 8,
    seed: int = 0,
    train: Mapping[str, Any] | None = None,
    details: Mapping[str, Any] | None = None,
) -> Path:
    """A whole Run: settings, metrics, feed, details, pictures of samples, bad samples, environment, log."""
    writer = begun_run(folder, classes=classes, train={"epochs": epochs, **(train or {})})
    rng = np.random.default_rng(seed)
    log_epochs(writer, epochs, rng)
    log_feed(writer, [epochs * 600.0], waiting_share=0.04)
    confusion = confusion_of(len(classes), rng)
    writer.write_details(details or class_details(classes, confusion))
    write_worst(writer, classes, rng)
    writer.write_bad_samples([{"index": 7, "key": "dog/broken.jpg", "reason": "the JPEG ends after 812 bytes"}])
    writer.write_environment({"outcome": "finished", "ended": "2026-03-04T10:31:08+00:00", "seconds": 1868.4})
    writer.say("1,200 samples for training, 300 for validation.")
    return folder


def begun_run(folder: Path, *, classes: Sequence[str] = CLASSES, train: Mapping[str, Any] | None = None) -> RunWriter:
    """A Run that has only begun: settings and environment."""
    writer = RunWriter(folder)
    options = replace(TrainOptions(), **(train or {}))
    sections = recipe_sections(
        "classification",
        {"classes": list(classes), **TASK},
        data=DataOptions(path="pets.pack"),
        train=options,
        feed=FeedOptions(),
        run=RunOptions(folder=str(folder)),
    )
    chosen = {"batch_size": 64, "on_device": 32, "learning_rate": 0.001, "precision": "32-true"}
    writer.write_settings(sections, {"train": chosen, "goal": GOAL, "feed": {"workers": 2, "prefetch": 4}})
    writer.write_environment(ENVIRONMENT)
    return writer


ENVIRONMENT = {
    "command": ["penstock", "train", "pets.yaml"],
    "python": "3.11.7",
    "system": "Linux-6.1-x86_64",
    "machine": "x86_64",
    "cores": 8,
    "decoder": "libjpeg-turbo 3.0 kernel",
    "libraries": {"penstock": "0.1.0", "torch": "2.14.0"},
    "started": "2026-03-04T10:00:00+00:00",
    "outcome": "running",
    "devices": ["NVIDIA A10"],
}


def log_epochs(writer: RunWriter, epochs: int, rng: np.random.Generator) -> None:
    """Losses that fall and scores that rise."""
    for epoch in range(1, epochs + 1):
        for part in (1, 2):
            step = (epoch - 1) * STEPS + part * STEPS // 2
            loss = 1.1 * math.exp(-0.35 * (epoch - 1 + part / 2)) + rng.uniform(0, 0.08)
            rate = 0.0005 * (1 + math.cos(math.pi * (epoch - 1 + part / 2) / epochs))
            writer.log_metrics({"train_step_loss": loss, "train_learning_rate": rate}, epoch=epoch, step=step)
        accuracy = 1 - 0.6 * math.exp(-0.45 * epoch) - rng.uniform(0, 0.03)
        scores = {"accuracy": accuracy, "balanced_accuracy": accuracy - 0.01, "f1": accuracy - 0.015}
        writer.log_metrics(
            {"val_loss": 1.2 * math.exp(-0.3 * epoch) + 0.08, **scores, "auroc": 1 - (1 - accuracy) / 3},
            epoch=epoch,
            step=epoch * STEPS,
        )
        writer.log_metrics({"train_loss": 1.1 * math.exp(-0.35 * epoch) + 0.04}, epoch=epoch, step=epoch * STEPS)


def log_feed(writer: RunWriter, seconds: Sequence[float], *, waiting_share: float, lines: int = 10) -> None:
    """The log of the feed: several lines for each process that trained, each counting from its own start."""
    with writer.feed.open("a", encoding="utf-8") as file:
        for whole in seconds:
            for line in range(1, lines + 1):
                file.write(json.dumps(feed_line(whole * line / lines, waiting_share)) + "\n")


def feed_line(seconds: float, waiting_share: float) -> dict[str, Any]:
    samples = int(40 * seconds)
    costs = {"read": 0.01, "decode": 1.6, "transform": 0.3, "collate": 0.05, "deliver": 0.02}
    hops = {
        hop: {
            "items": samples,
            "cpu_seconds": samples * costs[hop] / 1e3,
            "wait_seconds": samples * costs[hop] / 2e3,
            "bytes": samples * (90_000 if hop == "read" else 0),
        }
        for hop in HOPS
    }
    return {
        "time": 1.7e9 + seconds,
        "event": "running",
        "epoch": 0,
        "batches": samples // 8,
        "samples": samples,
        "running_seconds": seconds,
        "waited_seconds": seconds * waiting_share,
        "consumer_seconds": seconds * (1 - waiting_share),
        "hops": hops,
    }


def confusion_of(count: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Mostly right, with some pairs taken for each other."""
    counts = np.diag(rng.integers(40, 60, count))
    for _ in range(3 * count):
        truth, answer = rng.integers(0, count, 2)
        counts[truth, answer] += rng.integers(1, 4)
    return counts


def class_details(classes: Sequence[str], confusion: np.ndarray[Any, Any]) -> dict[str, Any]:
    found, support, answered = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    rows = [
        {
            "class": name,
            "support": int(support[number]),
            "precision": found[number] / answered[number],
            "recall": found[number] / support[number],
            "f1": 2 * found[number] / (support[number] + answered[number]),
            "auroc": 0.99,
        }
        for number, name in enumerate(classes)
    ]
    return {"kind": "classification", "classes": list(classes), "per_class": rows, "confusion": confusion}


def behaviour_details() -> dict[str, Any]:
    """What a Run on behaviour tells of its validation: one video, in which an animal walks."""
    labels = np.zeros((100, 2), np.int8)
    labels[20:50, 1] = 1
    labels[:, 0] = 1 - labels[:, 1]
    likely = np.roll(labels, 5, axis=0) * np.float32(0.9)
    one = Ethogram(("background", "walk"), likely, 0.5, 1, np.arange(100) / 10, "mouse.mp4", labels=labels)
    return {**one.scores().details(), "ethograms": ethogram_details([one])}


def write_worst(writer: RunWriter, classes: Sequence[str], rng: np.random.Generator, count: int = 12) -> None:
    rows = [
        {
            "key": f"{classes[number % len(classes)]}/photo_{number:03}.jpg",
            "index": number,
            "truth": classes[number % len(classes)],
            "answer": classes[(number + (number < 9)) % len(classes)],
            "score": 0.95 - 0.03 * number,
            "loss": 4.0 - 0.3 * number,
        }
        for number in range(count)
    ]
    writer.write_worst(rows, [picture(rng, wide=number % 2 == 0) for number in range(count)])


def picture(rng: np.random.Generator, *, wide: bool = True) -> bytes:
    """A small JPEG of colours that run into each other."""
    height, width = (100, 150) if wide else (150, 100)
    down, across = np.linspace(0, 1, height)[:, None, None], np.linspace(0, 1, width)[None, :, None]
    first, second, third = rng.uniform(0, 255, (3, 3))
    pixels = first * (1 - down) * across + second * down + third * (1 - across) * (1 - down)
    return encode_image(pixels.clip(0, 255).astype(np.uint8), "jpeg", 80)


def staged_run(folder: Path, stages: Sequence[str] = ("flow", "frames", "sequence"), *, is_whole: bool = True) -> Path:
    """A behaviour training in stages, of which each has one epoch more than the one before."""
    writer = RunWriter(folder)
    options = {"data": DataOptions(), "train": TrainOptions(), "feed": FeedOptions(), "run": RunOptions()}
    task = {"behaviours": ["background", "walk"], "size": "tiny", "weights": None}
    goal = {"name": "f1_without_background", "larger_is_better": True}
    writer.write_settings(recipe_sections("behaviour", task, **options), {"goal": goal})
    writer.write_environment({**ENVIRONMENT, "devices": None})
    for number, name in enumerate(stages):
        stage = begun_run(folder / "stages" / name, train={"epochs": 5})
        stage.write_environment({"started": f"2026-03-04T1{number}:00:00+00:00"})
        log_epochs(stage, number + 1, np.random.default_rng(number))
        log_feed(stage, [60.0], waiting_share=0.5 if name == "frames" else 0.02)
    if is_whole:
        writer.log_metrics({"f1_without_background": 0.75, "walk_f1": 0.75}, epoch=5, step=0)
        writer.write_details({"kind": "behaviour", **behaviour_details()})
        writer.write_environment({"outcome": "finished"})
    return folder


def interrupted_run(folder: Path) -> Path:
    """Stopped after its first step."""
    writer = begun_run(folder)
    writer.log_metrics({"train_step_loss": 1.2, "train_learning_rate": 0.001}, epoch=1, step=1)
    writer.write_environment({"outcome": "interrupted", "ended": "2026-03-04T10:00:09+00:00", "seconds": 9.0})
    return folder
