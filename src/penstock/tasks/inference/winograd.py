"""Convolutions of 3×3 on a CPU with a quarter of the multiplications, by Winograd's way.

The 36 values of a piece of 6×6 px, taken as products of polynomials, say all about the 4×4 answers in its middle: 36
products instead of 144, between sums that cost little where there are many channels. Answers are off by about a
millionth, as float32 is for sums in any order: two to six times what a plain convolution is off by itself, which sums
in the order that suits the processor.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

try:
    from penstock.tasks.inference import _winograd
except ImportError:  # not built
    _extension: Any = None
else:
    _extension = _winograd

ANSWERS, KERNEL = 4, 3  # in each direction
PIECE = ANSWERS + KERNEL - 1
# Where the polynomials are looked at, besides at infinity. Of those tried, these lose least of float32's digits: a
# quarter of what the usual 0, ±1, ±2 lose. The extension has the same.
POINTS = (0.0, 0.75, -0.75, 1.5, -1.5)
LEAST_CHANNELS = 64  # with fewer, the sums take longer than the products that they save
LEAST_PIECES = 12  # with fewer, reading the weights, four times as many, takes the time
MOST_PIECES = 128  # at a time: what is between the steps stays in the cache


def with_winograd(network: nn.Module) -> nn.Module:
    """Change a network that only answers, on a CPU in float32: convolutions that gain are done in this way."""
    for name, child in list(network.named_children()):
        if _gains(child):
            setattr(network, name, WinogradConvolution(child))
        else:
            with_winograd(child)
    return network


def _gains(layer: nn.Module) -> bool:
    return (
        isinstance(layer, nn.Conv2d)
        and layer.kernel_size == (KERNEL, KERNEL)
        and layer.stride == layer.dilation == layer.padding == (1, 1)
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and min(layer.in_channels, layer.out_channels) >= LEAST_CHANNELS
    )


def _matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What makes 36 values of pieces, of kernels, and 16 answers of 36 products, in one direction (Cook and Toom)."""
    points = np.array(POINTS)
    pieces, kernels, answers = np.zeros((PIECE, PIECE)), np.zeros((PIECE, KERNEL)), np.zeros((ANSWERS, PIECE))
    for number, point in enumerate(points):
        others = np.delete(points, number)
        pieces[number, :-1] = np.poly(others)[::-1]
        kernels[number] = point ** np.arange(KERNEL) / np.prod(point - others)
        answers[:, number] = point ** np.arange(ANSWERS)
    pieces[-1] = np.poly(points)[::-1]
    kernels[-1, -1] = answers[-1, -1] = 1.0
    return pieces, kernels, answers


OF_PIECES, OF_KERNELS, OF_ANSWERS = (torch.from_numpy(np.kron(one, one)) for one in _matrices())


