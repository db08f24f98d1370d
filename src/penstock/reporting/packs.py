"""What `info` says of a pack: counts, classes, splits, groups, sizes, bytes, and what it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import PackError
from penstock.packing.reader import Pack
from penstock.storage.writing.skipped import skipped_count
from penstock.wording import counted

SHOWN_SKIPPED = 5


def pack_facts(pack: Pack) -> dict[str, Any]:
    """Everything worth knowing about a pack, for people and for programs."""
    manifest = pack.manifest
    shard_bytes = sum(shard.bytes for shard in manifest.shards)
    return {
        "path": _as_people_say(pack.path),
        "samples": len(pack),
        "fields": {field.name: field.kind for field in pack.schema.fields},
        "classes": _class_counts(pack),
        "splits": pack.splits,
        "split_how": manifest.notes.get("split", ""),
        "groups": manifest.groups,
        "sizes": _sizes(pack),
        "codec": manifest.codec,
        "shards": len(manifest.shards),
        "bytes": shard_bytes + manifest.index.bytes,
        "statistics": pack.statistics,
        "negatives": _negatives(pack),
        "unlabelled": _unlabelled(pack),
        "skipped": list(manifest.skipped),
        "made_from": manifest.made_from,
        "options": manifest.options,
        "notes": {name: value for name, value in manifest.notes.items() if name != "split"},
    }


def _as_people_say(path: Path) -> str:
    """A path below the working directory without the way there."""
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def _class_counts(pack: Pack) -> dict[str, int]:
    """How often each class occurs: images, boxes or labelled frames."""
    counts = dict.fromkeys(pack.classes, 0)
    numbers = _class_numbers(pack)
    if numbers is not None and len(pack.classes):
        if len(numbers) and numbers.max() >= len(pack.classes):
            raise PackError(f"{pack.path} is damaged: class {numbers.max()} is none of its {len(pack.classes)}.")
        found = np.bincount(numbers[numbers >= 0], minlength=len(pack.classes))
        counts = {name: int(found[number]) for number, name in enumerate(pack.classes)}
    return counts


def _class_numbers(pack: Pack) -> Any:
    if pack.schema.label is not None:
        return pack.index_column("label")
    if "box_label" in pack.schema:
        return pack.table(["box_label"]).column(0).combine_chunks().values.to_numpy()
    if "labels" in pack.schema:
        per_frame = _frame_labels(pack)
        return np.repeat(np.arange(per_frame.shape[1]), (per_frame == 1).sum(axis=0))
    return None


def _negatives(pack: Pack) -> dict[str, Any] | None:
    """Images without boxes, for packs with boxes."""
    if "boxes" not in pack.schema:
        return None
    lengths = pack.table(["boxes"]).column(0)
    empty = sum(int((np.diff(chunk.offsets.to_numpy()) == 0).sum()) for chunk in lengths.chunks)
    return {"samples": empty, "share": round(empty / max(1, len(pack)), 4)}


def _unlabelled(pack: Pack) -> int | None:
    """Samples without any label, for packs that have labels."""
    if pack.schema.label is not None:
        return int((pack.index_column("label") < 0).sum())
    if "labels" in pack.schema and pack.classes:
        return int((_frame_labels(pack) < 0).all(axis=1).sum())
    return None


def _frame_labels(pack: Pack) -> Any:
    """The label vectors of all frames, as one array."""
    return pack.table(["labels"]).column(0).combine_chunks().values.to_numpy().reshape(len(pack), -1)


def _sizes(pack: Pack) -> dict[str, Any]:
    """The smallest and largest width and height, and whether all images have the same size."""
    if pack.schema.image is None:
        return {}
    width, height = pack.columns["width"], pack.columns["height"]
    found = {"width": [int(width.min()), int(width.max())], "height": [int(height.min()), int(height.max())]}
    return {**found, "same": all(low == high for low, high in found.values())}


def pack_text(facts: dict[str, Any]) -> str:
    """The facts as lines for a terminal."""
    lines = [f"{facts['path']}: {counted(facts['samples'], 'sample')}, {_stored(facts)}"]
    lines.append(_line("made from", _made_from_text(facts["made_from"])))
    lines.append(_line("fields", ", ".join(f"{name} ({kind})" for name, kind in facts["fields"].items())))
    if facts["sizes"]:
        lines.append(_line("images", _size_text(facts)))
    if facts["classes"]:
        lines.append(_line("classes", ", ".join(f"{name} {count:,}" for name, count in facts["classes"].items())))
    if facts["negatives"] is not None:
        empty = facts["negatives"]
        lines.append(_line("negatives", f"{counted(empty['samples'], 'sample')} without boxes ({empty['share']:.1%})"))
    if facts["unlabelled"]:
        share = facts["unlabelled"] / facts["samples"]
        lines.append(_line("unlabelled", f"{counted(facts['unlabelled'], 'sample')} without a label ({share:.1%})"))
    lines.append(_line("splits", ", ".join(f"{name} {count:,}" for name, count in facts["splits"].items())))
    lines.append(_line("", facts["split_how"]))
    lines.append(_line("groups", f"{facts['groups']:,}"))
    if facts["sizes"]:
        lines.append(_line("mean", _statistics_text(facts["statistics"])))
    lines += [_line("note", f"{name.replace('_', ' ')}: {value}") for name, value in facts["notes"].items()]
    return "\n".join(lines + _skipped_lines(facts["skipped"]))


def _line(name: str, text: str) -> str:
    return f"  {name:<10} {text}"


def _stored(facts: dict[str, Any]) -> str:
    return f"{readable_bytes(facts['bytes'])} in {counted(facts['shards'], 'shard')}"


def _made_from_text(made_from: dict[str, Any]) -> str:
    return " ".join(f"{name}={_listed(value)}" for name, value in made_from.items())


def _listed(value: Any) -> str:
    return ",".join(str(item) for item in value) if isinstance(value, list) else str(value)


def _size_text(facts: dict[str, Any]) -> str:
    (narrowest, widest), (lowest, highest) = facts["sizes"]["width"], facts["sizes"]["height"]
    same = f"{widest}x{highest} px"
    size = same if facts["sizes"]["same"] else f"{narrowest} to {widest} px wide, {lowest} to {highest} px high"
    return f"{size}, {_codec_text(facts)}"


def _codec_text(facts: dict[str, Any]) -> str:
    """How the pixels are stored; images that were resized are not the bytes that they were."""
    options = facts["options"]
    if facts["codec"] != "kept":
        return str(facts["codec"])
    if any(options.get(name) is not None for name in ("longest_side", "shortest_side", "size")):
        return f"encoded again at quality {options['quality']} where the size changed, else bytes as they were"
    return "bytes as they were"


def _statistics_text(statistics: dict[str, Any]) -> str:
    mean = " ".join(f"{value:.1f}" for value in statistics["mean"])
    std = " ".join(f"{value:.1f}" for value in statistics["std"])
    return f"{mean}, std {std}, from {statistics['of']} ({statistics['images']:,})"


def _skipped_lines(skipped: list[dict[str, Any]]) -> list[str]:
    if not skipped:
        return []
    lines = [_line("skipped", f"{counted(skipped_count(skipped), 'sample')}:")]
    lines += [_line("", f"{item['sample']}: {item['reason']}") for item in skipped[:SHOWN_SKIPPED]]
    if len(skipped) > SHOWN_SKIPPED:
        lines.append(_line("", f"… and {skipped_count(skipped[SHOWN_SKIPPED:]):,} more; --json lists all"))
    return lines


def readable_bytes(count: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
