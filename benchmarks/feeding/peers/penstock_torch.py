"""Penstock's flow through to_torch: dicts of tensors over the same memory."""

from __future__ import annotations

import numpy  # noqa: F401 - as peers import theirs before the clock starts
import pyarrow  # noqa: F401
import torch  # noqa: F401

from benchmarks.feeding.peers.penstock_images import flow_of
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def build(settings: Settings) -> Epoch:
    loader = flow_of(settings).to_torch()

    def epoch_of(epoch: int) -> Batches:
        loader.set_epoch(epoch)
        for batch in loader:
            yield batch["image"].numpy(), batch["label"].numpy()

    return epoch_of


if __name__ == "__main__":
    serve(["penstock", "torch"], build)
