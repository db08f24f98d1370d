"""A prediction that is killed in the middle of a video: python killed_watching.py MODEL VIDEOS OUTPUT FRAMES."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import penstock as ps
from penstock.results import feature_files


def main() -> None:
    model, videos, output, frames = sys.argv[1:]
    feature_files.COMMIT_FRAMES = 10
    append = feature_files.FeatureFile.append

    def append_or_die(self: Any, *arguments: Any) -> None:
        append(self, *arguments)
        if self.frames >= int(frames):
            os.kill(os.getpid(), signal.SIGKILL)

    feature_files.FeatureFile.append = append_or_die  # type: ignore[method-assign]
    ps.predict(model, videos, output=output, device="cpu")


if __name__ == "__main__":
    main()
