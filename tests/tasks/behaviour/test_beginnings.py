"""Weights of plain networks in the two streams, and staying near them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torchvision

import penstock as ps
from penstock.errors import OptionError
from penstock.tasks.behaviour.networks import TwoStreams
from penstock.tasks.behaviour.settings import SIZES
from penstock.tasks.behaviour.warm_starts import Anchors, load_streams


def test_both_streams_begin_with_a_plain_network() -> None:
    plain = torchvision.models.resnet18(weights=None).state_dict()
    streams = TwoStreams(SIZES["fast"], 3, 4)
    load_streams(streams, plain, SIZES["fast"])
    assert torch.equal(streams.spatial.state_dict()["conv1.weight"], plain["conv1.weight"])
    motion = streams.motion.state_dict()
    assert torch.equal(motion["layer4.1.conv2.weight"], plain["layer4.1.conv2.weight"])
    assert torch.allclose(motion["conv1.weight"].sum(dim=1), plain["conv1.weight"].sum(dim=1), atol=1e-5)


def test_weights_for_pictures_serve_clips() -> None:
    plain = torchvision.models.resnet34(weights=None).state_dict()
    streams = TwoStreams(SIZES["slow"], 3, 4)
    load_streams(streams, plain, SIZES["slow"])
    body = streams.spatial.state_dict()
    assert torch.allclose(body["layer2.0.conv1.0.weight"].sum(dim=2), plain["layer2.0.conv1.weight"], atol=1e-5)
    assert torch.equal(body["layer2.0.conv1.1.weight"], plain["layer2.0.bn1.weight"])


def test_weights_of_another_network_are_refused() -> None:
    with pytest.raises(OptionError, match="not of a resnet18"):
        load_streams(TwoStreams(SIZES["fast"], 3, 4), torchvision.models.resnet34().state_dict(), SIZES["fast"])


def test_the_distance_grows_with_the_way_from_the_beginning_and_heads_are_free() -> None:
    streams = TwoStreams(SIZES["tiny"], 3, 4)
    anchors = Anchors(streams)
    assert anchors.distance(streams).item() == 0
    assert not anchors.state_dict()
    with torch.no_grad():
        streams.spatial_head.weight += 1
        assert anchors.distance(streams).item() == 0
        next(iter(streams.spatial.parameters())).add_(1)
    assert anchors.distance(streams).item() > 0


@pytest.mark.parametrize("weights", [None, "imagenet"])
def test_statistics_that_came_with_weights_stay_while_the_weights_are_trained(weights: str | None) -> None:
    task = ps.Behaviour(("walk", "rest"), size="tiny", weights=weights, frames=3, normalize="imagenet")
    stage = task.stage("frames")
    network: Any = stage.network().train()
    before = {name: value.clone() for name, value in network.frames.spatial.named_buffers()}
    images = torch.randint(0, 256, (4, 3, 32, 32, 3), dtype=torch.uint8)
    stage.loss(network, {"image": images, "label": torch.tensor([[1, 0], [0, 1], [1, 0], [0, 1]])})["loss"].backward()
    after = dict(network.frames.spatial.named_buffers())
    is_same = [torch.equal(after[name], value) for name, value in before.items()]
    assert all(is_same) if weights else not any(is_same)
    assert all(value.grad is not None for value in network.frames.spatial.parameters())
