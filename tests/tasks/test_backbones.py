"""Networks by name."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.tasks.backbones import backbone_names, check_backbone, head_name, made_backbone, stages_of  # noqa: E402

SMALL = ("tiny", "mobilenet_v2", "mobilenet_v3_small", "resnet18", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5")


@pytest.mark.parametrize("name", SMALL)
def test_a_network_answers_with_one_number_for_each_class(name: str) -> None:
    network = made_backbone(name, 5, 64).eval()
    with torch.inference_mode():
        assert network(torch.zeros(2, 3, 64, 64)).shape == (2, 5)


@pytest.mark.parametrize("name", SMALL)
def test_the_head_is_in_the_last_stage(name: str) -> None:
    network = made_backbone(name, 5, 64)
    stages = stages_of(network)
    head = head_name(network)
    assert head.startswith(stages[-1][0])
    assert len(stages) >= 3
    assert not any(head.startswith(f"{stage}.") for stage, _ in stages[:-1])
    weights = {id(weight) for _, stage in stages for weight in stage.parameters()}
    assert weights == {id(weight) for weight in network.parameters()}


@pytest.mark.parametrize("name", ["googlenet", "vit_b_32"])
def test_networks_that_want_to_be_told_more_are_told(name: str) -> None:
    network = made_backbone(name, 3, 96)
    with torch.inference_mode():
        assert network.train()(torch.zeros(2, 3, 96, 96)).shape == (2, 3)


def test_every_classifier_of_torchvision_has_a_name() -> None:
    assert {"resnet50", "efficientnet_b0", "convnext_tiny", "swin_t"} <= set(backbone_names())
    assert not any("rcnn" in name or name.startswith(("fcn", "quantized", "r3d")) for name in backbone_names())


def test_a_wrong_name_names_the_nearest() -> None:
    with pytest.raises(ps.OptionError, match="Did you mean 'resnet18'"):
        check_backbone("resnt18")
