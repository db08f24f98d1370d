"""The optimizers by name."""

from __future__ import annotations

from typing import Any

import torch

from penstock.errors import RecipeError
from penstock.training.options import TrainOptions


def make_optimizer(network: torch.nn.Module, options: TrainOptions, learning_rate: float) -> torch.optim.Optimizer:
    """For the weights that are trained; biases and the weights of normalisations are not pulled to zero."""
    groups = _groups(network, options.weight_decay)
    if not groups:
        raise RecipeError(f"freeze={options.freeze!r} leaves nothing that can be trained.")
    if options.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=learning_rate, momentum=options.momentum)
    kind = torch.optim.Adam if options.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, lr=learning_rate)


def _groups(network: torch.nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if parameter.ndim > 1]
    vectors = [parameter for parameter in trained if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]
