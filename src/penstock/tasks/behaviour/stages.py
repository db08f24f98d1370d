"""The stages of a behaviour training, each a task of its own that the ordinary training runs.

flow        pairs of frames ──► MotionNetwork                        without labels
frames      clips, the middle frame's labels ──► TwoStreams          with the motion network as it is
sequence    windows over features of whole videos ──► SequenceNetwork
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.augment import Resize
from penstock.errors import RecipeError
from penstock.flow.flow import Flow
from penstock.samples import Source, Store, as_store
from penstock.tasks.behaviour import frame_data
from penstock.tasks.behaviour.behaviour import Behaviour
from penstock.tasks.behaviour.settings import AUTO
from penstock.tasks.task import Answers, Batch

if TYPE_CHECKING:
    import torch

    from penstock.tasks.behaviour.clip_changes import ClipChanges
    from penstock.tasks.weight_files import KnownWeights

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
        raise RecipeError("a stage of a behaviour training answers nothing by itself: predict with the whole Run.")

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
        raise RecipeError("transform is for tasks on single images; Behaviour changes clips by its own settings.")


def stage_of(behaviour: Behaviour, name: str, begins_with: str | None) -> Stage:
    """The stage of this name."""
    from penstock.tasks.behaviour.flow_stage import FlowStage
    from penstock.tasks.behaviour.frames_stage import FramesStage
    from penstock.tasks.behaviour.sequence_stage import SequenceStage

    kinds: Sequence[tuple[str, type[Stage]]] = (
        ("flow", FlowStage),
        ("frames", FramesStage),
        ("sequence", SequenceStage),
    )
    return dict(kinds)[name](behaviour, begins_with)
