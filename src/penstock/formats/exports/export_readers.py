"""Exports, read by what each format says of its own, so that nothing is guessed: order of classes, types, splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.errors import OptionError
from penstock.formats.columns.column_source import ColumnSource
from penstock.formats.exports.export_manifest import export_facts
from penstock.formats.exports.exported import Exported
from penstock.formats.registry import written_formats
from penstock.samples import Store


def open_export(folder: Path | str, **options: Any) -> Store:
    """An export as its data were; `options` go to the source that reads its files, instead of what export.yaml says."""
    folder = Path(folder)
    facts = export_facts(folder)
    written = {} if facts is None else written_formats()
    read = None if facts is None or facts.to not in written else written[facts.to].open_export
    if facts is None or read is None:
        raise OptionError(f"{folder} has no export.yaml that says how to read it.")
    source: Any = read(folder, facts, options)
    described: Any = source.source if isinstance(source, Exported) else source
    # Where each keeps what `made_from` says.
    (described._told if isinstance(described, ColumnSource) else described._given).update(facts.handed_on)
    return source  # type: ignore[no-any-return]
