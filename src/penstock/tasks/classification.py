"""Classification: what a whole image is, one class or several labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from penstock.augment.geometric import RandomResizedCrop
from penstock.augment.pixelwise import Channels, Normalize
from penstock.errors import OptionError, refuse_unused, require
from penstock.flow.flow import Flow
from penstock.samples import Source, Store, as_store
from penstock.tasks import data_checks, image_flows
from penstock.tasks.labelled import labelled
from penstock.tasks.task import Answers, Batch, Goal, Judged, unused_settings
from penstock.wording import counted

if TYPE_CHECKING:
    import torch

    from penstock.tasks.losses import SampleLosses
    from penstock.tasks.task import Scores
    from penstock.tasks.weights import Taken

BALANCED = "balanced"
AUGMENTATION = ("crop_scale", "flip", "vertical_flip", "colour", "hue")


@dataclass(frozen=True)
class Classification:
    """What a whole image is.

    classes           their names, in the order of the network's outputs; empty: those of the training data
    backbone          a network of torchvision by name, such as mobilenet_v2 or resnet18; tiny: for tests and demos
    weights           what training begins with: imagenet, a Run, a file, hf://owner/name; none for random weights
    size              side of the images that the network sees, in px
    multi_label       a sample may have several labels at once, or none
    class_weights     how much each class counts: none, balanced (rare ones more), or a number for each
    focal             from 0: how strongly samples that are answered well are left aside
    label_smoothing   from 0 to 1: how far labels are taken as less than certain
    augmentation      change training images at random, by the next five
    crop_scale        least and largest share of the image's area that a random crop has
    flip              probability that an image is mirrored
    vertical_flip     probability that an image is turned upside down
    colour            largest change of brightness, contrast and saturation
    hue               largest change of hue, as part of a full turn
    middle            share of the shorter side that evaluation and prediction look at
    normalize         imagenet, pack (the statistics of the training data), or mean and std of levels 0 to 255
    threshold         score from which a label is given; for multi_label
    tta               answer by the mean over the image and its mirror image
    image, label      names of the fields of the data; auto: the only one of its kind
    """

    kind: ClassVar[str] = "classification"

    classes: tuple[str, ...] = ()
    backbone: str = "mobilenet_v2"
    weights: str | None = None
    size: int = 224
    multi_label: bool = False
    class_weights: Literal["balanced"] | tuple[float, ...] | None = None
    focal: float = 0.0
    label_smoothing: float = 0.0
    augmentation: bool = True
    crop_scale: tuple[float, float] = (0.35, 1.0)  # the subject of a photo fills more of it than ImageNet's 0.08 asks
    flip: float = 0.5
    vertical_flip: float = 0.0
    colour: float = 0.2
    hue: float = 0.0
    middle: float = 0.875
    normalize: Literal["imagenet", "pack"] | tuple[Channels, Channels] = "imagenet"
    threshold: float = 0.5
    tta: bool = False
    image: str = "image"
    label: str = "auto"

    def __post_init__(self) -> None:
        _set(self, "classes", data_checks.checked_classes(self.classes))
        _set(self, "crop_scale", tuple(self.crop_scale))
        _set(self, "normalize", Normalize(self.normalize).statistics)
        self._check_backbone()
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 16:
            raise OptionError(f"size={self.size!r} must be a whole number from 16.")
        self._check_class_weights()
        if not self.multi_label:
            reason = "a sample has one class, the most likely one. Leave it out, or pass multi_label=True."
            refuse_unused(self, "threshold", reason)
        for name in ("label_smoothing", "flip", "vertical_flip", "colour", "threshold"):
            _between(name, getattr(self, name), 0, 1)
        _between("hue", self.hue, 0, 0.5)
        _between("middle", self.middle, 0.1, 1)
        _between("focal", self.focal, 0, 10)
        RandomResizedCrop(self.size, scale=self.crop_scale)  # which says what is wrong with them

    def _check_backbone(self) -> None:
        require("torchvision", "train", "Classification")
        from penstock.tasks.backbones import check_backbone

        check_backbone(self.backbone)

    def _check_class_weights(self) -> None:
        weights = self.class_weights
        if weights is None or weights == BALANCED:
            return
        if isinstance(weights, str) or any(not _is_positive(weight) for weight in weights):
            raise OptionError(f"class_weights={weights!r} must be none, {BALANCED}, or a number above zero a class.")
        if self.classes and len(weights) != len(self.classes):
            raise OptionError(f"class_weights has {len(weights)} numbers for {counted(len(self.classes), 'class')}.")
        _set(self, "class_weights", tuple(float(weight) for weight in weights))

    # What it is

    @property
    def goal(self) -> Goal:
        return Goal("f1" if self.multi_label else "accuracy")

    @property
    def label_kind(self) -> str:
        return "labels" if self.multi_label else "class"

    @property
    def thresholds(self) -> dict[str, float]:
        """The score from which a label is given, where a sample may have several."""
        return {"score": self.threshold} if self.multi_label else {}

    def settings(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    def remarks(self) -> list[str]:
        """Settings that have no effect beside others."""
        return [] if self.augmentation else unused_settings(self, AUGMENTATION, "augmentation is off")

    def preload_remarks(self) -> list[str]:
        """Settings that have no effect on images that are kept on the device."""
        what = "preload keeps the middle of each image: crop_scale, flip and vertical_flip have no effect"
        return [f"{what}; colour and hue are still changed."] if self.augmentation else []

    # Data

    def check(self, source: Source, purpose: str) -> None:
        """Raise a DataError or OptionError where data do not fit; `purpose` is training, evaluation or prediction."""
        source = as_store(source)
        data_checks.need_samples(source, purpose)
        data_checks.image_field(source, self.image)
        if purpose == "prediction":
            return
        found = data_checks.label_field(source, self.label, self.label_kind)
        label = data_checks.need_label(source, found, self.label, self.label_kind)
        data_checks.need_known_classes(source, label, self.classes or source.schema.classes)
        if purpose == "training" and not self.multi_label:
            data_checks.need_two_classes(source, label, self.classes or source.schema.classes)

    def fitted_to(self, source: Source) -> Classification:
        """With classes, class weights and channel statistics of the training data, where it takes them from there."""
        source = as_store(source)
        fitted = self if self.classes else replace(self, classes=source.schema.classes)
        normalize = Normalize(self.normalize).resolved(source).statistics
        if fitted.class_weights == BALANCED:
            fitted = replace(fitted, class_weights=fitted._balanced(source))
        return replace(fitted, normalize=normalize)

    def _balanced(self, source: Store) -> tuple[float, ...]:
        """Weights that let every class count the same in total; those without samples count as one sample."""
        seen = self._seen(source)
        counts = data_checks.class_counts(seen, "label", len(self.classes)) if "label" in seen.schema else np.ones(1)
        counts = np.maximum(counts, 1)
        negatives = len(source) - counts if self.multi_label else counts.mean()
        return tuple((np.maximum(negatives, 1) / counts).tolist())

    def _seen(self, source: Store) -> Store:
        """The source as the network's classes and our names of fields have it; labels that do not fit are left out."""
        label = data_checks.label_field(source, self.label, self.label_kind)
        fits = label is not None and set(source.schema.classes) <= set(self.classes)
        return labelled(source, data_checks.image_field(source, self.image), label if fits else None, self.classes)

    def training_flow(self, source: Source, *, seed: int, transform: Any = None, **options: Any) -> Flow:
        """Random crops and flips in the flow, behind an own transform; batches of levels, uint8."""
        source = as_store(source)
        return image_flows.training_flow(self._seen(source), self._crops(), seed=seed, transform=transform, **options)

    def evaluation_flow(self, source: Source, **options: Any) -> Flow:
        """The middle of each image, with nothing random."""
        source = as_store(source)
        return image_flows.evaluation_flow(self._seen(source), self._crops(), **options)

    def _crops(self) -> image_flows.Crops:
        return image_flows.Crops(
            self.size, self.crop_scale, self.flip, self.vertical_flip, self.middle, self.augmentation
        )

    def augment(self, batch: Batch, *, seed: int, epoch: int) -> Batch:
        """Other colours, on the device."""
        if not self.augmentation:
            return batch
        from penstock.tasks.device_pixels import with_other_colours

        return with_other_colours(batch, strength=self.colour, hue=self.hue, seed=seed, epoch=epoch)

    # Network

    def network(self) -> torch.nn.Module:
        """A new network with random weights drawn from torch's generator; nothing is downloaded."""
        if not self.classes:
            raise OptionError("the task has no classes yet: pass classes=…, or use task.fitted_to(source).")
        from penstock.tasks.backbones import made_backbone

        return made_backbone(self.backbone, len(self.classes), self.size)

    def pretrained(self) -> Mapping[str, torch.Tensor] | None:
        """The weights to begin with; None for random ones. Downloads if the user asked for it."""
        from penstock.tasks.checkpoints import place_of
        from penstock.tasks.weights import need_model_of, need_same_setting, pretrained_weights

        if self.weights is None:
            return None
        found = pretrained_weights(place_of(self.weights), self.backbone)
        need_model_of(found, self.kind, self.weights)
        need_same_setting(found, "backbone", self.backbone, self.weights)
        return found

    def load_backbone(self, network: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> Taken:
        """Take over pretrained weights; of the head the outputs of classes with the same name."""
        from penstock.tasks.weights import load_fitting

        return load_fitting(network, weights, self.backbone, self.classes)

    def stages(self, network: torch.nn.Module) -> Sequence[tuple[str, torch.nn.Module]]:
        """Parts of the network in the order of the data; the last one holds the head."""
        from penstock.tasks.backbones import stages_of

        return stages_of(network)

    def inputs(self, batch: Batch) -> torch.Tensor:
        """What the network takes of a batch."""
        from penstock.tasks.device_pixels import normalised

        normalize = Normalize(self.normalize)
        return normalised(batch["image"], normalize.mean, normalize.std)

    def loss(self, network: torch.nn.Module, batch: Batch) -> Mapping[str, torch.Tensor]:
        """The loss of a batch of training."""
        return {"loss": self._losses(network(self.inputs(batch)), batch).mean()}

    def judge(self, network: torch.nn.Module, batch: Batch) -> Judged:
        """Losses and answers of a batch with labels, in one pass; `loss` of the answers has one for each sample."""
        logits = self._logits(network, batch)
        losses = self._losses(logits, batch)
        return Judged({"loss": losses.mean()}, {**self._answers(logits), "loss": losses.losses}, losses.weights.sum())

    def answer(self, network: torch.nn.Module, batch: Batch) -> Answers:
        """The probability of each class, N×classes."""
        return self._answers(self._logits(network, batch))

    def _logits(self, network: torch.nn.Module, batch: Batch) -> torch.Tensor:
        pixels = self.inputs(batch)
        logits: torch.Tensor = network(pixels).float()
        if not self.tta:
            return logits
        mirrored: torch.Tensor = network(pixels.flip(-1)).float()
        return self._mean_logits(logits, mirrored)

    def _mean_logits(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Logits whose probabilities are the mean of two."""
        import torch

        if self.multi_label:
            return torch.logit((first.sigmoid() + second.sigmoid()) / 2, eps=1e-7)
        both = torch.stack([first.log_softmax(dim=1), second.log_softmax(dim=1)])
        return both.logsumexp(dim=0) - math.log(2)

    def _answers(self, logits: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"probabilities": logits.sigmoid() if self.multi_label else logits.softmax(dim=1)}

    def _losses(self, logits: torch.Tensor, batch: Batch) -> SampleLosses:
        import torch

        from penstock.tasks.losses import multi_label_losses, single_label_losses

        if self.class_weights == BALANCED:
            raise OptionError("balanced class weights are taken from the training data: use task.fitted_to(source).")
        weights = None if self.class_weights is None else torch.tensor(self.class_weights, device=logits.device)
        losses = multi_label_losses if self.multi_label else single_label_losses
        return losses(
            logits, batch["label"], class_weights=weights, focal=self.focal, label_smoothing=self.label_smoothing
        )

    def scores(self) -> Scores:
        """accuracy, balanced_accuracy, f1 and auroc."""
        from penstock.tasks.class_scores import ClassScores

        return ClassScores(self.classes, multi_label=self.multi_label, threshold=self.threshold)

    def rows(self, answers: Answers, batch: Batch) -> list[dict[str, Any]]:
        """label, score, one column for each class; with labels also truth and loss."""
        from penstock.tasks.class_scores import class_rows

        return class_rows(self.classes, answers, batch, self.threshold if self.multi_label else None)


def _set(task: Classification, name: str, value: Any) -> None:
    object.__setattr__(task, name, value)


def _between(name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise OptionError(f"{name}={value!r} must be a number from {least:g} to {most:g}.")


def _is_positive(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, float)) and 0 < value < math.inf


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, (tuple, list)) else value
