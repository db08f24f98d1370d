"""The last stage: what is done in each frame, with what comes before and after in view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.flow.flow import Flow
from penstock.samples import Source, as_store
from penstock.tasks.behaviour.stages import Stage, no_transform
from penstock.tasks.task import Answers, Batch, Goal, Judged

if TYPE_CHECKING:
    import torch

    from penstock.tasks.losses import SampleLosses
    from penstock.tasks.taken_weights import Taken
    from penstock.tasks.task import Scores


@dataclass(frozen=True)
class SequenceStage(Stage):
    """Behaviours of all frames of windows over features.

    is_warm    begin with the sequence network of the given weights, where they are a whole model
    """

    kind: ClassVar[str] = "behaviour_sequence"
    parts: ClassVar[tuple[str, ...]] = ("sequence",)
    is_packable: ClassVar[bool] = False  # features are made anew for each training

    is_warm: bool = field(default=True, compare=False)

    @property
    def goal(self) -> Goal:
        return self.behaviour.goal

    def fitted_to(self, source: Source) -> SequenceStage:
        source = as_store(source)
        return self

    def training_flow(self, source: Source, *, seed: int, transform: Any = None, **options: Any) -> Flow:
        """Windows in a new order each epoch."""
        source = as_store(source)
        no_transform(transform)
        return Flow(source, seed, **options).shuffle()

    def evaluation_flow(self, source: Source, **options: Any) -> Flow:
        source = as_store(source)
        return Flow(source, **options)

    def augment(self, batch: Batch, *, seed: int, epoch: int) -> Batch:
        """Features are taken as they are; dropout in the network does the rest."""
        return batch

    def pretrained(self) -> Mapping[str, torch.Tensor] | None:
        """The heads of the two streams, and the sequence network of a model of behaviours."""
        return (self._warm_weights() if self.is_warm else None) or self._begun() or None

    def load_backbone(self, network: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> Taken | None:
        """Take over both; what is said is about the sequence network."""
        import torch

        from penstock.tasks.behaviour.warm_starts import is_warm, load_warm_sequence

        sequence: Any = network.sequence
        taken = load_warm_sequence(sequence, weights, self.behaviour) if is_warm(weights) else None
        if "frames.bias" in weights:
            heads = [weights[f"frames.{name}_head.weight"] for name in ("spatial", "motion")]
            sequence.begin_with_heads(torch.cat(heads, dim=1), weights["frames.bias"])
        return taken

    def stages(self, network: torch.nn.Module) -> Sequence[tuple[str, torch.nn.Module]]:
        return [("sequence", network.sequence)]

    def _logits(self, network: torch.nn.Module, batch: Batch) -> torch.Tensor:
        """Windows × frames × behaviours."""
        import torch

        features = batch["features"].float()
        places = torch.arange(features.shape[1], device=features.device)
        mask = (places < batch["length"][:, None].to(features.device)).to(features.dtype)[:, None]
        logits: torch.Tensor = network.sequence(features.transpose(1, 2), mask)
        return logits.transpose(1, 2).float()

    def _losses(self, logits: torch.Tensor, batch: Batch) -> SampleLosses:
        from penstock.tasks.behaviour.behaviour_losses import behaviour_losses

        return behaviour_losses(self.behaviour, logits.flatten(0, 1), batch["label"].flatten(0, 1))

    def loss(self, network: torch.nn.Module, batch: Batch) -> Mapping[str, torch.Tensor]:
        return {"loss": self._losses(self._logits(network, batch), batch).mean()}

    def judge(self, network: torch.nn.Module, batch: Batch) -> Judged:
        logits = self._logits(network, batch)
        losses = self._losses(logits, batch)
        windows = losses.losses.unflatten(0, logits.shape[:2]).mean(dim=1)
        return Judged({"loss": losses.mean()}, {**self._answers(logits), "loss": windows}, losses.weights.sum())

    def answer(self, network: torch.nn.Module, batch: Batch) -> Answers:
        """Probabilities, windows × frames × behaviours."""
        return self._answers(self._logits(network, batch))

    def _answers(self, logits: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"probabilities": logits.softmax(dim=2) if self.behaviour.exclusive else logits.sigmoid()}

    def scores(self) -> Scores:
        from penstock.tasks.behaviour.behaviour_set_scores import BehaviourSetScores

        return BehaviourSetScores(self.classes)
