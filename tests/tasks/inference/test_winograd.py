"""Convolutions with fewer multiplications answer as plain ones do, and copies that answer follow their network."""

from __future__ import annotations

import gc
import weakref
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torch import nn  # noqa: E402

import penstock as ps  # noqa: E402
from penstock.prediction import devices  # noqa: E402
from penstock.prediction.devices import Placed, dealt, lanes  # noqa: E402
from penstock.tasks.inference import winograd  # noqa: E402
from penstock.tasks.inference.folding import made_to_answer  # noqa: E402
from penstock.tasks.inference.winograd import WinogradConvolution, with_winograd  # noqa: E402

CPU = torch.device("cpu")


def convolution(inputs: int = 128, outputs: int = 128, **options: Any) -> Any:
    return nn.Conv2d(inputs, outputs, **{"kernel_size": 3, "padding": 1, **options})


def exact(layer: Any, images: Any) -> Any:
    bias = None if layer.bias is None else layer.bias.double()
    return nn.functional.conv2d(images.double(), layer.weight.double(), bias, padding=1)


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 5),
    height=st.integers(1, 60),
    width=st.integers(1, 60),
    inputs=st.sampled_from([128, 131, 192]),
    outputs=st.sampled_from([128, 150]),
    has_bias=st.booleans(),
    channels_last=st.booleans(),
    is_native=st.booleans(),
    seed=st.integers(0, 99),
)
def test_any_size_is_answered(
    count: int,
    height: int,
    width: int,
    inputs: int,
    outputs: int,
    has_bias: bool,
    channels_last: bool,
    is_native: bool,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    used = winograd._extension if is_native else None
    layer = convolution(inputs, outputs, bias=has_bias)
    images = torch.randn(count, inputs, height, width)
    if channels_last:
        images = images.to(memory_format=torch.channels_last)
    with torch.inference_mode(), mock.patch.object(winograd, "_extension", used):
        found, plain = WinogradConvolution(layer)(images), exact(layer, images)
    assert found.shape == plain.shape
    assert (found - plain).abs().max() <= 2e-5  # of answers up to 4


@pytest.mark.parametrize("is_native", [True, False])
def test_answers_are_off_by_a_few_of_the_last_digits_of_float32(
    is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_native:
        monkeypatch.setattr(winograd, "_extension", None)
    torch.manual_seed(0)
    layer, images = convolution(256, 256), torch.randn(1, 256, 64, 64).relu()
    with torch.inference_mode():
        answers = exact(layer, images)
        off = WinogradConvolution(layer)(images) - answers
    # The usual points, 0, ±1 and ±2, lose four times as much.
    assert off.pow(2).mean().sqrt() <= 16 * torch.finfo(torch.float32).eps * answers.pow(2).mean().sqrt()


def test_few_pixels_are_left_to_the_plain_convolution() -> None:
    layer, images = convolution(), torch.randn(1, 128, 12, 12)
    with torch.inference_mode():
        assert torch.equal(WinogradConvolution(layer)(images), layer(images))


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 2},
        {"dilation": 2},
        {"padding": 0},
        {"groups": 2},
        {"padding_mode": "reflect"},
        {"kernel_size": 1, "padding": 0},
        {"inputs": 32},
        {"outputs": 9},
    ],
)
def test_others_stay_as_they_are(options: dict[str, Any]) -> None:
    layer = convolution(**options)
    assert with_winograd(nn.Sequential(layer))[0] is layer


def test_a_view_of_a_larger_map_is_read_where_it_lies() -> None:
    layer, whole = convolution(), torch.randn(2, 50, 60, 200)
    part = whole[:, 3:33, 5:46, 40:168].permute(0, 3, 1, 2)
    with torch.inference_mode():
        assert (WinogradConvolution(layer)(part) - exact(layer, part)).abs().max() <= 2e-5


