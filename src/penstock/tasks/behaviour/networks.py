"""The networks of a behaviour model together: motion between frames, two streams, and the sequence over all frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from penstock.augment.pixelwise import Channels
from penstock.tasks.behaviour.motion import MotionNetwork
from penstock.tasks.behaviour.sequence import SequenceName, SequenceNetwork
from penstock.tasks.behaviour.sizes import SIZES
from penstock.tasks.behaviour.streams import TwoStreams

PARTS = ("motion", "frames", "sequence")


@dataclass(frozen=True)
class Plan:
    """What the networks are made by."""

    size: str
    behaviours: int
    frames: int  # of a clip
    stride: int  # frames from one frame of a clip to the next
    sequence: SequenceName
    mean: Channels  # of levels 0 to 255
    std: Channels


class BehaviourNetwork(nn.Module):
    """`motion`, `frames` and `sequence`, of which a stage of training may have only some."""

    motion: MotionNetwork
    frames: TwoStreams
    sequence: SequenceNetwork
    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, plan: Plan, parts: tuple[str, ...] = PARTS) -> None:
        super().__init__()
        self.plan = plan
        size = SIZES[plan.size]
        streams = TwoStreams(size, plan.behaviours, plan.frames - 1) if set(parts) & {"frames", "sequence"} else None
        if "motion" in parts:
            self.motion = MotionNetwork(size.motion_width)
        if "frames" in parts and streams is not None:
            self.frames = streams
        if "sequence" in parts and streams is not None:
            self.sequence = SequenceNetwork(streams.feature_count, plan.behaviours, plan.sequence)
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(getattr(plan, name), dtype=torch.float32).view(1, 3, 1, 1))

    def pixels(self, images: torch.Tensor) -> torch.Tensor:
        """What networks take, N×3×H×W, of N×H×W×3 images: levels of uint8, or floats from 0 to 1."""
        top = 1.0 if images.dtype == torch.uint8 else 255.0
        # The channels come first, and lie last in memory: what convolutions are fastest with.
        return (images.float().permute(0, 3, 1, 2) - self.mean / top) / (self.std / top)

    def clip_flows(self, pixels: torch.Tensor) -> torch.Tensor:
        """The motions within clips, N×(T−1)×2×h×w of N×T×3×H×W; each frame is described once."""
        count, frames = pixels.shape[:2]
        maps = self.motion.describe(pixels.flatten(0, 1))
        clips = [each.unflatten(0, (count, frames)) for each in maps]
        flows = self.motion.between(
            [each[:, :-1].flatten(0, 1) for each in clips], [each[:, 1:].flatten(0, 1) for each in clips]
        )
        return flows[0].unflatten(0, (count, frames - 1))

    def seen_images(self, pixels: torch.Tensor) -> torch.Tensor:
        """What the spatial stream takes of clips N×T×3×H×W: the middle frame, or all with time behind the channels."""
        if self.frames.sees_clips:
            return pixels.transpose(1, 2)
        return pixels[:, pixels.shape[1] // 2]

    def load_parts(self, weights: Mapping[str, Any], parts: tuple[str, ...]) -> None:
        """Take over the weights of whole parts from a state_dict that has more or other ones."""
        for part in parts:
            own = {
                name.removeprefix(f"{part}."): value for name, value in weights.items() if name.startswith(f"{part}.")
            }
            getattr(self, part).load_state_dict(own)
