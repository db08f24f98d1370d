"""How a contestant speaks: a line of JSON when it is ready, and one for each pass over the data that it is asked for.

It runs as `python -m benchmarks.feeding.peers.NAME SETTINGS`, stays alive between passes, and ends with its input.
Only the standard library is used here, because each contestant runs in an environment of its own.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO

Settings = dict[str, Any]
Batches = Iterable[tuple[Any, Any]]  # arrays that numpy knows: images (or clips), and one label for each
Epoch = Callable[[int], Batches]


def serve(
    packages: Sequence[str], build: Callable[[Settings], Epoch], prepare: Callable[[Settings], object] | None = None
) -> None:
    """Answer until the input ends. `prepare` converts the data, untimed; `build` gives what makes an epoch."""
    answers = _own_output()
    settings = json.loads(sys.argv[1])
    if prepare is not None:
        prepare(settings)
    _say(answers, {"versions": {name: importlib.metadata.version(name) for name in packages}})
    epoch_of: Epoch | None = None
    for number, _ in enumerate(sys.stdin):
        start = time.perf_counter()
        if epoch_of is None:
            epoch_of = build(settings)
        _say(answers, _pass(epoch_of(number), start))


def _own_output() -> TextIO:
    """Standard output for answers alone: what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _say(answers: TextIO, what: dict[str, Any]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def _pass(batches: Batches, start: float) -> dict[str, Any]:
    """Count what comes, look at a few pixels of each batch, and stop the time."""
    samples, labels, means, first_seconds = 0, 0, [], 0.0
    images = None
    for images, marks in batches:
        first_seconds = first_seconds or time.perf_counter() - start
        samples += images.shape[0]
        labels += int(marks.sum())
        means.append(float(images[:: max(1, len(images) // 8), ::16, ::16].mean()))
    seconds = time.perf_counter() - start
    shape, dtype = ([], "nothing") if images is None else (list(images.shape[1:]), str(images.dtype))
    mean = sum(means) / max(len(means), 1)
    return {
        "seconds": seconds,
        "first_seconds": first_seconds,
        "samples": samples,
        "shape": shape,
        "dtype": dtype,
        "mean": mean,
        "labels": labels,
    }
