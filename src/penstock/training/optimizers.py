"""The optimizers by name, and the learning rate of every step."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch

from penstock.errors import OptionError
from penstock.training.options import AUTO, TrainOptions


def make_optimizer(network: torch.nn.Module, options: TrainOptions, learning_rate: float) -> torch.optim.Optimizer:
    """For the weights that are trained; biases and the weights of normalisations are not pulled to zero."""
    groups = _groups(network, options.weight_decay)
    if not groups:
        raise OptionError(f"freeze={options.freeze!r} leaves nothing that can be trained.")
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


# The learning rate of every step, as a function of how far training has come.


# Starting points that are known to work, and how they follow the batch: linear for sgd, by the root for adam.
SGD_RATE, SGD_BATCH = 0.1, 256
ADAM_RATE, ADAM_BATCH = 1e-3, 64
STEP_PLACES = (0.6, 0.85)  # of the training, where `step` goes down
TENTH = 0.1
PLATEAU_PATIENCE = 3  # epochs without a better score


def learning_rate(options: TrainOptions, batch_size: int) -> float:
    """The highest rate of the training; `batch_size` is what the weights change after, over all devices."""
    if options.learning_rate != AUTO:
        return float(options.learning_rate)
    if options.optimizer == "sgd":
        return _rounded(SGD_RATE * batch_size / SGD_BATCH)
    return _rounded(ADAM_RATE * math.sqrt(batch_size / ADAM_BATCH))


def _rounded(rate: float) -> float:
    """Two digits: what is said is what is used."""
    return float(f"{rate:.1e}")


def rate_factor(schedule: str, step: int, step_count: float, warmup_steps: float) -> float:
    """What the highest rate is multiplied with in a step; a training without end stays at the top."""
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    if schedule in ("constant", "plateau") or math.isinf(step_count):
        return 1.0
    done = min(step / step_count, 1.0)
    if schedule == "step":
        return float(TENTH ** sum(done >= place for place in STEP_PLACES))
    done = (step - warmup_steps) / max(step_count - warmup_steps, 1.0)
    return 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))


@dataclass
class Plateau:
    """A tenth of the rate after some epochs in which the score did not get better."""

    best: float | None = None
    waited: int = 0
    factor: float = 1.0

    def judged(self, score: float, larger_is_better: bool) -> None:
        """An epoch was evaluated."""
        better = self.best is None or (score > self.best if larger_is_better else score < self.best)
        if better:
            self.best, self.waited = score, 0
            return
        self.waited += 1
        if self.waited > PLATEAU_PATIENCE:
            self.waited, self.factor = 0, self.factor * TENTH

    def state(self) -> dict[str, Any]:
        return asdict(self)
