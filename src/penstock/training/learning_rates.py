"""The learning rate of every step, as a function of how far training has come."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from penstock.training.options import AUTO, TrainOptions

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
