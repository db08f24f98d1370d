"""Penstock: every frame of some videos in order, at 224×224, as prediction is given them."""

from __future__ import annotations

import numpy as np

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve
from penstock.formats.videos.frame_streams import FrameStream
from penstock.formats.videos.framing import make_framing
from penstock.formats.videos.supplying import named_videos, supply_of

FRAMING = make_framing("224x224", "stretch", None)


def build(settings: Settings) -> Epoch:
    def epoch_of(_: int) -> Batches:
        for video in FrameStream([supply_of(named, FRAMING) for named in named_videos(settings["paths"])]):
            for block in video.blocks():
                yield block.pixels, np.zeros(len(block.times), np.int64)

    return epoch_of


if __name__ == "__main__":
    serve(["penstock"], build)
