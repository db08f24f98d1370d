"""The second stage: what is done in the middle frame of a clip, from what it looks like and how it moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from penstock.flow.flow import Flow
from penstock.samples import Source, as_store
from penstock.tasks.behaviour.sizes import SIZES
from penstock.tasks.behaviour.stages import VALIDATION_CLIPS, Stage, clip_changes, no_transform, sized
from penstock.tasks.task import Answers, Batch, Goal, Judged

if TYPE_CHECKING:
    import torch

    from penstock.tasks.taken_weights import Taken
    from penstock.tasks.task import Scores

STREAMS = ("spatial", "motion")
# How much each stream's own answer counts beside that of both: enough that neither leaves all work to the other.
ALONE_WEIGHT = 0.5
PRETRAINED = "pretrained."


@dataclass(frozen=True)
class FramesStage(Stage):
    """Behaviours of the middle frame of clips."""

    kind: ClassVar[str] = "behaviour_frames"
    parts: ClassVar[tuple[str, ...]] = ("motion", "frames")

    @property
    def goal(self) -> Goal:
        return self.behaviour.goal

    def fitted_to(self, source: Source) -> FramesStage:
        source = as_store(source)
        return replace(self, behaviour=self.behaviour.fitted_to(source))

    # Data

    def training_flow(self, source: Source, *, seed: int, transform: Any = None, **options: Any) -> Flow:
        """Clips whose middle frame has a label, in a new order each epoch, at most so many."""
        source = as_store(source)
        no_transform(transform)
        clips = self._clips(Flow(self.behaviour.seen(source), seed, **options), 1).shuffle()
        return sized(clips.take(self.behaviour.clips_per_epoch), self.behaviour, source)

    def evaluation_flow(self, source: Source, **options: Any) -> Flow:
        source = as_store(source)
        step = 1 + len(source) // VALIDATION_CLIPS
        return sized(self._clips(Flow(self.behaviour.seen(source), **options), step), self.behaviour, source)

    def _clips(self, flow: Flow, step: int) -> Flow:
        task = self.behaviour
        return flow.clips(task.frames, task.stride, step=step).where(label=has_label)

    def augment(self, batch: Batch, *, seed: int, epoch: int) -> Batch:
        from penstock.tasks.behaviour.clip_changes import changed_clips

        if not self.behaviour.augmentation:
            return batch
        return changed_clips(batch, clip_changes(self.behaviour), seed=seed, epoch=epoch)

    # Network

    def network(self) -> torch.nn.Module:
        """Two streams whose bias says how often behaviours are, and a motion network that is not trained."""
        import torch

        network = super().network()
        network.motion.requires_grad_(False)
        with torch.no_grad():
            network.frames.bias.copy_(torch.tensor(self.behaviour.first_bias))
        return network

    def pretrained(self) -> Mapping[str, torch.Tensor] | None:
        """The motion network of the stage before, and weights for the streams."""
        from penstock.tasks.behaviour.warm_starts import plain_weights

        warm = self._warm_weights()
        if warm is not None:
            return warm
        found = self._begun()
        weights = plain_weights(self.behaviour)
        found |= {PRETRAINED + name: value for name, value in weights.items()}
        return found or None

    def load_backbone(self, network: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> Taken | None:
        """Take over both; what is said is about the streams."""
        from penstock.tasks.behaviour.beginnings import Anchors, load_streams
        from penstock.tasks.behaviour.warm_starts import is_warm, load_warm_streams

        named: Any = network
        if any(name.startswith("motion.") for name in weights):
            named.load_parts(weights, ("motion",))
        given = {name.removeprefix(PRETRAINED): value for name, value in weights.items() if name.startswith(PRETRAINED)}
        if is_warm(weights):
            taken = load_warm_streams(named.frames, weights, self.classes)
        elif given:
            taken = load_streams(named.frames, given, SIZES[self.behaviour.size])
        else:
            return None
        named.anchors = Anchors(named.frames)
        return taken

    def stages(self, network: torch.nn.Module) -> Sequence[tuple[str, torch.nn.Module]]:
        """The spatial stream, and the rest; `freeze: backbone` keeps the spatial stream as it began."""
        from torch import nn

        frames: Any = network.frames
        rest = nn.ModuleList([frames.motion, frames.motion_scale, frames.spatial_head, frames.motion_head])
        return [("spatial", frames.spatial), ("rest", rest)]

    def _logits(self, network: torch.nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        """Of both streams together, and of each alone."""
        import torch

        images = batch["image"]
        pixels = network.pixels(images.flatten(0, 1)).unflatten(0, images.shape[:2])
        frames: Any = network.frames
        network.motion.eval()  # it is used as it is: its statistics stay those of its own training
        if self.behaviour.weights is not None:
            frames.spatial.eval()  # as do those that came with weights: frames of a few videos are too much alike
        with torch.no_grad():
            flows = network.clip_flows(pixels)
        features = frames.features(network.seen_images(pixels), flows)
        spatial, motion = frames.shares(features)
        both = spatial + motion + frames.bias
        return {"": both, "spatial_": spatial + frames.bias, "motion_": motion + frames.bias}

    def loss(self, network: torch.nn.Module, batch: Batch) -> Mapping[str, torch.Tensor]:
        """The loss of both streams together and of each, and of how far weights went from where they began."""
        from penstock.tasks.behaviour.behaviour_losses import behaviour_losses

        found = {
            f"{name}loss": behaviour_losses(self.behaviour, logits, batch["label"]).mean()
            for name, logits in self._logits(network, batch).items()
        }
        alone = found["spatial_loss"] + found["motion_loss"]
        loss = found["loss"] + ALONE_WEIGHT * alone
        anchors = getattr(network, "anchors", None)
        if anchors is not None and self.behaviour.l2_sp:
            loss = loss + self.behaviour.l2_sp * anchors.distance(network.frames)
        return {**found, "loss": loss}

    def judge(self, network: torch.nn.Module, batch: Batch) -> Judged:
        from penstock.tasks.behaviour.behaviour_losses import behaviour_losses

        logits = self._logits(network, batch)
        losses = behaviour_losses(self.behaviour, logits[""].float(), batch["label"])
        return Judged({"loss": losses.mean()}, {**self._answers(logits), "loss": losses.losses}, losses.weights.sum())

    def answer(self, network: torch.nn.Module, batch: Batch) -> Answers:
        """Probabilities of both streams together, and of each alone."""
        return self._answers(self._logits(network, batch))

    def _answers(self, logits: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        is_exclusive = self.behaviour.exclusive
        return {
            f"{name}probabilities": value.float().softmax(dim=1) if is_exclusive else value.float().sigmoid()
            for name, value in logits.items()
        }

    def scores(self) -> Scores:
        from penstock.tasks.behaviour.behaviour_set_scores import BehaviourSetScores

        return BehaviourSetScores(self.classes, STREAMS)


def has_label(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which frames have at least one label, of frames × behaviours."""
    return np.asarray((labels >= 0).any(axis=1))
