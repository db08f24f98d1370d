"""Models that see clips by 3D convolutions predict as the others do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.cli.demo_animals import write_animal_videos  # noqa: E402
from penstock.prediction.behaviour import watching  # noqa: E402
from penstock.tasks.inference.folding import folded  # noqa: E402

FRAMES = 20


@pytest.fixture(scope="module")
def slow_model() -> Any:
    """Random weights, and normalisations that change what they see."""
    torch.manual_seed(5)
    normalize = ((120.0, 120.0, 120.0), (60.0, 60.0, 60.0))
    task = ps.Behaviour(
        behaviours=("background", "walk"),
        size="slow",
        weights=None,
        frames=3,
        image_size=(32, 32),
        normalize=normalize,
        score_thresholds=(0.5, 0.5),
        min_bout_frames=(1, 1),
    )
    network = task.network()
    for module in network.modules():
        if isinstance(module, (torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    return ps.Model(task, network, device="cpu")


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_animal_videos(tmp_path_factory.mktemp("new"), 1, FRAMES, (64, 48), seed=4)[0]


def outputs(folder: Path) -> dict[str, np.ndarray]:
    """The features and probabilities that a prediction left."""
    found = {}
    with h5py.File(folder / "animal_0_outputs.h5") as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return {name: values for name, values in found.items() if values.dtype.kind == "f"}


def test_normalisations_of_clips_become_part_of_convolutions(slow_model: Any) -> None:
    made = folded(slow_model.network)
    left = [name for name, module in made.named_modules() if isinstance(module, torch.nn.BatchNorm3d)]
    assert left == ["frames.motion_scale"]  # no convolution is before it
    weight = made.frames.spatial.layer1[0].conv1[0].weight
    assert weight.dim() == 5 and weight.is_contiguous(memory_format=torch.channels_last_3d)
    assert made.motion.stages[0][0].weight.is_contiguous(memory_format=torch.channels_last)


def test_a_slow_model_predicts_what_its_network_says(
    slow_model: Any, video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ps.predict(slow_model, [video], output=tmp_path / "quick", precision="32")
    monkeypatch.setattr(watching, "made_to_answer", lambda network, device, short: network)
    ps.predict(slow_model, [video], output=tmp_path / "plain", precision="32")
    quick, plain = outputs(tmp_path / "quick"), outputs(tmp_path / "plain")
    assert quick.keys() == plain.keys() and any(name.endswith("/P") for name in quick)
    for name, values in plain.items():
        np.testing.assert_allclose(quick[name], values, atol=1e-4 * max(1, np.abs(values).max()), err_msg=name)


@pytest.mark.slow
def test_a_slow_model_predicts_in_bfloat16(slow_model: Any, video: Path, tmp_path: Path) -> None:
    ps.predict(slow_model, [video], output=tmp_path / "short", precision="bf16")
    probabilities = outputs(tmp_path / "short")["sequence/P"]
    assert probabilities.shape == (FRAMES, 2) and np.isfinite(probabilities).all()
