"""Training through Penstock: the feed hides behind the model, outruns hand-written loaders, and starts at once.

python -m benchmarks.training                  everything: hidden trivial start
python -m benchmarks.training trivial --rounds 7

hidden    MobileNetV2 at 224 px on the CPU beside the same loop over one cached batch
trivial   a model that does nothing, in Lightning: beside DataLoader + torchvision, and beside simplejpeg + OpenCV
start     from the start of a process to its first step, on a pack of a million rows
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.million import million_pack
from benchmarks.pictures import write_jpegs
from benchmarks.rounds import alternate
from benchmarks.tables import OURS, Bar, Row, Table, Value, compare, versions_of, within

MOST_EXTRA, LEAST_OF_TORCHVISION, LEAST_OF_HAND_WRITTEN, MOST_START_SECONDS = 1.03, 2.0, 1.2, 10.0
PICTURES, BATCH, WORKERS, STEPS, SIDE = 2000, 64, 2, 8, 224
TORCHVISION, HAND_WRITTEN = "DataLoader + torchvision", "DataLoader + simplejpeg + OpenCV"


def photographs(home: Path) -> Path:
    write_jpegs(home / "jpegs", PICTURES)
    return home / "jpegs"


def photograph_pack(home: Path) -> Any:
    import penstock as ps

    path = home / "photographs.pack"
    if not path.exists():
        ps.pack(ps.Images(photographs(home)), path, split="train", progress=False)
    return ps.open(path)


def quiet_trainer(**arguments: Any) -> Any:
    import lightning.pytorch as lightning

    return lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
        **arguments,
    )


class Repeated:
    """One batch, again and again."""

    def __init__(self, batch: Any, count: int) -> None:
        self._batch, self._count = batch, count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self._count):
            yield self._batch


def hidden(home: Path, rounds: int) -> list[Row]:
    """Steps of MobileNetV2 on fresh batches, and on one that is there."""
    import penstock as ps

    task = ps.Classification(backbone="mobilenet_v2", size=SIDE)
    module = ps.module_for(task, photograph_pack(home), batch_size=32)
    batch = next(iter(module.feed.training_loader(_alone())))
    cached = {name: value.clone() if hasattr(value, "clone") else value for name, value in batch.items()}

    def ours() -> None:
        quiet_trainer(max_epochs=1, limit_train_batches=STEPS).fit(module)

    def theirs() -> None:
        quiet_trainer(max_epochs=1).fit(module, Repeated(cached, STEPS))

    ours()
    theirs()
    fed, held = alternate(ours, theirs, rounds)
    cached_name = "one batch that is there"
    values = [Value(OURS, fed, "penstock"), Value(cached_name, held, "limit")]
    bars = [Bar(OURS, cached_name, 1 / MOST_EXTRA)]
    return [compare(f"{STEPS} steps of MobileNetV2, 224 px", "s", values, bars, smaller_is_better=True)]


def _alone() -> Any:
    from penstock.training.feeds import Rank

    return Rank()


# A model that does nothing


def _epoch_seconds(module: Any, *loaders: Any) -> float:
    """The second of two epochs: workers are started and files are in memory."""
    from lightning.pytorch.callbacks import Callback

    class Clock(Callback):
        started = ended = 0.0

        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            self.started = time.perf_counter()

        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            self.ended = time.perf_counter()

    clock = Clock()
    quiet_trainer(max_epochs=2, callbacks=[clock]).fit(module, *loaders)
    return clock.ended - clock.started


def _fed_by_penstock(home: Path) -> Callable[[], float]:
    import penstock as ps
    from benchmarks.trivial_model import Trivial

    module = ps.module_for(Trivial(size=SIDE), photograph_pack(home), batch_size=BATCH)
    return lambda: _epoch_seconds(module)


def _fed_by_torchvision(home: Path) -> Callable[[], float]:
    from benchmarks.trivial_model import PlainModule, torchvision_loader

    return lambda: _epoch_seconds(
        PlainModule(channels_first=True), torchvision_loader(photographs(home), BATCH, WORKERS, SIDE)
    )


def _fed_by_hand(home: Path) -> Callable[[], float]:
    from benchmarks.trivial_model import PlainModule, hand_written_loader

    return lambda: _epoch_seconds(
        PlainModule(channels_first=False), hand_written_loader(photographs(home), BATCH, WORKERS, SIDE)
    )


def trivial(home: Path, rounds: int) -> list[Row]:
    """Images a second, in alternating rounds."""
    contestants = {
        OURS: _fed_by_penstock(home),
        TORCHVISION: _fed_by_torchvision(home),
        HAND_WRITTEN: _fed_by_hand(home),
    }
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        names = list(contestants)
        for name in names[number % 3 :] + names[: number % 3]:
            taken[name].append(contestants[name]())
    versions = versions_of(["torch", "torchvision", "lightning"])
    values = [
        Value(name, PICTURES / statistics.median(seconds), "penstock" if name == OURS else "peer", versions=versions)
        for name, seconds in taken.items()
    ]
    bars = [Bar(OURS, TORCHVISION, LEAST_OF_TORCHVISION), Bar(OURS, HAND_WRITTEN, LEAST_OF_HAND_WRITTEN)]
    return [compare("a model that does nothing, in Lightning", "images/s", values, bars)]


# The first step

FIRST_STEP = """
import os, sys, time
import penstock as ps
from lightning.pytorch.callbacks import Callback

class First(Callback):
    def on_train_batch_end(self, *rest):
        print(time.time(), flush=True)
        os._exit(0)

task = ps.Classification(backbone="mobilenet_v2", size=32)
ps.train(task, sys.argv[1], folder=sys.argv[2], batch_size=32, callbacks=[First()], progress=False)
"""


def start(home: Path, rounds: int) -> list[Row]:
    """Fresh processes; the files are in memory."""
    pack = million_pack(home)
    seconds = statistics.median(_first_step_seconds(pack) for _ in range(rounds))
    return [within("first step, a pack of a million rows", seconds, "s", MOST_START_SECONDS)]


def _first_step_seconds(pack: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        command = [sys.executable, "-c", FIRST_STEP, str(pack), f"{folder}/run"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(said.split()[-1]) - began


CONTESTS = {"hidden": hidden, "trivial": trivial, "start": start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *CONTESTS], help=f"which to run: {' '.join(CONTESTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "penstock-benchmarks" / "training")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ["PENSTOCK_CACHE"] = str(options.folder / "penstock-cache")  # what is remembered stays with the data
    warnings.simplefilter("ignore")
    importlib.import_module("lightning.pytorch")  # which sets the level itself
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    table = Table("training", options.json)
    for name in options.names or CONTESTS:
        for row in CONTESTS[name](options.folder, options.rounds):
            table.add(row)


if __name__ == "__main__":
    main()
