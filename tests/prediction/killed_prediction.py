"""A prediction that is killed while it looks at a window: python killed_prediction.py RUN RASTER OUTPUT WINDOWS."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import torch

import penstock as ps
from penstock.prediction.boxes import finding_boxes as asking
from penstock.prediction.boxes import journals

LANES = 2  # windows that are looked at side by side


def main() -> None:
    run, raster, output, windows = sys.argv[1:]
    journals.BLOCK_SECONDS = 0.0  # every window is a block of its own
    torch.set_num_threads(LANES)
    left = int(windows)
    answers = asking.Asker._answers

    def answer_or_die(self: Any, *arguments: Any) -> Any:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return answers(self, *arguments)

    asking.Asker._answers = answer_or_die  # type: ignore[method-assign]
    ps.predict(run, raster, output=output, tile_px=128)


if __name__ == "__main__":
    main()
