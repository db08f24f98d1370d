"""What this machine can train on, and what is said where it cannot."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.accelerators import AcceleratorRegistry

from penstock.errors import RecipeError, nearest
from penstock.training.options import AUTO

GPU = "gpu"  # Lightning's word for the first of these that is there
GPUS = ("cuda", "mps")


def need_accelerator(name: Any) -> None:
    """Refuse an accelerator that is not here, before a Run is begun; an object of the user's own is taken as it is."""
    if not isinstance(name, str) or name == AUTO:
        return
    known = [GPU, *AcceleratorRegistry.available_accelerators()]  # of all that Lightning has ever heard of
    there = accelerators_here()
    if name in there:
        return
    what = "is not on this machine, or torch cannot use it" if name in known else "is no accelerator"
    hint = "" if name in known else nearest(name, [AUTO, *known])
    raise RecipeError(
        f"train.accelerator={name!r} {what}.{hint} There is: {', '.join(there)}. "
        f"Use train.accelerator={there[0]}, or {AUTO} for the best that is there."
    )


def accelerators_here() -> list[str]:
    """The names of those that can be used, GPUs first."""
    names = AcceleratorRegistry.available_accelerators()
    there = [name for name in names if AcceleratorRegistry[name]["accelerator"].is_available()]
    gpus = [name for name in GPUS if name in there]
    return [*([GPU] if gpus else []), *gpus, *(name for name in there if name not in gpus)]
