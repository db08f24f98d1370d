"""How each pixel moves from one frame to the next, by a network that looks at pairs.

frame ─describe─► maps at 1/4, 1/8, 1/16 ─┐
frame ─describe─► maps at 1/4, 1/8, 1/16 ─┴─between─► motion at 1/16 ─► 1/8 ─► 1/4

`describe` looks at single frames, so in a video every frame is described once and every pair is compared once. At each
scale the second map is moved by what the scale above found and compared with the first at 5×5 places, and the motion is
corrected. Motion is in pixels of its own map: where the first frame's pixel is in the second, minus where it was.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import grid_sample, interpolate, normalize, pad

REACH = 2  # places to each side that are compared at every scale: 32 px at 1/16
COMPARED = (2 * REACH + 1) ** 2
DESCRIPTORS = 8  # channels that are compared; more cost time and tell little
SCALES = (4, 8, 16)  # how much smaller than the frame the maps are
FINEST = SCALES[0]

Maps = list[torch.Tensor]  # of one or more frames, the finest first


class MotionNetwork(nn.Module):
    """Motion between pairs of frames."""

    def __init__(self, width: int) -> None:
        super().__init__()
        widths = [2 * width, 3 * width, 4 * width]
        self.first = _halving(3, width, 5)
        self.stages = nn.ModuleList(
            _halving(before, after, 3) for before, after in zip([width, *widths], widths, strict=False)
        )
        self.descriptors = nn.ModuleList(nn.Conv2d(each, DESCRIPTORS, 1, bias=False) for each in widths)
        self.estimators = nn.ModuleList(
            Estimator(each, above, each) for each, above in zip(widths, [*widths[1:], 0], strict=True)
        )

    def describe(self, frames: torch.Tensor) -> Maps:
        """Maps of N×3×H×W frames, at every scale the map itself and what is compared of it."""
        seen = self.first(frames)
        maps = []
        for stage, descriptor in zip(self.stages, self.descriptors, strict=True):
            seen = stage(seen)
            maps.append(torch.cat([seen, normalize(descriptor(seen), dim=1)], dim=1))
        return maps

    def between(self, first: Maps, second: Maps) -> list[torch.Tensor]:
        """The motion of each pair as N×2×h×w (x, y), the finest scale first."""
        found: list[torch.Tensor] = []
        flow = above = None
        for number in reversed(range(len(self.estimators))):
            flow, above = self.estimators[number](first[number], second[number], flow, above)
            found.insert(0, flow)
        return found

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> list[torch.Tensor]:
        """The motion between two batches of frames, the finest scale first."""
        maps = self.describe(torch.cat([first, second]))
        count = len(first)
        return self.between([each[:count] for each in maps], [each[count:] for each in maps])


class Estimator(nn.Module):
    """The motion at one scale, from two maps and what the coarser scale found."""

    def __init__(self, channels: int, above: int, width: int) -> None:
        super().__init__()
        coarser = 2 + above if above else 0
        self.looking = nn.Sequential(
            _convolution(channels + COMPARED + coarser, width, 3), _convolution(width, width, 3)
        )
        self.flow = nn.Conv2d(width, 2, 3, padding=1)
        nn.init.zeros_(self.flow.weight)  # training begins with "nothing moves", which is nearly right everywhere
        nn.init.zeros_(self.flow.bias)

    def forward(
        self, first: torch.Tensor, second: torch.Tensor, flow: torch.Tensor | None, above: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        mine, theirs = first[:, -DESCRIPTORS:], second[:, -DESCRIPTORS:]
        seen = [first[:, :-DESCRIPTORS]]
        if flow is not None and above is not None:
            flow = 2 * enlarged(flow, first)
            theirs = moved(theirs, flow.detach())
            seen += [flow, enlarged(above, first)]
        seen.append(compared(mine, theirs))
        looked: torch.Tensor = self.looking(torch.cat(seen, dim=1))
        found: torch.Tensor = self.flow(looked)
        return (found if flow is None else flow + found), looked


def compared(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """How alike each place of the first map is to the places around it in the second, N×25×h×w."""
    height, width = first.shape[2:]
    around = pad(second, (REACH, REACH, REACH, REACH))
    alike = [
        (first * around[:, :, down : down + height, right : right + width]).sum(dim=1)
        for down in range(2 * REACH + 1)
        for right in range(2 * REACH + 1)
    ]
    return torch.stack(alike, dim=1)


def moved(image: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    """The second image as the first would look, if the motion is right: each pixel from where it went."""
    height, width = flow.shape[2:]
    across = torch.arange(width, device=flow.device, dtype=flow.dtype) + flow[:, 0]
    down = torch.arange(height, device=flow.device, dtype=flow.dtype)[:, None] + flow[:, 1]
    grid = torch.stack([(2 * across + 1) / width - 1, (2 * down + 1) / height - 1], dim=-1)
    there: torch.Tensor = grid_sample(image, grid.to(image.dtype), padding_mode="border", align_corners=False)
    return there


def enlarged(image: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return interpolate(image, size=like.shape[2:], mode="bilinear", align_corners=False)


def _convolution(inputs: int, outputs: int, side: int, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, side, stride=stride, padding=side // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.LeakyReLU(0.1))


def _halving(inputs: int, outputs: int, side: int) -> nn.Sequential:
    return _convolution(inputs, outputs, side, stride=2)
