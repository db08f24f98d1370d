"""The options that `evaluate` and `predict` share; defaults are those of the Python functions, looked up."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import click

from penstock.cli.options import MANY, adding
from penstock.cli.wording import in_own_words
from penstock.formats.videos.label_options import UNITS
from penstock.prediction.behaviour.decisions import OFF, decision_lines


def number_or_auto(text: str) -> int | str:
    """A whole number, or auto."""
    if text != "auto" and not text.isdecimal():
        raise click.BadParameter(f"{text!r} is neither a whole number nor auto.")
    return text if text == "auto" else int(text)


def bout_frames(text: str) -> int | str:
    """A whole number, or off."""
    if text != OFF and not text.isdecimal():
        raise click.BadParameter(f"{text!r} is neither a whole number of frames nor {OFF}.")
    return text if text == OFF else int(text)


def tell_decisions(facts: Mapping[str, Any]) -> None:
    """Say beside the results with what they were computed, and what stands between probabilities and answers."""
    if "precision_words" in facts:
        frames = f" Frames are those of {facts['frames_from']}." if "frames_from" in facts else ""
        click.echo(f"{facts['precision_words']}{frames}", err=True)
    for note in facts.get("notes", ()):
        click.echo(f"warning: {in_own_words(note)}.", err=True)
    if "changed_frames" in facts:
        for line in decision_lines(facts, "--min-bout-frames off"):
            click.echo(line, err=True)


ANSWER_OPTIONS: dict[str, tuple[Any, str]] = {
    "batch_size": (number_or_auto, "Samples that are brought at a time; answers do not depend on it."),
    "workers": (number_or_auto, "Threads that decode; auto: tuned while running."),
    "on_bad_sample": (
        click.Choice(["raise", "skip"]),
        "skip gives a file that cannot be read a row without an answer, and the reason.",
    ),
    "device": (str, "Where the network answers, such as cpu, or cuda:0,cuda:1; by default a GPU where there is one."),
    "progress": (bool, "Show a progress bar."),
    "precision": (
        click.Choice(["auto", "32", "bf16", "16"]),
        "What the network computes with; auto: as in its training. bf16 is faster on devices that have it.",
    ),
    "videos": (str, "Behaviour: take frames from these files, a folder or quoted pattern, not from the data."),
    "min_bout_frames": (bout_frames, "Behaviour: the shortest bout, in frames, or off. [default: as training decided]"),
    "truth": (str, "True boxes (a table, layer, folder or quoted pattern) to compare a file or folder of boxes with."),
    "min_score": (float, "With --truth: leave out boxes below this score."),
    "iou": (float, "With --truth: a match needs more overlap than this, as intersection over union."),
    "count_empty": (bool, "With --truth: boxes in images without true ones count against precision."),
    "units": (click.Choice(UNITS), "With --truth: what start and stop of true events are counted in."),
    "subject": (str, "With --truth: events of this subject alone; each: a class for each; any: put together."),
    "allow_outside": (bool, "With --truth: paths of images may leave the folder of the images."),
    "allow_drivers": (
        MANY,
        "With --truth: let this driver of GDAL, such as VRT, open rasters too; may be given several times.",
    ),
    "images": (str, "With --truth: folder of the images, which YOLO files and layers on a map need."),
}


def answer_options(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Add the options of a Python function to its command."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    return adding({name: ANSWER_OPTIONS[name] for name in ANSWER_OPTIONS if name in defaults}, defaults)
