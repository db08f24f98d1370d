"""Exports of Penstock, which say what they are and how each is read again."""

from __future__ import annotations

from pathlib import Path

from penstock.formats.exports.export_manifest import export_facts
from penstock.formats.format import Format


def is_export(folder: Path) -> bool:
    """Whether there is an export.yaml, and of a format that needs it to be read again."""
    from penstock.formats.registry import written_formats

    facts = export_facts(folder)
    if facts is None:
        return False
    written = written_formats().get(facts.to)
    return written is None or written.open_export is not None


EXPORT = Format("export", "penstock.formats.exports.export_readers:open_export", called="an export", marks=is_export)