class WinogradConvolution(nn.Module):
    """What a convolution answers, and with few pixels that convolution itself."""

    def __init__(self, direct: nn.Conv2d) -> None:
        super().__init__()
        self.direct = direct
        kernels = direct.weight.detach().permute(2, 3, 1, 0).reshape(KERNEL * KERNEL, -1)
        weight = (OF_KERNELS.float() @ kernels).view(PIECE * PIECE, direct.in_channels, direct.out_channels)
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("of_pieces", OF_PIECES.float(), persistent=False)
        self.register_buffer("of_answers", OF_ANSWERS.float(), persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        count, _, height, width = images.shape
        down, across = -(-height // ANSWERS), -(-width // ANSWERS)
        if count * down * across < LEAST_PIECES:
            answer: torch.Tensor = self.direct(images)
            return answer
        # Several threads share the products of torch; the extension is faster than any two of them, and works alone.
        made = self._by_extension if _extension is not None and torch.get_num_threads() <= 2 else self._by_torch
        return made(images.permute(0, 2, 3, 1), down, across).permute(0, 3, 1, 2)

    def _by_extension(self, images: torch.Tensor, down: int, across: int) -> torch.Tensor:
        """N×H×W×outputs of N×H×W×channels."""
        count, height, width, channels = images.shape
        images = images if images.stride(3) == 1 else images.contiguous()
        made = images.new_empty(count, height, width, self.direct.out_channels)
        bias = None if self.direct.bias is None else self.direct.bias.detach().numpy()
        for some, rows in _some(count, down, across):
            pieces = len(rows) * across
            values = _memory("values", (PIECE * PIECE, len(some) * pieces, channels))
            products = _memory("products", (PIECE * PIECE, len(some) * pieces, made.shape[3]))
            own = [slice(place * pieces, (place + 1) * pieces) for place in range(len(some))]
            for image, part in zip(some, own, strict=True):
                _extension.values(images[image].numpy(), rows.start, len(rows), values[:, part].numpy())
            torch.bmm(values, self.weight, out=products)
            for image, part in zip(some, own, strict=True):
                _extension.answers(products[:, part].numpy(), bias, rows.start, len(rows), made[image].numpy())
        return made

    def _by_torch(self, images: torch.Tensor, down: int, across: int) -> torch.Tensor:
        """The same where there is no extension, or many threads."""
        count, height, width, channels = images.shape
        border = (0, 0, 1, across * ANSWERS + 1 - width, 1, down * ANSWERS + 1 - height)
        padded = functional.pad(images, border)
        made = images.new_empty(count, down, ANSWERS, across, ANSWERS, self.direct.out_channels)
        for some, rows in _some(count, down, across):
            part = made[some.start : some.stop, rows.start : rows.stop]
            self._answer(_pieces(padded[some.start : some.stop, rows.start * ANSWERS :], part.shape, channels), part)
        return made.view(count, down * ANSWERS, across * ANSWERS, -1)[:, :height, :width]

    def _answer(self, pieces: torch.Tensor, made: torch.Tensor) -> None:
        """Fill in the answers of some pieces, which are 6×6×images×rows×pieces×channels."""
        count, channels = pieces[0, 0, ..., 0].numel(), pieces.shape[-1]
        square, outputs = PIECE * PIECE, made.shape[-1]
        taken = _memory("taken", pieces.shape).copy_(pieces).view(square, count * channels)
        values = torch.mm(self.of_pieces, taken, out=_memory("values", taken.shape))
        products = _memory("products", (square, count, outputs))
        torch.bmm(values.view(square, count, channels), self.weight, out=products)
        answers = _memory("answers", (ANSWERS * ANSWERS, count * outputs))
        torch.mm(self.of_answers, products.view(square, count * outputs), out=answers)
        placed = answers.view(ANSWERS, ANSWERS, *pieces.shape[2:5], outputs).permute(2, 3, 0, 4, 1, 5)
        if self.direct.bias is None:
            made.copy_(placed)
        else:
            torch.add(placed, self.direct.bias, out=made)


def _some(count: int, down: int, across: int) -> Iterator[tuple[range, range]]:
    """Images, and rows of their pieces, that are answered together: several small images, or some rows of one."""
    images, rows = max(1, MOST_PIECES // (down * across)), max(1, min(down, MOST_PIECES // across))
    for image in range(0, count, images):
        for row in range(0, down, rows):
            yield range(image, min(count, image + images)), range(row, min(down, row + rows))


def _pieces(padded: torch.Tensor, shape: torch.Size, channels: int) -> torch.Tensor:
    """A view of pieces that overlap: 6×6×images×rows×pieces×channels."""
    image, line, place, _ = padded.stride()
    return padded.as_strided(
        (PIECE, PIECE, shape[0], shape[1], shape[3], channels),
        (line, place, image, ANSWERS * line, ANSWERS * place, 1),
        padded.storage_offset(),
    )


_kept = threading.local()


def _memory(use: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Memory of a thread for one use, taken again by the next convolution: fresh pages would cost as much as sums."""
    wanted = int(np.prod(shape))
    kept: dict[str, torch.Tensor] = _kept.__dict__
    if use not in kept or kept[use].numel() < wanted:
        kept[use] = torch.empty(wanted)
    return kept[use][:wanted].view(shape)
