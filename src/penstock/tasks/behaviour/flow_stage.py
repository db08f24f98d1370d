"""The first stage: how pixels move between two frames, learned from the video alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.flow.flow import Flow
from penstock.samples import Source, as_store
from penstock.tasks.behaviour.stages import VALIDATION_CLIPS, Stage, clip_changes, no_transform, sized
from penstock.tasks.task import Answers, Batch, Goal, Judged

if TYPE_CHECKING:
    import torch

    from penstock.tasks.taken_weights import Taken
    from penstock.tasks.task import Scores


@dataclass(frozen=True)
class FlowStage(Stage):
    """Motion between pairs of frames, without labels."""

    kind: ClassVar[str] = "behaviour_flow"
    parts: ClassVar[tuple[str, ...]] = ("motion",)

    @property
    def goal(self) -> Goal:
        return Goal("val_loss", larger_is_better=False)

    def fitted_to(self, source: Source) -> FlowStage:
        source = as_store(source)
        return replace(self, behaviour=self.behaviour.fitted_to(source))

    def training_flow(self, source: Source, *, seed: int, transform: Any = None, **options: Any) -> Flow:
        """Pairs of frames of one video, in a new order each epoch, at most so many."""
        source = as_store(source)
        no_transform(transform)
        pairs = self._pairs(Flow(self.behaviour.seen(source), seed, **options), 1).shuffle()
        return sized(pairs.take(self.behaviour.clips_per_epoch), self.behaviour, source)

    def evaluation_flow(self, source: Source, **options: Any) -> Flow:
        source = as_store(source)
        step = 1 + len(source) // VALIDATION_CLIPS
        return sized(self._pairs(Flow(self.behaviour.seen(source), **options), step), self.behaviour, source)

    def _pairs(self, flow: Flow, step: int) -> Flow:
        return flow.clips(2, self.behaviour.stride, step=step, label="first", edge="drop")

    def augment(self, batch: Batch, *, seed: int, epoch: int) -> Batch:
        from penstock.tasks.behaviour.clip_changes import changed_clips

        if not self.behaviour.augmentation:
            return batch
        return changed_clips(batch, clip_changes(self.behaviour), seed=seed, epoch=epoch)

    def pretrained(self) -> Mapping[str, torch.Tensor] | None:
        """The motion network of a model of behaviours; other weights have none."""
        return self._warm_weights()

    def load_backbone(self, network: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> Taken:
        from penstock.tasks.behaviour.warm_starts import load_motion

        return load_motion(network, weights)

    def stages(self, network: torch.nn.Module) -> Sequence[tuple[str, torch.nn.Module]]:
        return [("motion", network.motion)]

    def _losses(self, network: torch.nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        from penstock.tasks.behaviour.flow_losses import motion_losses

        images = batch["image"]
        first, second = (network.pixels(images[:, number]) for number in range(2))
        return motion_losses(first, second, network.motion(first, second))

    def loss(self, network: torch.nn.Module, batch: Batch) -> Mapping[str, torch.Tensor]:
        return {name: values.mean() for name, values in self._losses(network, batch).items()}

    def judge(self, network: torch.nn.Module, batch: Batch) -> Judged:
        losses = self._losses(network, batch)
        return Judged({name: values.mean() for name, values in losses.items()}, {"loss": losses["loss"]})

    def answer(self, network: torch.nn.Module, batch: Batch) -> Answers:
        """The motion of each pair, N×2×h×w."""
        images = batch["image"]
        return {"flow": network.motion(*(network.pixels(images[:, number]) for number in range(2)))[0]}

    def scores(self) -> Scores:
        from penstock.tasks.behaviour.behaviour_set_scores import NoScores

        return NoScores()
