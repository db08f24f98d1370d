"""Weights of plain networks in the two streams, and staying near them."""

from __future__ import annotations

import pytest
import torch
import torchvision

from penstock.errors import RecipeError
from penstock.tasks.behaviour.beginnings import Anchors, load_streams
from penstock.tasks.behaviour.sizes import SIZES
from penstock.tasks.behaviour.streams import TwoStreams


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
    with pytest.raises(RecipeError, match="not of a resnet18"):
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
