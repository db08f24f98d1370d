"""A loss that is no longer a number ends the training, and the samples behind it are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from penstock.errors import TrainingError
from penstock.samples import Store

if TYPE_CHECKING:
    from penstock.tasks.task import Batch
    from penstock.training.module import Module

SHOWN_SAMPLES = 5


def check_finite(loss: torch.Tensor, batch: Batch, module: Module) -> None:
    """Raise where a loss is NaN or infinite; the weights are then still those of the step before."""
    if torch.isfinite(loss).all():
        return
    guilty = _guilty_rows(batch, module)
    rows = guilty or range(len(batch["index"]))
    names = _names([int(batch["index"][row]) for row in rows], module)
    which = f"because of {names}" if guilty else f"in the batch with {names}, though each of them alone is fine"
    raise TrainingError(
        f"the loss became {float(loss.detach().sum())} in epoch {module.current_epoch + 1}, step "
        f"{module.global_step + 1}, {which}. {_remedy(bool(guilty), module)} The last checkpoint is as it was."
    )


def _remedy(has_guilty: bool, module: Module) -> str:
    lower = f"lower the learning rate (now {module.learning_rate:g}), or set gradient_clip"
    return f"Look at these samples (penstock show), or {lower}." if has_guilty else f"{lower.capitalize()}."


def _guilty_rows(batch: Batch, module: Module) -> list[int]:
    """The rows that alone give no finite loss."""
    network = module.network
    was_training = network.training
    network.eval()  # one sample has no statistics of a batch
    try:
        with torch.no_grad():
            return [row for row in range(len(batch["index"])) if not _is_fine(_one_row(batch, row), module)]
    finally:
        network.train(was_training)


def _is_fine(batch: Batch, module: Module) -> bool:
    return bool(torch.isfinite(module.task.loss(module.network, batch)["loss"]).all())


def _one_row(batch: Batch, row: int) -> Batch:
    return {name: _row_of(value, row) for name, value in batch.items()}


def _row_of(value: Any, row: int) -> Any:
    has_rows = isinstance(value, (torch.Tensor, list)) and not (isinstance(value, torch.Tensor) and value.ndim == 0)
    return value[row : row + 1] if has_rows else value


def _names(indices: list[int], module: Module) -> str:
    source = module.feed.train if module.feed is not None else None
    shown = [_name(source, index) for index in indices[:SHOWN_SAMPLES]]
    more = len(indices) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _name(source: Store | None, index: int) -> str:
    return f"sample {index}" if source is None else source.describe(index)
