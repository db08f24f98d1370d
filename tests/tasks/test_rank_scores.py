"""Scores over two ranks are those of the whole set."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from tasks import rank_scores


def test_two_ranks_agree_on_the_scores_of_the_whole_set(tmp_path: Path) -> None:
    commands = [
        [sys.executable, "-W", "ignore", rank_scores.__file__, str(tmp_path / "store"), str(rank)] for rank in range(2)
    ]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    said = [rank.communicate(timeout=600)[0].strip().splitlines() for rank in ranks]
    whole = json.loads(rank_scores.told(rank_scores.scores_of(range(50))))
    assert [json.loads(line) for lines in said for line in lines if line.startswith("[{")] == [whole] * 4
