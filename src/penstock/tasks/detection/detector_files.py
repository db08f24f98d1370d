"""Files of whole detectors, and weights that a detector starts from: Penstock's own and DeepForest's.

    model.safetensors with config.json beside it    label_dict, score_thresh, nms_thresh, num_classes
    NEON.pt                                         a plain state_dict
    .ckpt, .pl of Lightning                         state_dict, label_dict, hyper_parameters

Names may stand behind "model.". Such a detector is a RetinaNet of torchvision that saw windows of 400 px enlarged to
800 px, of rasters with 0.1 m in a pixel where it knows trees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from penstock.errors import OptionError
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_text
from penstock.tasks.checkpoints import model_file
from penstock.tasks.detection.retina import PER_PLACE, backbone_weight_name
from penstock.tasks.weights import (
    COUNTERS,
    HUB,
    IMAGENET,
    META,
    SAFETENSORS,
    KnownWeights,
    Taken,
    Weights,
    compare_classes,
    count_taken,
    described_meta,
    differences,
    downloaded,
    downloaded_beside,
    hub_place,
    model_kind,
    need_model_of,
    need_same_setting,
    pretrained_weights,
    read_safetensors,
    read_torch,
    refused,
    weights_in,
    with_own_words,
    without_prefix,
)
from penstock.wording import counted

CLASS_LOGITS = "head.classification_head.cls_logits."
# Outputs of Faster R-CNN; the first of its classes is nothing.
CLASS_SCORES = "roi_heads.box_predictor.cls_score."
CONFIG = "config.json"
TREE = "Tree"
PUBLISHED_SCALE = 2.0
PUBLISHED_GSD = 0.1
PUBLISHED_SCORE, PUBLISHED_NMS = 0.1, 0.05
ANCHORS_PER_PLACE = 9


def is_detector(weights: Mapping[str, torch.Tensor]) -> bool:
    """Whether these are weights of a whole RetinaNet."""
    return any(name.endswith(f"{CLASS_LOGITS}weight") for name in weights)


def is_two_stage(weights: Mapping[str, torch.Tensor]) -> bool:
    """Whether these are weights of a whole Faster R-CNN."""
    return any(name.endswith(f"{CLASS_SCORES}weight") for name in weights)


def read_detector(place: str | Path, file: Path | None = None) -> KnownWeights:
    """The weights in a file or in a repository of the hub; of any network, but only detectors have classes.

    `file` is what was downloaded of that repository, where that is known."""
    text = str(place)
    if not text.startswith(HUB):
        return _read_file(Path(text).expanduser(), None)
    where = hub_place(text)
    return _read_file(file or downloaded(where), downloaded_beside(where, CONFIG))


def _read_file(path: Path, config: Path | None) -> KnownWeights:
    if path.suffix == SAFETENSORS:
        weights, described = read_safetensors(path)
        found = with_own_words(weights, described_meta(described))
        said = {} if found.kind else _read_config(config or path.with_name(CONFIG))
    else:
        content = read_torch(path)
        found = with_own_words(weights_in(content, path), content.get(META) if isinstance(content, Mapping) else None)
        said = {} if found.kind else _said(content)
    return detector_of(found, found.said if found.kind else said, path, found.kind)


def detector_of(weights: Weights, said: Mapping[str, Any], path: Path, kind: str = "") -> KnownWeights:
    """Weights with the classes that a file names for them; names that do not fit the outputs are an error."""
    found = KnownWeights(weights)
    found.said, found.kind = said, kind
    if is_detector(weights) or is_two_stage(weights):
        found.classes = _classes(said, path)
        count = _output_count(weights)
        if found.classes and len(found.classes) != count:
            what = f"it names {counted(len(found.classes), 'class')}, and its network has {count}"
            raise refused(path, what, "It is damaged, or config.json belongs to another file")
    return found


def _output_count(weights: Mapping[str, torch.Tensor]) -> int:
    for name, value in weights.items():
        if name.endswith(f"{CLASS_SCORES}weight"):
            return len(value) - 1
        if name.endswith(f"{CLASS_LOGITS}weight"):
            return len(value) // ANCHORS_PER_PLACE
    return 0


def _read_config(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = load_json(read_text(path))
    except ValueError as error:
        raise refused(path, f"it is no JSON: {error}", "Copy it again, or take it away") from error
    return found if isinstance(found, Mapping) else {}


def _said(content: Any) -> Mapping[str, Any]:
    """What a checkpoint of DeepForest says beside its weights."""
    if not isinstance(content, Mapping):
        return {}
    chosen = content.get("hyper_parameters")
    config = chosen.get("config", chosen) if isinstance(chosen, Mapping) else {}
    inner = {name: content[name] for name in ("label_dict", "numeric_to_label_dict") if name in content}
    return {**(config if isinstance(config, Mapping) else {}), **inner}


def _classes(said: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    """Names in the order of the outputs."""
    named = said.get("classes")
    if isinstance(named, Sequence) and not isinstance(named, str):
        return tuple(str(name) for name in named)
    numbers = said.get("label_dict")
    if isinstance(numbers, Mapping) and numbers:
        return _in_order([(number, name) for name, number in numbers.items()], "label_dict", path)
    names = said.get("numeric_to_label_dict")
    if isinstance(names, Mapping) and names:
        return _in_order(list(names.items()), "numeric_to_label_dict", path)
    return ()


def _in_order(pairs: Sequence[tuple[Any, Any]], key: str, path: Path) -> tuple[str, ...]:
    """The names of pairs (number of an output, name) in the order of the numbers."""
    remedy = f"Correct {key}: it gives each class one whole number, 0, 1, 2 …"
    if path.suffix == SAFETENSORS:
        remedy += f", in {CONFIG} beside the weights"
    names: dict[int, str] = {}
    for number, name in pairs:
        place = _whole_number(number)
        if place is None:
            raise refused(
                path, f"{key} gives class {name!r} the number {number!r}, which is not a whole number", remedy
            )
        if place in names:
            raise refused(path, f"{key} gives {names[place]!r} and {name!r} the same number {place}", remedy)
        names[place] = str(name)
    return tuple(names[place] for place in sorted(names))


def _whole_number(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if isinstance(value, float) and number != value else number


def published_settings(weights: KnownWeights, path: str | Path) -> dict[str, Any]:
    """The settings of the task that a published detector was trained for."""
    said, count = weights.said, _output_count(weights)
    classes = weights.classes or ((TREE,) if count == 1 else tuple(f"class {number}" for number in range(count)))
    return {
        "classes": list(classes),
        "backbone": _backbone(weights, path),
        "norm": "frozen",
        "input_scale": PUBLISHED_SCALE,
        "gsd": PUBLISHED_GSD if TREE in classes else None,
        "anchor_scale": 4.0,
        "levels": 5,
        "score_threshold": float(_number(said, "score_thresh", PUBLISHED_SCORE)),
        "nms_threshold": float(_number(said, "nms_thresh", PUBLISHED_NMS)),
    }


def _number(said: Mapping[str, Any], name: str, default: float) -> float:
    value = said.get(name)
    if value is None and isinstance(said.get("retinanet"), Mapping):  # where older files have it
        value = said["retinanet"].get(name)
    return default if isinstance(value, bool) or not isinstance(value, (int, float)) else value


def _backbone(weights: Mapping[str, torch.Tensor], path: str | Path) -> str:
    names = list(weights)
    if any(name.endswith("body.layer1.0.conv3.weight") for name in names):
        return "resnet50"
    if any(name.endswith("body.layer1.2.conv2.weight") for name in names):
        return "resnet34"
    if any(name.endswith("body.layer1.1.conv2.weight") for name in names):
        return "resnet18"
    raise OptionError(
        f"{path}: its backbone is none of resnet18, resnet34 and resnet50, which published detectors have."
    )


# Names of weights as others have written them, and as torchvision and Penstock have them now.


# The heads of torchvision before 0.13 numbered activations too.
OLD_HEAD = re.compile(r"(head\.(?:classification|regression)_head\.conv)\.(\d)\.(weight|bias)")
PARTS = ("backbone.", "head.")


def modern_names(weights: Mapping[str, torch.Tensor]) -> Weights:
    """Names of heads as torchvision has them now."""

    def renamed(name: str) -> str:
        return OLD_HEAD.sub(lambda found: f"{found[1]}.{int(found[2]) // 2}.0.{found[3]}", name)

    return {renamed(name): value for name, value in weights.items()}


def names_of_ours(weights: Mapping[str, torch.Tensor]) -> Weights:
    """Weights of a published detector with our names: without what stands before them, and without counts of batches,
    which frozen normalisations do not have."""
    found: Weights = {}
    for name, value in modern_names(weights).items():
        start = min((place for place in (name.find(part) for part in PARTS) if place >= 0), default=0)
        if not name.endswith("num_batches_tracked"):
            found[name[start:]] = value
    return found


# Weights that a detector begins with: those of a plain network for its backbone, or those of a whole detector.


BODY, PYRAMID = "backbone.body.", "backbone."
OUTPUTS = (CLASS_LOGITS, "roi_heads.box_predictor.")
# Layers of plain networks that a pyramid has no use for.
UNUSED = ("fc.", "classifier.", "features.18.")


def detector_weights(weights: str, backbone: str) -> Weights:
    """The weights that a word, a path or hf:// stands for; a whole detector knows its classes too."""
    if weights == IMAGENET:
        return pretrained_weights(weights, backbone)
    found = read_detector(model_file(weights))
    need_model_of(found, "detection", weights)
    need_same_setting(found, "backbone", backbone, weights)
    return found


