"""Behaviour: what animals do in every frame of a video."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from penstock.augment.pixelwise import Channels, Normalize
from penstock.errors import OptionError, require
from penstock.samples import Source, Store, as_store
from penstock.tasks import data_checks
from penstock.tasks.behaviour import frame_data, settings
from penstock.tasks.behaviour.settings import AUTO, BACKGROUND, SizeName
from penstock.tasks.labelled import labelled
from penstock.tasks.task import Goal, unused_settings

if TYPE_CHECKING:
    import torch

    from penstock.tasks.behaviour.networks import Plan, SequenceName
    from penstock.tasks.behaviour.stages import Stage

AUGMENTATION = (
    *("vertical_flip", "rotation", "brightness", "contrast", "saturation", "hue", "grey"),  # flip is fitted to the data
)


@dataclass(frozen=True)
class Behaviour:
    """What animals do in every frame of a video, learned in three stages: motion, frames, sequence.

    behaviours            their names, in the order of the outputs; empty: those of the training data
    size                  tiny (MobileNetV2), fast (ResNet18), medium (ResNet50) or slow (3D ResNet34); deg_f, deg_m and
                          deg_s mean the last three
    weights               what training begins with: a Run or a file of a Behaviour (all three stages), or weights of
                          a plain network (the streams): imagenet, a file, hf://owner/name; none for random weights
    exclusive             one behaviour at a time; off: several may be at once
    frames                frames of a clip, of which the middle one is labelled
    stride                frames from one frame of a clip to the next
    image_size            WIDTHxHEIGHT or [width, height] that networks see, multiples of 32; auto: that of the data
    sequence              what looks over time: convolution, or gru
    window_frames         frames of the windows that the sequence stage is trained on
    flow_epochs           passes of the first stage, which learns motion without labels
    sequence_epochs       most passes of the last stage; train.epochs are those of the frames stage between them
    patience              epochs without a better score after which a stage ends; none: never
    clips_per_epoch       most clips of an epoch, drawn anew each time: neighbours in a video are nearly the same
    weight_exponent       0: frames count alike; 1: a rare behaviour counts as much as its absence
    focal                 from 0: how strongly frames that are answered well are left aside
    label_smoothing       from 0 to 1: how far labels are taken as less than certain
    l2_sp                 how strongly weights are held near those that training began with
    augmentation          change training clips at random, by the next eight; one choice for all frames of a clip
    flip                  probability that a clip is mirrored; 0 where left and right matter; auto: as the DeepEthogram
                          project says that the data come from, else 0.5
    vertical_flip         probability that a clip is turned upside down
    rotation              largest turn, in degrees
    brightness            largest change of brightness
    contrast              largest change of contrast
    saturation            largest change of saturation
    hue                   largest change of hue, as part of a full turn
    grey                  probability that a clip loses its colours
    normalize             pack (the statistics of the training data), imagenet, or mean and std of levels 0 to 255
    score_thresholds      probability from which each behaviour is there; auto: best F1 on the validation split
    min_bout_frames       shortest bout of each behaviour; auto: from the labelled bouts
    min_bout_percentile   the share of labelled bouts that may be shorter than that, in percent
    counts                labelled frames with and without each behaviour; none: counted in the training data
    image, label          names of the fields of the data; auto: the only one of its kind
    """

    kind: ClassVar[str] = "behaviour"
    stage_names: ClassVar[tuple[str, ...]] = ("flow", "frames", "sequence")

    behaviours: tuple[str, ...] = ()
    size: str = "fast"
    weights: str | None = None
    exclusive: bool = False
    frames: int = 11
    stride: int = 1
    image_size: tuple[int, int] | str = AUTO
    sequence: Literal["convolution", "gru"] = "convolution"
    window_frames: int = 256
    flow_epochs: int = 10  # a few hundred steps, also on small data: before that it says that nothing moves
    sequence_epochs: int = 40
    patience: int | None = 5
    clips_per_epoch: int = 8000
    weight_exponent: float = 0.25
    focal: float = 1.0
    label_smoothing: float = 0.05
    l2_sp: float = 1e-5
    augmentation: bool = True
    flip: float | Literal["auto"] = AUTO
    vertical_flip: float = 0.0
    rotation: float = 10.0
    brightness: float = 0.25
    contrast: float = 0.1
    saturation: float = 0.1
    hue: float = 0.0  # costs more than all others together, and lamps in a laboratory keep their colour
    grey: float = 0.2
    normalize: Literal["pack", "imagenet"] | tuple[Channels, Channels] = "pack"
    score_thresholds: tuple[float, ...] | Literal["auto"] = AUTO
    min_bout_frames: tuple[int, ...] | Literal["auto"] = AUTO
    min_bout_percentile: float = 1.0
    counts: tuple[tuple[int, int], ...] | None = None
    image: str = "image"
    label: str = AUTO

    def __post_init__(self) -> None:
        require("torchvision", "train", "Behaviour")
        settings.set_fields(
            self,
            behaviours=settings.checked_behaviours(self.behaviours),
            size=settings.checked_size(self.size),
            image_size=settings.checked_image_size(self.image_size),
            normalize=Normalize(self.normalize).statistics,
            counts=None if self.counts is None else tuple((int(yes), int(no)) for yes, no in self.counts),
        )
        settings.check(self)

    # What it is

    @property
    def classes(self) -> tuple[str, ...]:
        return self.behaviours

    @property
    def background(self) -> int | None:
        """The number of the behaviour that is none of the others."""
        return self.behaviours.index(BACKGROUND) if BACKGROUND in self.behaviours else None

    @property
    def goal(self) -> Goal:
        return Goal("f1_without_background")

    @property
    def thresholds(self) -> dict[str, float]:
        """The probability from which each behaviour is there."""
        if self.score_thresholds == AUTO:
            return {}
        return {name: float(value) for name, value in zip(self.behaviours, self.score_thresholds, strict=True)}

    def settings(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {name: settings.plain(value) for name, value in asdict(self).items()}

    def stage(self, name: str, begins_with: str | None = None) -> Stage:
        """One stage of its training as a task of its own: flow, frames or sequence."""
        from penstock.tasks.behaviour.stages import stage_of

        return stage_of(self, name, begins_with)

    # Data

    def check(self, source: Source, purpose: str) -> None:
        """Raise a DataError or OptionError where data do not fit; `purpose` is training, evaluation or prediction."""
        source = as_store(source)
        data_checks.need_samples(source, purpose)
        data_checks.image_field(source, self.image)
        frame_data.fitted_image_size(source, self.image_size)
        if purpose == "prediction":
            return
        found = data_checks.label_field(source, self.label, "labels")
        label = data_checks.need_label(source, found, self.label, "labels")
        own = source.schema.classes
        data_checks.need_known_classes(source, label, (*self.behaviours, BACKGROUND) if self.behaviours else own)
        labels = frame_data.frame_labels(source, label)
        if purpose == "training":
            frame_data.need_labelled_frames(source, labels)
        if self.exclusive:
            frame_data.need_one_behaviour_a_frame(source, labels, own)

    def fitted_to(self, source: Source) -> Behaviour:
        """With behaviours, size, channel statistics and counts of the training data, where it takes them from there."""
        source = as_store(source)
        data_checks.need_samples(source, "training")
        data_checks.image_field(source, self.image)
        found = data_checks.label_field(source, self.label, "labels")
        data_checks.need_label(source, found, self.label, "labels")
        fitted = self if self.behaviours else replace(self, behaviours=source.schema.classes)
        return replace(
            fitted,
            image_size=frame_data.fitted_image_size(source, self.image_size),
            normalize=Normalize(self.normalize).resolved(source).statistics,
            counts=fitted.counts or frame_data.label_counts(fitted.labels_of(source)),
            flip=frame_data.flip_of(source) if self.flip == AUTO else self.flip,
        )

    def seen(self, source: Source) -> Store:
        """The source with our names of fields and the order of our behaviours; labels that do not fit are left out.

        Background may be missing among ours: it says nothing that the others do not.
        """
        source = as_store(source)
        label = data_checks.label_field(source, self.label, "labels")
        fits = label is not None and set(source.schema.classes) - {BACKGROUND} <= set(self.behaviours)
        return labelled(source, data_checks.image_field(source, self.image), label if fits else None, self.behaviours)

    def labels_of(self, source: Source) -> NDArray[np.int8]:
        """The labels of every frame in the order of our behaviours: 1, 0 and −1."""
        source = as_store(source)
        seen = self.seen(source)
        if "label" not in seen.schema:
            return np.full((len(source), len(self.behaviours)), -1, np.int8)
        return frame_data.frame_labels(seen, "label")

    def remarks(self, validation: Store | None = None) -> list[str]:
        """Behaviours that cannot be learned or scored, because the data have none of them, or nothing else."""
        counts = self.counts or ()
        never = [name for name, (yes, _) in zip(self.behaviours, counts, strict=False) if not yes]
        always = [name for name, (yes, no) in zip(self.behaviours, counts, strict=False) if yes and not no]
        words = [(never, "never occurs in"), (always, "is in every labelled frame of")]
        said = [f"{name} {what} the training data, so it cannot be learned." for names, what in words for name in names]
        said += [] if self.augmentation else unused_settings(self, AUGMENTATION, "augmentation is off")
        if self.min_bout_frames != AUTO:
            said += unused_settings(self, ("min_bout_percentile",), "min_bout_frames says how short a bout may be")
        return said if validation is None else [*said, *self._unscored(validation, never)]

    def _unscored(self, validation: Store, never: Sequence[str]) -> list[str]:
        """What follows for behaviours that the validation data have none of; `never` are in no data at all."""
        occurs = (self.labels_of(validation) == 1).any(axis=0)
        follows = "it has no score" + (", and its threshold stays 0.5" if self.score_thresholds == AUTO else "")
        return [
            f"{name} occurs in the training data, but not in the validation data: {follows}."
            for name, is_there in zip(self.behaviours, occurs, strict=True)
            if not is_there and name not in never
        ]

    # What follows from the counts

    @property
    def class_weights(self) -> tuple[float, ...]:
        """How much a behaviour that is there counts: (absent / present) to the power of weight_exponent."""
        return tuple((max(no, 1) / max(yes, 1)) ** self.weight_exponent for yes, no in self._counted())

    @property
    def first_bias(self) -> tuple[float, ...]:
        """The logits that say how often behaviours are: what a network says before it has learned anything."""
        counted = self._counted()
        if not self.exclusive:
            return tuple(math.log(max(yes, 1) / max(no, 1)) for yes, no in counted)
        total = sum(max(yes, 1) for yes, _ in counted)
        return tuple(math.log(max(yes, 1) / total) for yes, _ in counted)

    def _counted(self) -> Sequence[tuple[int, int]]:
        return self.counts if self.counts is not None else [(1, 1)] * len(self.behaviours)

    # Networks

    def plan(self) -> Plan:
        """What its networks are made by."""
        from penstock.tasks.behaviour.networks import Plan

        if not self.behaviours:
            raise OptionError("the task has no behaviours yet: pass behaviours=…, or use task.fitted_to(source).")
        normalize = Normalize(self.normalize)
        sequence: SequenceName = self.sequence
        size = cast(SizeName, self.size)
        return Plan(size, len(self.behaviours), self.frames, self.stride, sequence, normalize.mean, normalize.std)

    def network(self) -> torch.nn.Module:
        """A new network with random weights drawn from torch's generator; nothing is downloaded."""
        from penstock.tasks.behaviour.networks import BehaviourNetwork

        return BehaviourNetwork(self.plan())

    def probabilities(self, logits: NDArray[Any]) -> NDArray[np.float32]:
        """From logits to probabilities, frames × behaviours."""
        values = np.asarray(logits, np.float64)
        if not self.exclusive:
            found = 1 / (1 + np.exp(-np.clip(values, -50, 50)))
        else:
            powers = np.exp(values - values.max(axis=1, keepdims=True))
            found = powers / powers.sum(axis=1, keepdims=True)
        return found.astype(np.float32)
