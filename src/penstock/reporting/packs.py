"""What `info` says of a pack: counts, classes, splits, groups, sizes, bytes, and what it was made from."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.packing.reader import Pack

SHOWN_SKIPPED = 5


def pack_facts(pack: Pack) -> dict[str, Any]:
    """Everything worth knowing about a pack, for people and for programs."""
    manifest = pack.manifest
    shard_bytes = sum(shard.bytes for shard in manifest.shards)
    return {
        "path": pack.path.as_posix(),
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
        "skipped": list(manifest.skipped),
        "made_from": manifest.made_from,
        "options": manifest.options,
        "notes": {name: value for name, value in manifest.notes.items() if name != "split"},
    }


def _class_counts(pack: Pack) -> dict[str, int]:
    """How often each class occurs: images, boxes or labelled frames."""
    counts = dict.fromkeys(pack.classes, 0)
    numbers = _class_numbers(pack)
    if numbers is not None and len(pack.classes):
        found = np.bincount(numbers[numbers >= 0], minlength=len(pack.classes))
        counts = {name: int(found[number]) for number, name in enumerate(pack.classes)}
    return counts


def _class_numbers(pack: Pack) -> Any:
    if "label" in pack.schema:
        return pack.columns["label"]
    if "box_label" in pack.schema:
        return pack.table(["box_label"]).column(0).combine_chunks().values.to_numpy()
    if "labels" in pack.schema:
        values = pack.table(["labels"]).column(0).combine_chunks().values.to_numpy()
        per_frame = values.reshape(len(pack), -1)
        return np.repeat(np.arange(per_frame.shape[1]), (per_frame == 1).sum(axis=0))
    return None


def _negatives(pack: Pack) -> dict[str, Any] | None:
    """Images without boxes, for packs with boxes."""
    if "boxes" not in pack.schema:
        return None
    lengths = pack.table(["boxes"]).column(0)
    empty = sum(int((np.diff(chunk.offsets.to_numpy()) == 0).sum()) for chunk in lengths.chunks)
    return {"samples": empty, "share": round(empty / max(1, len(pack)), 4)}


def _sizes(pack: Pack) -> dict[str, Any]:
    if pack.schema.image is None:
        return {}
    width, height = pack.columns["width"], pack.columns["height"]
    return {
        "smallest": f"{width.min()}x{height.min()}",
        "largest": f"{width.max()}x{height.max()}",
        "same": bool((width == width[0]).all() and (height == height[0]).all()),
    }


def pack_text(facts: dict[str, Any]) -> str:
    """The facts as lines for a terminal."""
    lines = [f"{facts['path']}: {facts['samples']:,} samples, {readable_bytes(facts['bytes'])} in {_shards(facts)}"]
    lines.append(_line("made from", " ".join(f"{name}={value}" for name, value in facts["made_from"].items())))
    lines.append(_line("fields", ", ".join(f"{name} ({kind})" for name, kind in facts["fields"].items())))
    if facts["sizes"]:
        lines.append(_line("images", _size_text(facts)))
    if facts["classes"]:
        lines.append(_line("classes", ", ".join(f"{name} {count:,}" for name, count in facts["classes"].items())))
    if facts["negatives"] is not None:
        empty = facts["negatives"]
        lines.append(_line("negatives", f"{empty['samples']:,} samples without boxes ({empty['share']:.1%})"))
    lines.append(_line("splits", ", ".join(f"{name} {count:,}" for name, count in facts["splits"].items())))
    lines.append(_line("", facts["split_how"]))
    lines.append(_line("groups", f"{facts['groups']:,}"))
    if facts["sizes"]:
        lines.append(_line("mean", _statistics_text(facts["statistics"])))
    lines += [_line(name.replace("_", " "), str(value)) for name, value in facts["notes"].items()]
    return "\n".join(lines + _skipped_lines(facts["skipped"]))


def _line(name: str, text: str) -> str:
    return f"  {name:<10} {text}"


def _shards(facts: dict[str, Any]) -> str:
    return f"{facts['shards']} shard" + ("" if facts["shards"] == 1 else "s")


def _size_text(facts: dict[str, Any]) -> str:
    sizes = facts["sizes"]
    size = sizes["smallest"] if sizes["same"] else f"{sizes['smallest']} to {sizes['largest']}"
    codec = "bytes as they were" if facts["codec"] == "kept" else facts["codec"]
    return f"{size} px, {codec}"


def _statistics_text(statistics: dict[str, Any]) -> str:
    mean = " ".join(f"{value:.1f}" for value in statistics["mean"])
    std = " ".join(f"{value:.1f}" for value in statistics["std"])
    return f"{mean}, std {std}, from {statistics['of']} ({statistics['images']:,})"


def _skipped_lines(skipped: list[dict[str, str]]) -> list[str]:
    if not skipped:
        return []
    lines = [_line("skipped", f"{len(skipped):,} samples:")]
    lines += [_line("", f"{item['sample']}: {item['reason']}") for item in skipped[:SHOWN_SKIPPED]]
    if len(skipped) > SHOWN_SKIPPED:
        lines.append(_line("", f"… and {len(skipped) - SHOWN_SKIPPED:,} more; --json lists all"))
    return lines


def readable_bytes(count: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
