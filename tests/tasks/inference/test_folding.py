"""Networks without normalisations answer as those with them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.tasks.inference.folding import folded  # noqa: E402


@pytest.mark.parametrize("norm", ["frozen", "batch"])
@pytest.mark.parametrize("backbone", ["tiny", "resnet18", "resnet50", "mobilenet_v2"])
def test_a_folded_network_answers_the_same(backbone: str, norm: str) -> None:
    torch.manual_seed(1)
    task = ps.Detection(["Tree"], backbone=backbone, norm=norm)  # type: ignore[arg-type]
    network = task.network().eval()
    for name, value in network.state_dict().items():
        if name.endswith(("running_var", "bn1.weight")):
            value.uniform_(0.5, 1.5)
        elif name.endswith(("running_mean", "bn1.bias")):
            value.normal_(0, 0.2)
    images = torch.randn(1, 3, 64, 64)
    quick = folded(network)
    kinds = {type(module).__name__ for module in quick.modules()}
    assert not {"BatchNorm2d", "FrozenBatchNorm2d"} & kinds
    with torch.inference_mode():
        plain, other = network(images), quick(images)
    spread = plain.logits.std()
    assert (plain.logits - other.logits).abs().max() <= 1e-3 * spread
    assert (plain.offsets - other.offsets).abs().max() <= 1e-3 * plain.offsets.std()
