"""Files of whole detectors: Penstock's own, and those that DeepForest publishes.

    model.safetensors with config.json beside it    label_dict, score_thresh, nms_thresh, num_classes
    NEON.pt                                         a plain state_dict
    .ckpt, .pl of Lightning                         state_dict, label_dict, hyper_parameters

Names may stand behind "model.". Such a detector is a RetinaNet of torchvision that saw windows of 400 px enlarged to
800 px, of rasters with 0.1 m in a pixel where it knows trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from penstock.errors import RecipeError
from penstock.storage.documents import load_json
from penstock.tasks.weight_files import (
    META,
    SAFETENSORS,
    KnownWeights,
    Weights,
    described_meta,
    read_safetensors,
    read_torch,
    refused,
    weights_in,
    with_own_words,
)
from penstock.tasks.weights import HUB, downloaded, downloaded_beside, hub_place
from penstock.wording import counted

CLASS_LOGITS = "head.classification_head.cls_logits."
# Outputs of Faster R-CNN; the first of its classes is nothing.
CLASS_SCORES = "roi_heads.box_predictor.cls_score."
CONFIG = "config.json"
TREE = "Tree"
PUBLISHED_SCALE = 2.0
PUBLISHED_GSD = 0.1
PUBLISHED_SCORE, PUBLISHED_NMS = 0.1, 0.05
PER_PLACE = 9


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
        found.classes = _classes(said)
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
            return len(value) // PER_PLACE
    return 0


def _read_config(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = load_json(path.read_text(encoding="utf-8"))
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


def _classes(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Names in the order of the outputs."""
    named = said.get("classes")
    if isinstance(named, Sequence) and not isinstance(named, str):
        return tuple(str(name) for name in named)
    numbers = said.get("label_dict")
    if isinstance(numbers, Mapping) and numbers:
        return tuple(str(name) for name, _ in sorted(numbers.items(), key=lambda item: int(item[1])))
    names = said.get("numeric_to_label_dict")
    if isinstance(names, Mapping) and names:
        return tuple(str(name) for _, name in sorted(names.items(), key=lambda item: int(item[0])))
    return ()


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
    raise RecipeError(
        f"{path}: its backbone is none of resnet18, resnet34 and resnet50, which published detectors have."
    )
