"""From the features of a whole video to logits of each frame, with what happened before and after in view.

features ─┬─► logits of each frame alone ─────────────(+)─► logits
          └─► fewer channels ─► temporal network ──────┘

The first branch begins as the heads of the two streams, the last layer of the second as zero: so training begins with
what the streams say, and learns what time adds.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import nn

from penstock.errors import one_of

SequenceName = Literal["convolution", "gru"]
WIDTH = 64
DILATIONS = (1, 2, 4, 8, 16)
KERNEL = 3
# A GRU remembers without end, in principle; what lies further away than this is left out.
GRU_REACH = 256


class SequenceNetwork(nn.Module):
    """Logits of every frame of a video."""

    def __init__(self, features: int, behaviours: int, kind: SequenceName, *, dropout: float = 0.25) -> None:
        super().__init__()
        one_of("sequence", kind, get_args(SequenceName))
        self.alone = nn.Conv1d(features, behaviours, 1)
        self.fewer = nn.Conv1d(features, WIDTH, 1)
        self.dropout = nn.Dropout(dropout)
        inputs = WIDTH + behaviours
        self.temporal: Any = DilatedConvolutions(inputs) if kind == "convolution" else BothWays(inputs)
        self.last = nn.Conv1d(WIDTH, behaviours, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    @property
    def receptive_field(self) -> int:
        """How many frames an answer depends on, the frame itself in their middle."""
        field: int = self.temporal.receptive_field
        return field

    def forward(self, features: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """B×behaviours×T of B×F×T; `mask` (B×1×T) is 0 behind the end of videos that are shorter than the window."""
        mask = torch.ones_like(features[:, :1]) if mask is None else mask
        alone = self.alone(features)
        fewer = torch.relu(self.fewer(self.dropout(features)))
        seen = self.temporal(torch.cat([fewer, alone], dim=1) * mask, mask)
        logits: torch.Tensor = alone + self.last(self.dropout(seen))
        return logits

    def begin_with_heads(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        """Take over what the streams say of each frame alone: behaviours×F, and behaviours."""
        with torch.no_grad():
            self.alone.weight.copy_(weight[:, :, None])
            self.alone.bias.copy_(bias)


class DilatedConvolutions(nn.Module):
    """Convolutions over time, each looking twice as far as the one before; beyond the ends are zeros."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.enter = nn.Conv1d(inputs, WIDTH, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(WIDTH, WIDTH, KERNEL, dilation=dilation, padding=dilation * (KERNEL // 2))
            for dilation in DILATIONS
        )

    @property
    def receptive_field(self) -> int:
        return 1 + (KERNEL - 1) * sum(DILATIONS)

    def forward(self, features: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen = self.enter(features)
        for layer in self.layers:
            seen = seen + torch.relu(layer(seen * mask))
        return seen


class BothWays(nn.Module):
    """A GRU that reads the video forwards and one that reads it backwards."""

    receptive_field = 2 * GRU_REACH + 1

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, WIDTH // 2, batch_first=True, bidirectional=True)

    def forward(self, features: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen: torch.Tensor = self.gru(features.transpose(1, 2))[0]
        return seen.transpose(1, 2) * mask
