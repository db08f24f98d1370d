"""Keras in a process of its own: its backend is chosen once, when it is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
RUNS = (
    "plain_fit",
    "fit_with_workers",
    "fit_in_steps",
    "fit_twice",
    "fit_with_validation",
    "evaluated_and_predicted",
    "from_next",
    "an_image_network_learns",
    "named_targets",
)


def keras_answers(backend: str) -> dict[str, Any]:
    """What every function of keras_runs returns with a backend."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.flow.adapters.keras_runs", *RUNS],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "PYTHONPATH": os.pathsep.join(
                map(str, (REPOSITORY, REPOSITORY / "tests", os.environ.get("PYTHONPATH", "")))
            ),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
    )
    assert result.returncode == 0, result.stderr
    answers: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    assert answers["backend"] == backend
    return answers
