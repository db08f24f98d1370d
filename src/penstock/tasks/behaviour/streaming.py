"""A video frame by frame: each frame is described once, each pair of frames compared once, and kept in a ring.

frames ─► blocks of a fixed length ─► descriptions ─► motions (ring) ─► clips unfolded on the device ─► features, logits

Blocks are cut by the position in the video alone, so that results are the same bits however frames were handed over.
Before the first frame it is repeated, and the last one behind the end, as in `Flow.clips(edge="repeat")`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from penstock.tasks.behaviour.networks import BehaviourNetwork
from penstock.tasks.checkpoints import autocast

# Frames that networks see at a time. One length for all: libraries sum in another order for other shapes.
BLOCK_FRAMES = {"cpu": 16}
BLOCK_FRAMES_ELSEWHERE = 64
# Frames of which the sequence network answers at a time, beside those that it looks at on both sides: 10 MB of 2,560
# features, of which there are three copies on the way.
SEQUENCE_BLOCK = 1024
# How training keeps features on the disk: half the bytes, and what is lost is far below what dropout hides. The
# sequence network gets all features rounded so, or its answers would not be those that it was judged by.
STORED_AS = np.float16


class Streamed(NamedTuple):
    """What became known of the next frames, as float32."""

    features: torch.Tensor
    logits: torch.Tensor


class FeatureStream:
    """Features and logits of one video, in order: `push` frames as they come, then `finish`."""

    def __init__(self, network: BehaviourNetwork, device: Any = "cpu", precision: str = "32") -> None:
        self.device = torch.device(device)
        self.network = network.to(self.device).eval()
        self._precision = precision
        self._block = BLOCK_FRAMES.get(self.device.type, BLOCK_FRAMES_ELSEWHERE)
        plan = network.plan
        self._stride, self._frames = plan.stride, plan.frames
        self._before = plan.frames // 2 * plan.stride  # frames of a clip before its labelled one
        self._behind = (plan.frames - 1) * plan.stride - self._before
        self._waiting: list[torch.Tensor] = []
        self._waiting_count = 0
        self._last: torch.Tensor | None = None
        self._pixels = _Ring((plan.frames - 1) * plan.stride)
        self._maps = [_Ring(plan.stride) for _ in self.network.motion.stages]
        self._flows = _Ring((plan.frames - 1) * plan.stride)
        self._done = 0  # positions of the padded video that went through
        self._given = 0  # frames that were pushed

    def push(self, frames: torch.Tensor) -> Streamed:
        """Take the next frames, n×H×W×3 of uint8; gives those that became ready, perhaps none."""
        if not len(frames):
            return self._nothing()
        if self._last is None:
            self._wait(frames[:1].expand(self._before, -1, -1, -1))
        self._last = frames[-1:].clone()
        self._given += len(frames)
        self._wait(frames)
        return self._joined(self._ready())

    def finish(self) -> Streamed:
        """The rest, at the end of the video."""
        if self._last is None:
            return self._nothing()
        self._wait(self._last.expand(self._behind, -1, -1, -1))
        left = -self._waiting_count % self._block
        if left:
            self._wait(self._last.expand(left, -1, -1, -1))
        return self._joined(self._ready())

    def _wait(self, frames: torch.Tensor) -> None:
        if len(frames):
            self._waiting.append(frames)
            self._waiting_count += len(frames)

    def _ready(self) -> list[Streamed]:
        found = []
        if self._waiting_count >= self._block:
            frames = torch.cat([each.to(self.device) for each in self._waiting])
            whole = len(frames) // self._block * self._block
            for start in range(0, whole, self._block):
                found.append(self._seen(frames[start : start + self._block]))
            # A copy of the few that stay, or they would keep all of them in memory.
            self._waiting, self._waiting_count = [frames[whole:].clone()], len(frames) - whole
        return found

    def _seen(self, frames: torch.Tensor) -> Streamed:
        """One block of the padded video; answers for the frames whose clips are now complete."""
        network, block = self.network, len(frames)
        with torch.inference_mode(), autocast(self._precision, self.device):
            pixels = network.pixels(frames)
            maps = network.motion.describe(pixels)
            kept = [ring.with_new(each) for ring, each in zip(self._maps, maps, strict=True)]
            flows = network.motion.between([each[:block] for each in kept], maps)[0]
            all_pixels, all_flows = self._pixels.with_new(pixels), self._flows.with_new(flows)
            features, logits = network.frames(self._images(all_pixels, block), self._clips(all_flows, block))
        first = self._done - self._behind - self._before  # the frame that the first row is of
        self._done += block
        rows = slice(max(0, -first), max(0, min(block, self._given - first)))
        return Streamed(features[rows].float(), logits[rows].float())

    def _images(self, pixels: torch.Tensor, block: int) -> torch.Tensor:
        if self.network.frames.sees_clips:
            return torch.stack([pixels[place : place + block] for place in self._places()], dim=2)
        return pixels[self._before : self._before + block]

    def _clips(self, flows: torch.Tensor, block: int) -> torch.Tensor:
        """The motions of each clip; the motion that ends at a frame stands at the frame's place."""
        return torch.stack([flows[place : place + block] for place in self._places()[1:]], dim=1)

    def _places(self) -> list[int]:
        """Where the frames of the first clip of a block are."""
        return [number * self._stride for number in range(self._frames)]

    def _nothing(self) -> Streamed:
        counts = (self.network.frames.feature_count, self.network.plan.behaviours)
        return Streamed(*(torch.zeros(0, count, device=self.device) for count in counts))

    def _joined(self, found: list[Streamed]) -> Streamed:
        if not found:
            return self._nothing()
        return Streamed(torch.cat([one.features for one in found]), torch.cat([one.logits for one in found]))


class _Ring:
    """The last rows of something that comes in blocks; before the first block, its first row."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._kept: torch.Tensor | None = None

    def with_new(self, rows: torch.Tensor) -> torch.Tensor:
        """What was kept and these rows, which it keeps the end of."""
        if self._kept is None:
            self._kept = rows[:1].expand(self._length, *rows.shape[1:])
        together = torch.cat([self._kept, rows])
        self._kept = together[len(together) - self._length :].clone()
        return together


def sequence_logits(network: BehaviourNetwork, features: Any, *, block: int = SEQUENCE_BLOCK) -> NDArray[np.float32]:
    """Logits of every frame, T×behaviours, of the features of a whole video, T×F: an array, a tensor, or what can be
    sliced like one, such as a dataset of HDF5."""
    none = np.zeros((0, network.plan.behaviours), np.float32)
    return np.concatenate([none, *sequence_blocks(network, features, block=block)])


def sequence_blocks(
    network: BehaviourNetwork, features: Any, *, block: int = SEQUENCE_BLOCK
) -> Iterator[NDArray[np.float32]]:
    """The same, some frames after the other.

    Blocks overlap by what the network looks at, so there are no seams: the answer is that of the whole video at once.
    """
    count = len(features)
    margin = network.sequence.receptive_field // 2
    device = network.mean.device
    network.eval()
    for start in range(0, count, block):
        stop = min(count, start + block)
        first, last = max(0, start - margin), min(count, stop + margin)
        with torch.inference_mode():
            logits = network.sequence(_float_rows(features[first:last]).to(device).T[None])[0].T
            found: NDArray[np.float32] = logits[start - first : stop - first].cpu().numpy()
        yield found


def _float_rows(rows: Any) -> torch.Tensor:
    """A copy: torch wants memory that can be written to."""
    if isinstance(rows, torch.Tensor):
        return rows.half().float()
    return torch.from_numpy(np.asarray(rows).astype(STORED_AS).astype(np.float32))
