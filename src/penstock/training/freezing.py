"""Which stages of a network are not trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import RecipeError, nearest

if TYPE_CHECKING:
    import torch

    from penstock.tasks.task import Task

BACKBONE = "backbone"
Stage = tuple[str, "torch.nn.Module"]


def frozen_stages(task: Task, network: torch.nn.Module, freeze: str | int | None) -> list[Stage]:
    """None; all stages but the last; the first n; or all up to and with the one of this name."""
    if freeze is None or freeze == "none":
        return []
    stages = list(task.stages(network))
    return stages[: _count(freeze, [name for name, _ in stages])]


def _count(freeze: str | int, names: list[str]) -> int:
    if freeze == BACKBONE:
        return len(names) - 1
    if isinstance(freeze, int) and not isinstance(freeze, bool) and 0 <= freeze < len(names):
        return freeze
    if freeze in names[:-1]:
        return names.index(str(freeze)) + 1
    raise RecipeError(
        f"freeze={freeze!r} must be none, {BACKBONE}, a number below {len(names)}, or a stage that is not the last of "
        f"{', '.join(names)}.{nearest(str(freeze), names)}"
    )
