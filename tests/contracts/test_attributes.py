"""A misspelt attribute or option is refused by everything that users hold: it would change nothing, in silence."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps


def arrays() -> Any:
    return ps.Arrays({"image": np.zeros((4, 32, 32, 3), np.uint8)})


def made(tmp_path: Path) -> dict[str, Any]:
    packed = ps.pack(arrays(), tmp_path / "a.pack", progress=False)
    return {
        "Arrays": arrays(),
        "Pack": packed,
        "Subset": ps.Subset(arrays(), np.arange(2)),
        "Concat": ps.concat([arrays(), arrays()]),
        "Flow": ps.Flow(packed),
    }


@pytest.mark.parametrize("kind", ["Arrays", "Pack", "Subset", "Concat", "Flow"])
def test_an_attribute_that_is_not_there_cannot_be_set(kind: str, tmp_path: Path) -> None:
    one = made(tmp_path)[kind]
    with pytest.raises(AttributeError, match=f"{kind} has no attribute 'sceema', so it cannot be set"):
        one.sceema = 1
    if kind != "Flow":
        assert len(pickle.loads(pickle.dumps(one))) == len(copy.copy(one)) == len(one)


def test_settings_of_a_model_are_changed_by_changed_alone() -> None:
    pytest.importorskip("torchvision")
    task = ps.Detection(["Tree"], backbone="tiny")
    model = ps.Model(task, task.network(), device="cpu")
    with pytest.raises(AttributeError, match=r"use model = model.changed\(score_threshold=0.5\)"):
        model.score_threshold = 0.5  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Did you mean 'score_threshold'"):
        model.score_thresh = 0.5  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'task' that can be set"):
        model.task = task
    assert model.changed(score_threshold=0.5).thresholds["score"] == 0.5
    assert copy.deepcopy(model).classes == pickle.loads(pickle.dumps(model)).classes == ("Tree",)
    with pytest.raises(AttributeError):
        task.score_treshold = 0.5  # type: ignore[attr-defined]


def test_a_run_has_no_other_attributes(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("task: {kind: detection}\n")
    run = ps.Run(tmp_path)
    with pytest.raises(AttributeError, match="Run has no attribute 'scoress'"):
        run.scoress = {}  # type: ignore[attr-defined]


def test_an_unknown_keyword_names_the_nearest() -> None:
    with pytest.raises(TypeError, match="Did you mean 'workers'"):
        ps.Flow(arrays(), worker=2)  # type: ignore[call-arg]
