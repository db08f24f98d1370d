"""A model is named by the same words everywhere, and comes back with its settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")

import penstock as ps
from penstock.tasks.checkpoints import model_file

TASK = ps.Detection(["Tree"], backbone="tiny", score_threshold=0.77, nms_threshold=0.22)


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "m.safetensors"])
def test_a_saved_model_comes_back_with_its_thresholds(name: str, tmp_path: Path) -> None:
    path = ps.Model(TASK, TASK.network(), device="cpu").save(tmp_path / name)
    again = ps.load(path, device="cpu")
    assert again.task == TASK and again.thresholds == {"score": 0.77, "nms": 0.22}


def test_a_folder_of_save_pretrained_is_a_model(tmp_path: Path) -> None:
    ps.Model(TASK, TASK.network(), device="cpu").save(tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"num_classes": 1}))
    assert ps.load(tmp_path, device="cpu").classes == ("Tree",)
    assert model_file(tmp_path) == tmp_path / "model.safetensors"
    warm = ps.Detection(["Tree", "Snag"], backbone="tiny", weights=str(tmp_path))
    assert warm.pretrained() is not None


def test_names_of_deepforest_are_on_the_hub() -> None:
    assert model_file("weecology/deepforest-bird") == "hf://weecology/deepforest-bird"
    assert model_file("hf://somebody/trees") == "hf://somebody/trees"


@pytest.mark.parametrize("name", ["missing.pt", "weecology/deepforest-trees", "."])
def test_one_error_says_what_a_model_may_be(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ps.DataError, match=r"this is no model: .*Name a Run, a checkpoint, .safetensors") as caught:
        ps.load(name)
    assert ("Did you mean 'weecology/deepforest-tree'" in str(caught.value)) == ("trees" in name)


def test_weights_of_a_saved_classifier_begin_another(tmp_path: Path) -> None:
    task = ps.Classification(("a", "b"), backbone="tiny", size=32)
    path = ps.Model(task, task.network(), device="cpu").save(tmp_path / "m.pt")
    other = ps.Classification(("a", "b", "c"), backbone="tiny", size=32, weights=str(path))
    weights = other.pretrained()
    assert weights is not None
    other.load_backbone(other.network(), weights)
