"""Weights of detectors and backbones from files that others wrote."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
pytest.importorskip("safetensors")

from safetensors.torch import save_file  # noqa: E402
from torchvision.models.detection import RetinaNet  # noqa: E402
from torchvision.models.detection.backbone_utils import _resnet_fpn_extractor  # noqa: E402
from torchvision.ops.feature_pyramid_network import LastLevelP6P7  # noqa: E402
from torchvision.ops.misc import FrozenBatchNorm2d  # noqa: E402

import penstock as ps  # noqa: E402

CONFIG = {"num_classes": 1, "nms_thresh": 0.07, "score_thresh": 0.12, "label_dict": {"Tree": 0}}


def published(classes: int = 1, backbone: str = "resnet18") -> Any:
    """A RetinaNet as torchvision builds it, whose weights have the published names and shapes."""
    torch.manual_seed(1)
    body = torchvision.models.get_model(backbone, weights=None, norm_layer=FrozenBatchNorm2d)
    pyramid = _resnet_fpn_extractor(body, 5, returned_layers=[2, 3, 4], extra_blocks=LastLevelP6P7(256, 256))
    return RetinaNet(pyramid, classes).eval()


@pytest.fixture(scope="module")
def small() -> Any:
    return published()


def outputs(model: Any, pixels: Any) -> Any:
    with torch.inference_mode():
        return model.head(list(model.backbone(pixels).values()))


def check_same(found: Any, theirs: Any) -> None:
    pixels = torch.randn(1, 3, 96, 128, generator=torch.Generator().manual_seed(3))
    wanted = outputs(theirs, pixels)
    with torch.inference_mode():
        seen = found.network(pixels)
    torch.testing.assert_close(seen.logits, wanted["cls_logits"])
    torch.testing.assert_close(seen.offsets, wanted["bbox_regression"])


def test_a_published_detector_brings_all_that_it_was_used_with(tmp_path: Path) -> None:
    theirs = published(backbone="resnet50")
    save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    found = ps.load(tmp_path / "model.safetensors", device="cpu")
    task: Any = found.task
    assert (task.classes, task.backbone, task.input_scale, task.gsd) == (("Tree",), "resnet50", 2.0, 0.1)
    assert found.thresholds == {"score": 0.12, "nms": 0.07}
    check_same(found, theirs)


def test_names_may_stand_behind_model_and_heads_may_be_numbered_as_of_old(small: Any, tmp_path: Path) -> None:
    old = {}
    for name, value in small.state_dict().items():
        pieces = name.split(".")
        if "conv" in pieces and pieces[0] == "head":
            pieces[3:5] = [str(int(pieces[3]) * 2)]
        old["model." + ".".join(pieces)] = value
    assert "model.head.classification_head.conv.6.weight" in old
    torch.save(old, tmp_path / "NEON.pt")
    found = ps.load(tmp_path / "NEON.pt", device="cpu")
    assert found.classes == ("Tree",)
    assert found.thresholds == {"score": 0.1, "nms": 0.05}
    check_same(found, small)


@pytest.mark.parametrize("ending", ["ckpt", "pl"])
def test_a_checkpoint_of_lightning_is_read_with_its_labels(tmp_path: Path, ending: str) -> None:
    theirs = published(classes=2)
    content = {
        "state_dict": {f"model.{name}": value for name, value in theirs.state_dict().items()},
        "hyper_parameters": {"config": {"retinanet": {"score_thresh": 0.2}, "nms_thresh": 0.03}},
        "label_dict": {"Dead": 1, "Alive": 0},
        "pytorch-lightning_version": "2.0.0",
    }
    torch.save(content, tmp_path / f"model.{ending}")
    found = ps.load(tmp_path / f"model.{ending}", device="cpu")
    assert found.classes == ("Alive", "Dead")
    assert found.thresholds == {"score": 0.2, "nms": 0.03}
    assert found.task.gsd is None  # type: ignore[attr-defined]
    check_same(found, theirs)


def test_labels_that_do_not_fit_the_network_are_an_error(small: Any, tmp_path: Path) -> None:
    save_file(small.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"label_dict": {"A": 0, "B": 1}}))
    with pytest.raises(ps.DataError, match="names 2 classes, and its network has 1"):
        ps.load(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"label_dict": {"Tree": "zero"}}, "label_dict gives class 'Tree' the number 'zero', which is not a whole"),
        ({"label_dict": {"Tree": None}}, "label_dict gives class 'Tree' the number None, which is not a whole"),
        ({"label_dict": {"Tree": 0.5}}, "label_dict gives class 'Tree' the number 0.5, which is not a whole"),
        ({"label_dict": {"Tree": 0, "Bush": 0}}, "label_dict gives 'Tree' and 'Bush' the same number 0"),
        ({"numeric_to_label_dict": {"a": "Tree"}}, "numeric_to_label_dict gives class 'Tree' the number 'a', which"),
    ],
)
@pytest.mark.parametrize("ending", ["safetensors", "ckpt"])
def test_labels_without_whole_numbers_are_an_error_that_names_the_file(
    small: Any, tmp_path: Path, config: dict[str, Any], message: str, ending: str
) -> None:
    file = tmp_path / f"model.{ending}"
    if ending == "ckpt":
        torch.save({"state_dict": small.state_dict(), **config}, file)
    else:
        save_file(small.state_dict(), file)
        (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ps.DataError, match=re.escape(f"{file}: {message}")):
        ps.load(file)


def test_other_classes_keep_the_box_head_and_the_outputs_of_the_same_name(tmp_path: Path) -> None:
    theirs = published(classes=2)
    save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"label_dict": {"Tree": 0, "Shrub": 1}}))
    task: Any = replace(
        ps.load(tmp_path / "model.safetensors").task,  # type: ignore[type-var]
        classes=("Rock", "Shrub", "Snag"),
        weights=str(tmp_path / "model.safetensors"),
    )
    network = task.network()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    task.load_backbone(network, task.pretrained())
    after, given = network.state_dict(), theirs.state_dict()
    for name, value in given.items():
        if "cls_logits" not in name:
            assert torch.equal(after[name], value), name
    for name in ("weight", "bias"):
        key = f"head.classification_head.cls_logits.{name}"
        ours, old, theirs_own = (one[key].unflatten(0, (9, -1)) for one in (after, before, given))
        assert torch.equal(ours[:, 1], theirs_own[:, 1])
        assert torch.equal(ours[:, [0, 2]], old[:, [0, 2]])


@pytest.mark.parametrize("backbone", ["mobilenet_v2", "resnet18"])
def test_weights_of_a_plain_network_become_the_backbone(tmp_path: Path, backbone: str) -> None:
    torch.manual_seed(2)
    plain = torchvision.models.get_model(backbone, weights=None)
    torch.save(plain.state_dict(), tmp_path / "plain.pth")
    task = ps.Detection(["Tree"], backbone=backbone, weights=str(tmp_path / "plain.pth"))
    network: Any = task.network()
    weights = task.pretrained()
    assert weights is not None
    task.load_backbone(network, weights)
    first = "features.0.0.weight" if backbone == "mobilenet_v2" else "conv1.weight"
    assert torch.equal(next(iter(network.backbone.body.parameters())), plain.state_dict()[first])


def test_weights_of_another_network_are_refused(small: Any, tmp_path: Path) -> None:
    torch.save(small.state_dict(), tmp_path / "small.pt")
    task = ps.Detection(["Tree"], backbone="resnet34", levels=5, weights=str(tmp_path / "small.pt"))
    with pytest.raises(ps.OptionError, match="not of a resnet34 for detection"):
        task.load_backbone(task.network(), task.pretrained() or {})


def test_weights_without_a_detector_are_no_model(tmp_path: Path) -> None:
    torch.save({"conv1.weight": torch.zeros(3)}, tmp_path / "plain.pth")
    with pytest.raises(ps.DataError, match="not what they are for"):
        ps.load(tmp_path / "plain.pth")
