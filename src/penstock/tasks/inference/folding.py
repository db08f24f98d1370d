"""Networks for answers alone: normalisations become part of the convolutions before them.

A normalisation with fixed statistics is a factor and a sum for each channel, as are the weights and the bias of a
convolution. Together they read and write every map once less, which is a fifth of the time of a ResNet on a CPU.
"""

from __future__ import annotations

import copy
import itertools
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_weights
from torchvision.ops.misc import FrozenBatchNorm2d

from penstock.tasks.inference.winograd import with_winograd

# The names that torchvision gives to a convolution and to what follows it, where a network is no plain sequence.
CONVOLUTION, NORMALISATION = "conv", "bn"
# How the weights of convolutions lie that are fastest, by their dimensions: of images, and of clips.
LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}


class _State(NamedTuple):
    """What a copy was made from and for: the weights themselves, and how often each was changed so far."""

    weights: tuple[torch.Tensor, ...]
    changes: tuple[int, ...]
    device: torch.device
    short: bool

    @classmethod
    def of(cls, network: nn.Module, device: torch.device, short: bool) -> _State:
        weights = tuple(network.state_dict(keep_vars=True).values())
        # Those made in inference mode do not count their changes: -1, which is never the same.
        return cls(weights, tuple(-1 if one.is_inference() else one._version for one in weights), device, short)

    def is_same(self, other: _State) -> bool:
        return (
            self[1:] == other[1:]
            and -1 not in self.changes
            and all(mine is theirs for mine, theirs in zip(self.weights, other.weights, strict=True))
        )


_kept: WeakKeyDictionary[nn.Module, tuple[_State, nn.Module]] = WeakKeyDictionary()


def made_to_answer(network: nn.Module, device: torch.device, *, short: bool) -> nn.Module:
    """A copy that answers as fast as its device can, in bfloat16 where `short`, and is never trained.

    It is kept as long as the network itself, and made anew when weights of that were changed.
    """
    state = _State.of(network, device, short)
    kept = _kept.get(network)
    if kept is None or not kept[0].is_same(state):
        made = folded(network)
        kept = _kept[network] = state, with_winograd(made) if device.type == "cpu" and not short else made
    return kept[1]


def folded(network: nn.Module) -> nn.Module:
    """A copy without normalisations, with memory laid out as convolutions are fastest with."""
    made = copy.deepcopy(network).eval().requires_grad_(False)
    for module in list(made.modules()):
        _fold_children(module)
    for weight in made.parameters():
        if weight.dim() in LAYOUTS:
            weight.data = weight.data.to(memory_format=LAYOUTS[weight.dim()])
    return made


def _fold_children(module: nn.Module) -> None:
    children = list(module.named_children())
    for (first, convolution), (second, norm) in itertools.pairwise(children):
        follows = isinstance(module, nn.Sequential) or second == first.replace(CONVOLUTION, NORMALISATION, 1) != first
        if follows and isinstance(convolution, (nn.Conv2d, nn.Conv3d)) and _is_fixed(norm):
            setattr(module, first, _joined(convolution, norm))
            setattr(module, second, nn.Identity())


def _is_fixed(norm: nn.Module) -> bool:
    if isinstance(norm, (nn.BatchNorm2d, nn.BatchNorm3d)):
        return bool(norm.track_running_stats)
    return isinstance(norm, FrozenBatchNorm2d)


def _joined(convolution: nn.Conv2d | nn.Conv3d, norm: nn.Module) -> nn.Module:
    made = copy.deepcopy(convolution)
    weight, bias = fuse_conv_bn_weights(
        convolution.weight, convolution.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    )
    made.weight, made.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
    return made
