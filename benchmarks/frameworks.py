"""What frameworks get of a flow: to_torch beside the bare flow, to_keras beside Keras' own loader.

python -m benchmarks.feed --setup tensorflow   install Keras with TensorFlow, in an environment of its own
python -m benchmarks.frameworks                everything: torch torch-raw keras keras-224
python -m benchmarks.frameworks torch --rounds 9
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import penstock as ps
from benchmarks.contests import check_names, parser_of, run
from benchmarks.feeding import data, loops
from benchmarks.feeding.contestants import Entry
from benchmarks.feeding.workloads import BATCH, WORKERS, Workload, expected_images
from benchmarks.tables import BEST_PEER, Bar

LEAST_OF_THE_FLOW, LEAST_OF_KERAS = 0.97, 1.8


def torch(home: Path, pack: Path, words: str) -> Workload:
    """The same batches as arrays and as tensors."""
    return Workload(
        f"to_torch beside the bare flow, {words}",
        "images/s",
        expected_images(data.kept_pack(home), "uint8"),  # the same photographs
        [
            Entry("Penstock, to_torch", "penstock_torch", role="penstock"),
            Entry("Penstock, bare flow", "penstock_images", role="limit"),
        ],
        [Bar("Penstock, to_torch", "Penstock, bare flow", LEAST_OF_THE_FLOW)],
        {"home": str(home), "pack": str(pack), "layout": "uint8", "batch": BATCH, "workers": WORKERS},
    )


def keras(home: Path, folder: Path, same: Path, words: str) -> Workload:
    """A folder of JPEGs, resized to 224 px; ours also from a pack at that size, which is what our pages recommend.

    Keras gives float32 whether one wants it or not; of ours both are shown. It decodes with libjpeg's fast transform,
    which is an approximation; ours does so only where the user asks for it, as in the line that says so. `same` is a
    pack of what the folder has: the bare loop decodes and resizes it without any pipeline, which no pipeline over the
    same library can surpass.
    """
    pack, bare = data.square_pack(home), "bare C loop, the same JPEGs"
    expected = replace(expected_images(data.kept_pack(home), "uint8"), dtype="float32")
    ours, in_float, packed = "Penstock, to_keras", "Penstock, to_keras, float32", "Penstock, to_keras, pack at 224 px"
    fast, as_keras = "Penstock, to_keras, fast_decode", "decodes by the fast transform, as TensorFlow does: not exact"
    return Workload(
        f"to_keras beside image_dataset_from_directory, {words} → 224×224 → batch 64",
        "images/s",
        expected,
        [
            Entry(ours, "penstock_keras", role="penstock", settings={"dtype": "uint8"}),
            Entry(in_float, "penstock_keras", role="penstock"),
            Entry(fast, "penstock_keras", role="penstock", settings={"dtype": "uint8", "fast": True}, note=as_keras),
            Entry(packed, "penstock_keras", role="penstock", settings={"dtype": "uint8", "pack": str(pack)}),
            Entry(bare, "", role="limit", note="decodes and resizes in two threads, no pipeline"),
            Entry("image_dataset_from_directory", "keras_images", "tensorflow"),
        ],
        [Bar(name, BEST_PEER, LEAST_OF_KERAS) for name in (ours, packed)],
        {"home": str(home), "folder": str(folder), "dtype": "float32", "batch": BATCH, "workers": WORKERS},
        {bare: lambda: loops.whole_loop(home, ps.Pack(same), "whole")},
    )


WORKLOADS: dict[str, Callable[[Path], Workload]] = {
    "torch": lambda home: torch(home, data.kept_pack(home), "JPEGs"),
    "torch-raw": lambda home: torch(home, data.raw_pack(home), "raw pixels"),
    "keras": lambda home: keras(home, data.jpegs(home), data.kept_pack(home), "JPEGs of about 500×375 px"),
    "keras-224": lambda home: keras(home, data.square_jpegs(home), data.square_pack(home), "JPEGs of 224×224 px"),
}


def main() -> None:
    parser = parser_of(__doc__, WORKLOADS)
    options = parser.parse_args()
    check_names(parser, options.names, WORKLOADS)
    run("frameworks", options, WORKLOADS)


if __name__ == "__main__":
    main()