@pytest.mark.skipif(winograd._extension is None, reason="the extension is not built")
class TestTheExtension:
    image = np.zeros((8, 9, 4), np.float32)

    @pytest.mark.parametrize(
        ("image", "first", "rows", "shape"),
        [
            (image, 0, 3, (36, 9, 4)),  # more rows than there are
            (image, -1, 2, (36, 6, 4)),
            (image, 2, 1, (36, 3, 4)),
            (image, 0, 2, (35, 6, 4)),
            (image, 0, 2, (36, 5, 4)),
            (image, 0, 2, (36, 6, 3)),
            (image.astype(np.float64), 0, 2, (36, 6, 4)),
            (image[0], 0, 2, (36, 6, 4)),
            (image[..., ::2], 0, 2, (36, 6, 2)),
        ],
    )
    def test_what_does_not_fit_is_refused(self, image: Any, first: int, rows: int, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match="fit|float32|side by side"):
            winograd._extension.values(image, first, rows, np.zeros(shape, np.float32))
        with pytest.raises(ValueError, match="fit|float32|side by side"):
            winograd._extension.answers(np.zeros(shape, np.float32), None, first, rows, image)

    def test_a_bias_is_needed_for_each_channel(self) -> None:
        with pytest.raises(ValueError, match="a bias for each channel"):
            products = np.zeros((36, 6, 4), np.float32)
            winograd._extension.answers(products, np.zeros(3, np.float32), 0, 2, self.image.copy())


@pytest.mark.parametrize("backbone", ["resnet18", "resnet50"])
def test_a_detector_answers_the_same(backbone: str) -> None:
    torch.manual_seed(1)
    task = ps.Detection(["Tree"], backbone=backbone)  # type: ignore[arg-type]
    network = task.network().eval()
    quick = made_to_answer(network, CPU, short=False)
    assert any(isinstance(module, WinogradConvolution) for module in quick.modules())
    images = torch.randn(1, 3, 256, 320)
    with torch.inference_mode():
        plain, other = network(images), quick(images)
    assert (plain.logits.sigmoid() - other.logits.sigmoid()).abs().max() <= 1e-4
    assert (plain.offsets - other.offsets).abs().max() <= 1e-3 * plain.offsets.std()


def small() -> Any:
    return nn.Sequential(convolution()).eval()


def test_a_copy_is_kept_until_weights_change() -> None:
    network = small()
    made = made_to_answer(network, CPU, short=False)
    assert made_to_answer(network, CPU, short=False) is made
    with torch.no_grad():
        network[0].bias.add_(1.0)
    changed = made_to_answer(network, CPU, short=False)
    images = torch.randn(1, 128, 40, 40)
    with torch.inference_mode():
        assert (changed(images) - made(images)).mean().item() == pytest.approx(1.0, abs=1e-4)
    network[0].bias = nn.Parameter(torch.zeros(128))
    assert made_to_answer(network, CPU, short=False) is not changed


def test_weights_that_do_not_count_their_changes_are_copied_every_time() -> None:
    with torch.inference_mode():
        network = small()
        made = made_to_answer(network, CPU, short=False)
        network[0].bias.add_(1.0)
        assert made_to_answer(network, CPU, short=False) is not made


def test_a_copy_goes_with_its_network() -> None:
    network = small()
    made = weakref.ref(made_to_answer(network, CPU, short=False))
    del network
    gc.collect()
    assert made() is None


def test_bfloat16_keeps_plain_convolutions() -> None:
    quick = made_to_answer(small(), CPU, short=True)
    assert not any(isinstance(module, WinogradConvolution) for module in quick.modules())


@pytest.mark.parametrize(
    ("cores", "pixels", "count", "threads"),
    [(2, 800 * 800, 2, 1), (8, 800 * 800, 4, 2), (2, 1600 * 1600, 1, 2), (64, 400 * 400, 21, 3), (3, 400 * 400, 3, 1)],
)
def test_cores_have_pieces_of_their_own_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch, cores: int, pixels: int, count: int, threads: int
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
    found, own = lanes(Placed(nn.Identity(), CPU), pixels)
    assert (len(found), own) == (count, threads)
    assert count * pixels <= max(devices.MOST_PIXELS, pixels)


def test_threads_of_lanes_compute_alone_and_leave_the_rest_as_it_was() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        one = Placed(nn.Identity(), CPU)
        seen = list(dealt((one, one), lambda _, item: (item, torch.get_num_threads()), range(9), threads=1))
        assert seen == [(item, 1) for item in range(9)]
        assert torch.get_num_threads() == 2
        assert list(dealt((one, one), lambda *_: torch.get_num_threads(), range(3))) == [2, 2, 2]
    finally:
        torch.set_num_threads(before)


def test_memory_between_the_steps_is_used_again() -> None:
    layer = WinogradConvolution(convolution())
    with torch.inference_mode():
        first = layer(torch.randn(1, 128, 40, 40))
        addresses = {use: memory.data_ptr() for use, memory in winograd._kept.__dict__.items()}
        kept = first.clone()
        layer(torch.randn(1, 128, 40, 40))
    assert np.array_equal(first, kept)  # answers are not in that memory
    assert {use: memory.data_ptr() for use, memory in winograd._kept.__dict__.items()} == addresses
