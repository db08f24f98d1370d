"""From random weights: shapes on textured ground are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from shape_making import SHAPES, Shapes


@pytest.mark.slow
def test_shapes_are_learned_from_random_weights(tmp_path: Path) -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=32, crop_scale=(0.6, 1.0), middle=1.0)
    run = ps.train(
        task,
        (Shapes(900), Shapes(150, first=5000)),
        epochs=14,
        folder=tmp_path / "run",
        batch_size=50,
        learning_rate=5e-3,
        progress=False,
        logger=False,
    )
    # Others than those by which the best checkpoint was chosen.
    assert ps.evaluate(run, Shapes(300, first=9000)).scores["accuracy"] >= 0.95
