"""Detection: where things are in an image, and what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from penstock.augment.pixelwise import Channels, Normalize
from penstock.errors import OptionError, require
from penstock.flow.flow import Flow
from penstock.results.box_frames import CORNERS
from penstock.samples import Source, Store, as_store
from penstock.tasks import data_checks
from penstock.tasks.detection import box_data, settings
from penstock.tasks.detection.box_data import boxed
from penstock.tasks.task import Answers, Batch, Goal, Judged, unused_settings
from penstock.tasks.transforms import transformed

if TYPE_CHECKING:
    import torch

    from penstock.tasks.detection.retina import Candidates, Found, Truth
    from penstock.tasks.task import Scores
    from penstock.tasks.weights import Taken


AUTO = "auto"
AUGMENTATION = ("zoom", "flip", "vertical_flip", "turn", "colour", "hue")


@dataclass(frozen=True)
class Detection:
    """Where things are in an image, and what they are.

    classes               their names, in the order of the network's outputs; empty: those of the training data
    architecture          retinanet, or faster_rcnn, which looks at every place a second time
    backbone              resnet18, resnet34, resnet50 or mobilenet_v2; tiny: for tests and demos
    weights               what training begins with: imagenet, a Run, a file, hf://owner/name; none for random weights
    norm                  frozen: normalisation keeps the statistics it came with, right for small batches; batch: it
                          learns its own; auto: frozen where training begins with weights
    input_scale           how much larger the network sees the image than it is
    gsd                   metres of ground in a pixel; auto: that of the training data, where they are on a map
    anchor_scale          the smallest anchor in strides of the finest map; auto: 4, or what the training boxes need
    levels                maps of the pyramid: 3 (strides 8, 16, 32) or 5 (also 64, 128); auto: 3, unless training boxes
                          are too large for that
    size                  side of the parts of images that are trained on, in px; none: whole images
    augmentation          change training images at random, by the next six
    zoom                  least and largest factor by which a training image is shrunk or enlarged
    flip                  probability that an image is mirrored
    vertical_flip         probability that an image is turned upside down
    turn                  probability that rows and columns of a square image are exchanged
    colour                largest change of brightness, contrast and saturation
    hue                   largest change of hue, as part of a full turn
    min_kept              a box that is cut off in training stays when more than this share of it is seen
    normalize             imagenet, pack (the statistics of the training data), or mean and std of levels 0 to 255
    score_threshold       score from which a box is an answer
    nms_threshold         of boxes whose IoU is above this, only the best is an answer
    nms_by_class          boxes of different classes may overlap
    detections_per_image  most boxes of one image; none: all of them
    image, boxes          names of the fields of the data; auto: the only one of its kind
    """

    kind: ClassVar[str] = "detection"
    # Images and boxes differ in size from sample to sample.
    batch_shapes: ClassVar[Literal["ragged"]] = "ragged"
    # Images alone on a CPU, where nothing is gained by more: then no answer depends on what it came with.
    group_rows: ClassVar[Mapping[str, int]] = {"cpu": 1, "cuda": 8, "mps": 4}

    classes: tuple[str, ...] = ()
    architecture: Literal["retinanet", "faster_rcnn"] = "retinanet"
    backbone: str = "mobilenet_v2"
    weights: str | None = None
    norm: Literal["auto", "frozen", "batch"] = "auto"
    input_scale: float = 1.0
    gsd: float | Literal["auto"] | None = "auto"
    anchor_scale: float | Literal["auto"] = "auto"
    levels: Literal["auto", 3, 5] = "auto"
    size: int | None = None
    augmentation: bool = True
    zoom: tuple[float, float] = (0.8, 1.25)
    flip: float = 0.5
    vertical_flip: float = 0.5  # seen from above, there is no up
    turn: float = 0.5
    colour: float = 0.2
    hue: float = 0.0
    min_kept: float = 0.5
    normalize: Literal["imagenet", "pack"] | tuple[Channels, Channels] = "imagenet"
    score_threshold: float = 0.3
    nms_threshold: float = 0.3
    nms_by_class: bool = False
    detections_per_image: int | None = None
    image: str = "image"
    boxes: str = AUTO

    def __post_init__(self) -> None:
        require("torchvision", "train", "Detection")
        from penstock.tasks.detection.retina import check_pyramid

        settings.set_fields(
            self,
            classes=data_checks.checked_classes(self.classes),
            zoom=settings.checked_zoom(self.zoom),
            normalize=Normalize(self.normalize).statistics,
        )
        check_pyramid(self.backbone)
        settings.check(self)

    # What it is

    @property
    def goal(self) -> Goal:
        return Goal("box_f1")

    @property
    def thresholds(self) -> dict[str, float]:
        """The score from which a box is an answer, and the IoU from which only the best of two is."""
        return {"score": self.score_threshold, "nms": self.nms_threshold}

    @property
    def has_frozen_norm(self) -> bool:
        return self.norm == "frozen" or (self.norm == AUTO and self.weights is not None)

    @property
    def largest_stride(self) -> int:
        """Pixels of the network's input from one place of its coarsest map to the next."""
        from penstock.tasks.detection.retina import STRIDES

        return STRIDES[self._levels - 1]

    @property
    def _levels(self) -> int:
        from penstock.tasks.detection.retina import MANY

        return MANY if self.levels == "auto" else int(self.levels)

    def settings(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {name: settings.plain(value) for name, value in asdict(self).items()}

    # Data

    def check(self, source: Source, purpose: str) -> None:
        """Raise a DataError or OptionError where data do not fit; `purpose` is training, evaluation or prediction."""
        source = as_store(source)
        data_checks.need_samples(source, purpose)
        data_checks.image_field(source, self.image)
        if purpose == "prediction":
            return
        boxes = box_data.need_boxes(source, box_data.boxes_field(source, self.boxes), self.boxes)
        classes = self.classes or source.schema.classes
        if not classes and "box_label" in source.schema:
            raise OptionError("the boxes have classes without names: pass classes=…")
        box_data.need_known_classes(source, boxes, classes)
        if purpose == "training":
            box_data.need_some_boxes(source, boxes)
            box_data.need_resolution(source, self.gsd)

    def fitted_to(self, source: Source) -> Detection:
        """With classes, channel statistics, resolution and anchors of the training data, where it takes them there."""
        source = as_store(source)
        from penstock.tasks.detection.fitting import fitted_anchors

        fitted = self if self.classes else replace(self, classes=source.schema.classes or ("object",))
        fitted = replace(fitted, normalize=Normalize(self.normalize).resolved(source).statistics)
        if fitted.gsd == AUTO:
            fitted = replace(fitted, gsd=box_data.ground_resolution(source))
        return replace(fitted, **fitted_anchors(fitted, source))

    def remarks(self) -> list[str]:
        """What a person should know that was decided from the training data."""
        from penstock.tasks.detection.fitting import anchor_remark

        unused = [] if self.augmentation else unused_settings(self, AUGMENTATION, "augmentation is off")
        return [*unused, *([] if self.anchor_scale == AUTO else anchor_remark(float(self.anchor_scale)))]

    def seen(self, source: Source) -> Store:
        """The source as the network's classes and our names of fields have it."""
        source = as_store(source)
        boxes = box_data.boxes_field(source, self.boxes)
        return boxed(source, data_checks.image_field(source, self.image), boxes, self.classes)

    def training_flow(self, source: Source, *, seed: int, transform: Any = None, **options: Any) -> Flow:
        """Whole samples in a new order each epoch; what is random on images comes on the device."""
        source = as_store(source)
        flow = Flow(self.seen(source), seed, **options).shuffle()
        return flow if transform is None else transformed(flow, transform)

    def evaluation_flow(self, source: Source, **options: Any) -> Flow:
        """Whole samples, in order."""
        source = as_store(source)
        return Flow(self.seen(source), **options)

    def augment(self, batch: Batch, *, seed: int, epoch: int) -> Batch:
        """Another part, place, size and colour, on the device; boxes follow."""
        from penstock.tasks.detection.device_boxes import Changes, changed
        from penstock.tasks.device_pixels import with_other_colours

        mean = Normalize(self.normalize).mean
        if self.augmentation:
            changes = Changes(self.size, self.zoom, self.flip, self.vertical_flip, self.turn, self.min_kept, mean)
            batch = changed(batch, changes, seed=seed, epoch=epoch)
            return with_other_colours(batch, strength=self.colour, hue=self.hue, seed=seed, epoch=epoch)
        if self.size is None:
            return batch
        still = Changes(self.size, (1.0, 1.0), 0, 0, 0, self.min_kept, mean)
        return changed(batch, still, seed=seed, epoch=epoch)

    # Network

    def network(self) -> torch.nn.Module:
        """A new network with random weights drawn from torch's generator; nothing is downloaded."""
        from penstock.tasks.detection.architectures import made_detector

        if not self.classes:
            raise OptionError("the task has no classes yet: pass classes=…, or use task.fitted_to(source).")
        scale = None if self.anchor_scale == AUTO else float(self.anchor_scale)
        options: dict[str, Any] = {"levels": self._levels, "frozen_norm": self.has_frozen_norm}
        return made_detector(self.architecture, self.backbone, len(self.classes), anchor_scale=scale, **options)

    def pretrained(self) -> Mapping[str, torch.Tensor] | None:
        """The weights to begin with; None for random ones. Downloads if the user asked for it."""
        from penstock.tasks.detection.detector_files import detector_weights

        return None if self.weights is None else detector_weights(self.weights, self.backbone)

    def load_backbone(self, network: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> Taken:
        """Take over weights of a backbone or of a whole detector; of other classes, what still applies."""
        from penstock.tasks.detection.detector_files import load_detector

        return load_detector(network, weights, self.backbone, self.classes)

    def stages(self, network: torch.nn.Module) -> Sequence[tuple[str, torch.nn.Module]]:
        """Parts of the network in the order of the data; the last ones are the heads."""
        pyramid: Any = network.backbone
        body = [(f"body.{name}", part) for name, part in pyramid.body.named_children()]
        heads = [(name, part) for name, part in network.named_children() if part is not pyramid]
        parts = [*body, ("fpn", pyramid.fpn), *heads]
        return [(name, part) for name, part in parts if next(part.parameters(), None) is not None]

    def inputs(self, images: Any, scale: float | None = None) -> torch.Tensor:
        """What the network takes of images."""
        from penstock.tasks.detection.retina import canvas

        normalize = Normalize(self.normalize)
        return canvas(images, normalize.mean, normalize.std, self.input_scale if scale is None else scale)

    def loss(self, network: torch.nn.Module, batch: Batch) -> Mapping[str, torch.Tensor]:
        """The losses of a batch of training: of classes, of boxes, and their sum."""
        seen = network(self.inputs(batch["image"]))
        losses: Mapping[str, torch.Tensor] = network.losses(seen, self._truths(batch)).named()
        return losses

    def _truths(self, batch: Batch) -> list[Truth]:
        from penstock.tasks.detection.device_boxes import plain_boxes
        from penstock.tasks.detection.retina import Truth

        boxes, labels = plain_boxes(batch)
        return [Truth(some * self.input_scale, own) for some, own in zip(boxes, labels, strict=True)]

    def judge(self, network: torch.nn.Module, batch: Batch) -> Judged:
        """Losses and answers of a batch with boxes, in one pass; `loss` of the answers has one for each sample."""
        import torch

        from penstock.tasks.detection.retina import Losses, as_list, rows_by_size

        images, truths = as_list(batch["image"]), self._truths(batch)
        losses: dict[int, Losses] = {}
        found: dict[int, Found] = {}
        for rows in rows_by_size(batch["image"]):
            seen = network(self.inputs(torch.stack([images[row] for row in rows])))
            columns = network.losses(seen, [truths[row] for row in rows])
            losses |= dict(zip(rows, (Losses(*one) for one in zip(*columns, strict=True)), strict=True))
            found |= dict(zip(rows, self._found(network, seen, images[rows[0]]), strict=True))
        every = Losses.of([losses[row] for row in range(len(images))])
        return Judged(every.named(), {**_answers(found), "loss": every.classes + every.boxes}, every.anchors.sum())

    def answer(self, network: torch.nn.Module, batch: Batch) -> Answers:
        """For each image its boxes, their class numbers and their scores, best first."""
        import torch

        from penstock.tasks.detection.retina import as_list, rows_by_size

        images = as_list(batch["image"])
        found: dict[int, Found] = {}
        for rows in rows_by_size(batch["image"]):
            seen = network(self.inputs(torch.stack([images[row] for row in rows])))
            found |= dict(zip(rows, self._found(network, seen, images[rows[0]]), strict=True))
        return _answers(found)

    def _found(self, network: torch.nn.Module, seen: Any, image: torch.Tensor) -> list[Found]:
        """The answers of images of one size; also those below the threshold, which `rows` leaves out."""
        from penstock.tasks.detection.retina import inside, suppressed

        options: dict[str, Any] = {"by_class": self.nms_by_class, "most": self.detections_per_image}
        height, width = image.shape[:2]
        return [
            suppressed(inside(one, width, height), self.nms_threshold, **options)
            for one in self.proposed(network, seen, scale=self.input_scale)
        ]

    @property
    def least_score(self) -> float:
        """The score from which a box is looked at, for average precision; the threshold decides what is an answer."""
        from penstock.tasks.detection.retina import LEAST_SCORE

        return min(LEAST_SCORE, self.score_threshold)

    def proposed(self, network: torch.nn.Module, seen: Any, *, scale: float) -> list[Found]:
        """Every box with score enough, before suppression, in pixels of each image; some reach over its border."""
        from penstock.tasks.detection.retina import single_class

        candidates: list[Candidates] = network.candidates(seen, self.least_score)
        singles = [single_class(one, self.least_score) for one in candidates]
        return [one._replace(boxes=one.boxes / scale) for one in singles]

    def scores(self) -> Scores:
        """box_precision, box_recall, box_f1, ap50, ap, recall of each class, empty_frame_accuracy."""
        from penstock.tasks.detection.box_set_scores import BoxSetScores

        return BoxSetScores(self.classes, min_score=self.score_threshold)

    def rows(self, answers: Answers, batch: Batch) -> list[dict[str, Any]]:
        """A row for each box: `sample` (its place in the batch), xmin ymin xmax ymax, label and score."""

        return box_rows(self.classes, answers, self.score_threshold)


def _answers(found: Mapping[int, Found]) -> dict[str, Any]:
    ordered = [found[row] for row in sorted(found)]
    return {
        "boxes": [one.boxes for one in ordered],
        "labels": [one.labels for one in ordered],
        "scores": [one.scores for one in ordered],
    }


# Answers of detection as rows of the table that users see.


SAMPLE = "sample"


def box_rows(classes: Sequence[str], answers: Answers, least_score: float) -> list[dict[str, Any]]:
    """A row for each box that is an answer, image by image, best first."""
    rows = []
    for sample, (boxes, labels, scores) in enumerate(
        zip(answers["boxes"], answers["labels"], answers["scores"], strict=True)
    ):
        for box, label, score in zip(boxes.tolist(), labels.tolist(), scores.tolist(), strict=True):
            if score >= least_score:
                corners = dict(zip(CORNERS, box, strict=True))
                rows.append({SAMPLE: sample, **corners, "label": classes[label], "score": score})
    return rows
