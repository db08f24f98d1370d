"""A small behaviour model that is not trained, but whose answers differ from frame to frame; and some videos."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

import penstock as ps
from penstock.cli.demo_animals import write_animal_videos

FRAMES = 120


@pytest.fixture(scope="session")
def mice_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a model with normalisations that have seen some noise, so that it tells frames apart."""
    torch.manual_seed(3)
    task = ps.Behaviour(
        behaviours=("background", "walk", "rear"),
        size="tiny",
        weights=None,
        image_size=(64, 64),
        normalize=((120.0, 120.0, 120.0), (60.0, 60.0, 60.0)),
        score_thresholds=(0.5, 0.5, 0.5),
        min_bout_frames=(1, 2, 2),
    )
    network = task.network()
    network.train()
    with torch.no_grad():
        for head in (network.frames.spatial_head, network.frames.motion_head):
            torch.nn.init.normal_(head.weight, std=0.5)
        for parameter in network.motion.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)  # else it sees no motion at all
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = None  # the plain mean of what it sees
        for _ in range(3):
            clips = network.pixels(torch.randint(0, 255, (4 * 11, 64, 64, 3), dtype=torch.uint8)).unflatten(0, (4, 11))
            network.frames(network.seen_images(clips), network.clip_flows(clips))
    path: Path = tmp_path_factory.mktemp("mice") / "mice.safetensors"
    return ps.Model(task, network, device="cpu").save(path)


@pytest.fixture(scope="session")
def mice_videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two short videos of an animal."""
    folder = tmp_path_factory.mktemp("new")
    write_animal_videos(folder, 2, FRAMES, (96, 64), seed=4)
    return folder / "videos"
