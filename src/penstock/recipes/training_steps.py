"""One step of the training that a recipe describes, as a function of a batch: what the doctor measures as the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.errors import require_learning

if TYPE_CHECKING:
    from penstock.flow.flow import Flow
    from penstock.recipes.recipe import Recipe

Step = Callable[[dict[str, Any]], None]


def training_of(recipe: Recipe) -> tuple[Flow, Step]:
    """The flow of a training and one of its steps, with a network of random weights: they take as long as others."""
    require_learning("Examining a recipe")
    from penstock.training.data_splits import training_data
    from penstock.training.feeds import Rank
    from penstock.training.resources import chosen_batch_size
    from penstock.training.trainers import device_type, feed_of, fitted_task

    parts = training_data(recipe.data.path, recipe.data, recipe.feed.on_bad_sample)
    task, device = _longest_stage(fitted_task(recipe.task, parts)), device_type(recipe.train)
    size = chosen_batch_size(recipe.train, len(parts.train), device)
    feed = feed_of(task, parts, size, recipe.train, recipe.feed, None)
    return feed.training_flow(Rank()), _step(task, recipe, device)


def _longest_stage(task: Any) -> Any:
    """A behaviour training has three; in that of frames it spends its time."""
    return task.stage("frames") if hasattr(task, "stage") else task


def _step(task: Any, recipe: Recipe, device: str) -> Step:
    import torch

    from penstock.flow.adapters.torch_loader import tensors_of
    from penstock.training.module import frozen_stages, learned_statistics
    from penstock.training.optimizers import make_optimizer

    network = task.network().to(device).train()
    for _, stage in frozen_stages(task, network, recipe.train.freeze):
        stage.requires_grad_(False)
    optimizer = make_optimizer(network, recipe.train, 1e-4)
    half = _half_precision(recipe, device)

    def step(batch: dict[str, Any]) -> None:
        tensors = {name: _moved(value, device) for name, value in tensors_of(batch, torch).items()}
        tensors = task.augment(tensors, seed=recipe.train.seed, epoch=0)
        with torch.autocast(device, half, enabled=half is not None), learned_statistics(network, len(tensors["index"])):
            loss = task.loss(network, tensors)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def _half_precision(recipe: Recipe, device: str) -> Any:
    """The type that the network computes in, where it is not that of its weights."""
    import torch

    from penstock.training.resources import chosen_precision

    precision = chosen_precision(recipe.train, device)
    return {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}.get(precision)


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, list):
        return [_moved(one, device) for one in value]
    return value.to(device) if hasattr(value, "to") else value