def load_detector(
    network: nn.Module, weights: Mapping[str, torch.Tensor], backbone: str, classes: Sequence[str]
) -> Taken:
    """Take over weights whose names and shapes fit, and say what was taken.

    Of a detector with other classes the box head stays, and of the class head all but the last layer; of that the
    outputs of classes with the same name. Of a detector of the other architecture the pyramid is taken, of a plain
    network the backbone.
    """
    own = network.state_dict()
    given, wanted = _given(own, weights, backbone, classes)
    problems = differences(own, given, wanted)
    if problems:
        raise OptionError(f"these weights are not of a {backbone} for detection: {'; '.join(problems)}.")
    network.load_state_dict(given, strict=False)
    return _taken(own, given, weights, classes)


def _taken(
    own: Mapping[str, torch.Tensor], given: Weights, weights: Mapping[str, torch.Tensor], classes: Sequence[str]
) -> Taken:
    count, total = count_taken(own, given)
    has_outputs = any(name.startswith(OUTPUTS) for name in given)
    theirs = getattr(weights, "classes", ()) if has_outputs else ()
    compared = compare_classes(theirs, classes)
    new: tuple[str, ...] = ()
    if not any(name.startswith("backbone.fpn.") for name in given):
        new = ("pyramid and heads are new (the file has a plain network)",)
    elif not has_outputs:
        new = ("the outputs are new (the file has others, or does not name its classes)",)
    elif theirs and not compared.kept:
        count -= sum(name.startswith(CLASS_LOGITS) for name in given)
        new = ("the outputs are new (none of the classes has the same name there)",)
    unused = max(0, sum(not name.endswith(COUNTERS) for name in weights) - count)
    return Taken(count, total, new, *compared, unused, model_kind(weights))


