"""The stages of a behaviour training: motion, frames, sequence; each a task that the ordinary training runs.

flow        pairs of frames ──► MotionNetwork                        without labels
frames      clips, the middle frame's labels ──► TwoStreams          with the motion network as it is
sequence    windows over features of whole videos ──► SequenceNetwork
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from penstock.augment import Resize
from penstock.errors import OptionError
from penstock.flow.flow import Flow
from penstock.samples import Source, Store, as_store
from penstock.tasks.behaviour import frame_data
from penstock.tasks.behaviour.behaviour import Behaviour
from penstock.tasks.behaviour.settings import AUTO, SIZES
from penstock.tasks.task import Answers, Batch, Goal, Judged

if TYPE_CHECKING:
    import torch

    from penstock.tasks.behaviour.clip_changes import ClipChanges
    from penstock.tasks.losses import SampleLosses
    from penstock.tasks.task import Scores
    from penstock.tasks.weights import KnownWeights, Taken


# Clips that a validation looks at, evenly over all videos: more would take longer than the training between two.
VALIDATION_CLIPS = 4000


@dataclass(frozen=True)
class Stage:
    """What the stages have in common.

    behaviour      the whole task
    begins_with    a checkpoint of the stage before, whose weights are taken over when training begins
    """

    kind: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]

    behaviour: Behaviour
    begins_with: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.behaviour, Mapping):
            object.__setattr__(self, "behaviour", Behaviour(**self.behaviour))

    @property
    def classes(self) -> tuple[str, ...]:
        return self.behaviour.behaviours

    @property
    def weights(self) -> str | None:
        return self.behaviour.weights

    def settings(self) -> dict[str, Any]:
        """All of it as JSON; which file it began with is no part of what it is."""
        return {"behaviour": self.behaviour.settings()}

    def check(self, source: Source, purpose: str) -> None:
        """The whole task checks data before its first stage."""
        source = as_store(source)

    def remarks(self) -> list[str]:
        return []

    def network(self) -> torch.nn.Module:
        """A new network with the parts that this stage has."""
        from penstock.tasks.behaviour.networks import BehaviourNetwork

        return BehaviourNetwork(self.behaviour.plan(), self.parts)

    def rows(self, answers: Answers, batch: Batch) -> list[dict[str, Any]]:
        raise OptionError("a stage of a behaviour training answers nothing by itself: predict with the whole Run.")

    def _begun(self) -> dict[str, torch.Tensor]:
        """The weights of the stage before."""
        from penstock.tasks.checkpoints import read_checkpoint

        return {} if self.begins_with is None else dict(read_checkpoint(self.begins_with).weights)

    def _warm_weights(self) -> KnownWeights | None:
        """The whole model of behaviours that training begins with; None where it begins with something else."""
        from penstock.tasks.behaviour.warm_starts import stage_weights, warm_weights

        found = warm_weights(self.behaviour)
        return None if found is None else stage_weights(found, self._begun())


def sized(flow: Flow, behaviour: Behaviour, source: Store) -> Flow:
    """Frames at the size that networks see; nothing is done where they have it."""
    size = frame_data.fitted_image_size(source, behaviour.image_size)
    return flow if frame_data.frame_sizes(source) == [size] else flow.map(Resize(size))


def clip_changes(behaviour: Behaviour) -> ClipChanges:
    from penstock.tasks.behaviour.clip_changes import ClipChanges

    one = behaviour
    colours = (one.brightness, one.contrast, one.saturation, one.hue, one.grey)
    flip = frame_data.USUAL_FLIP if one.flip == AUTO else one.flip  # without data to fit it to
    return ClipChanges(flip, one.vertical_flip, one.rotation, *colours)


def no_transform(transform: Any) -> None:
    """Refuse a user's own function of an image: clips have several."""
    if transform is not None:
        raise OptionError("transform is for tasks on single images; Behaviour changes clips by its own settings.")


def stage_of(behaviour: Behaviour, name: str, begins_with: str | None) -> Stage:
    """The stage of this name."""

    kinds: Sequence[tuple[str, type[Stage]]] = (
        ("flow", FlowStage),
        ("frames", FramesStage),
        ("sequence", SequenceStage),
    )
    return dict(kinds)[name](behaviour, begins_with)


# The first stage: how pixels move between two frames, learned from the video alone.


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
        from penstock.tasks.behaviour.losses import motion_losses

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


# The second stage: what is done in the middle frame of a clip, from what it looks like and how it moves.


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
        from penstock.tasks.behaviour.warm_starts import Anchors, is_warm, load_streams, load_warm_streams

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
        from penstock.tasks.behaviour.losses import behaviour_losses

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
        from penstock.tasks.behaviour.losses import behaviour_losses

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


# The last stage: what is done in each frame, with what comes before and after in view.


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
        from penstock.tasks.behaviour.losses import behaviour_losses

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
