"""Words about exports."""

from __future__ import annotations

from penstock.errors import SHOWN_PROBLEMS
from penstock.formats.exporting.manifest import Export
from penstock.reporting.packs import readable_bytes
from penstock.storage.writing.skipped import skipped_count
from penstock.wording import counted


def export_text(export: Export) -> str:
    """What was written, and what was not."""
    stored = f"{readable_bytes(export.bytes)} in {counted(export.files, 'file')}"
    lines = [f"{export.path}: {counted(export.samples, 'sample')} as {export.to}, {stored}"]
    if export.splits:
        lines.append("splits: " + ", ".join(f"{name} {count:,}" for name, count in export.splits.items()))
    if export.videos:
        lines.append(f"videos: {len(export.videos):,}{_rates(export)}")
    if export.left_out:
        lines.append(f"left out, as {export.to} has no place for it: {', '.join(export.left_out)}")
    if export.skipped:
        lines.append(f"skipped {counted(skipped_count(export.skipped), 'sample')}:")
        lines += [f"  {one['sample']}: {one['reason']}" for one in export.skipped[:SHOWN_PROBLEMS]]
        if len(export.skipped) > SHOWN_PROBLEMS:
            lines.append(f"  … and {skipped_count(export.skipped[SHOWN_PROBLEMS:]):,} more, see export.yaml")
    return "\n".join(lines)


def _rates(export: Export) -> str:
    known = sorted({video["fps"] for video in export.videos if video["fps"] is not None})
    if not known:
        return "; their frames have no clock, so the frame rate is unknown"
    return f", {known[0]:g} frames a second" if len(known) == 1 else f", {known[0]:g} to {known[-1]:g} frames a second"