def _given(
    own: Mapping[str, torch.Tensor], weights: Mapping[str, torch.Tensor], backbone: str, classes: Sequence[str]
) -> tuple[Weights, set[str]]:
    """The weights under our names, and the names that must be among them."""
    if not (is_detector(weights) or is_two_stage(weights)):
        return _without_counts(_of_body(weights, own, backbone), own), {name for name in own if name.startswith(BODY)}
    given = _without_counts(modern_names(without_prefix(weights, own)), own)
    if is_two_stage(own) != is_two_stage(given):
        given = {name: value for name, value in given.items() if name.startswith(PYRAMID)}
        return given, {name for name in own if name.startswith(PYRAMID)}
    given = with_classes(given, own, getattr(weights, "classes", ()), classes)
    return given, {name for name in own if not name.startswith(OUTPUTS) or name in given}


def with_classes(
    given: Weights, own: Mapping[str, torch.Tensor], theirs: Sequence[str], ours: Sequence[str]
) -> Weights:
    """The last layer of the class head for our classes: outputs of the same name, ours for the others."""
    if not theirs and _fits(given, own):
        return given
    same = [(theirs.index(name), place) for place, name in enumerate(ours) if name in theirs]
    if [(place, place) for place in range(len(theirs))] == same and len(theirs) == len(ours):
        return given
    if not theirs:
        return {name: value for name, value in given.items() if not name.startswith(OUTPUTS)}
    return {
        name: _exchanged(name, own[name], value, same) if name.startswith(OUTPUTS) and name in own else value
        for name, value in given.items()
    }


def _fits(given: Weights, own: Mapping[str, torch.Tensor]) -> bool:
    return all(name in given and given[name].shape == own[name].shape for name in own if name.startswith(OUTPUTS))


def _exchanged(name: str, own: torch.Tensor, given: torch.Tensor, same: list[tuple[int, int]]) -> torch.Tensor:
    """Our outputs, with theirs for classes of the same name."""
    if name.startswith(CLASS_LOGITS):  # anchor by anchor, and for each anchor class by class
        rows = [PER_PLACE, -1, *own.shape[1:]]
        mixed, theirs = own.clone().reshape(rows), given.reshape(rows)
        for their_place, our_place in same:
            mixed[:, our_place] = theirs[:, their_place]
        return mixed.reshape(own.shape)
    # Nothing is the first class, and each class has one score or four sides.
    rows = [-1, 1 if name.startswith(CLASS_SCORES) else 4, *own.shape[1:]]
    mixed, theirs = own.clone().reshape(rows), given.reshape(rows)
    for their_place, our_place in [(-1, -1), *same]:
        mixed[our_place + 1] = theirs[their_place + 1]
    return mixed.reshape(own.shape)


def _of_body(weights: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor], backbone: str) -> Weights:
    start = "features." if backbone == "mobilenet_v2" else ""
    plain = {start + name.removeprefix(BODY): value for name, value in own.items() if name.startswith(BODY)}
    found = without_prefix(weights, plain)
    return {
        BODY + backbone_weight_name(backbone, name): value
        for name, value in found.items()
        if not name.startswith(UNUSED)
    }


def _without_counts(given: Weights, own: Mapping[str, torch.Tensor]) -> Weights:
    """Frozen normalisations have no count of batches; nothing is computed with it."""
    return {name: value for name, value in given.items() if name in own or not name.endswith("num_batches_tracked")}
