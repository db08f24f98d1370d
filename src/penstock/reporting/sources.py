"""What `info` says of data that is no pack: who reads it, how many samples, which fields from which columns."""

from __future__ import annotations

from typing import Any

from penstock.problems import known_problems
from penstock.samples import Store
from penstock.wording import counted

SHOWN_CLASSES = 12


def source_facts(path: str, source: Store) -> dict[str, Any]:
    """What is known without reading every sample."""
    return {
        "path": path,
        "format": source.kind.__name__,
        "samples": len(source),
        "fields": {field.name: field.kind for field in source.schema.fields},
        "classes": list(source.schema.classes),
        "columns": dict(source.taken),
        "left_out": dict(source.left_out),
        "problems": sum(not problem.warning for problem in known_problems(source)),
    }


def source_text(facts: dict[str, Any]) -> str:
    """The same for people."""
    classes = facts["classes"]
    shown = ", ".join(classes[:SHOWN_CLASSES]) + (", …" if len(classes) > SHOWN_CLASSES else "")
    lines = [
        f"{facts['path']}: {counted(facts['samples'], 'sample')}, read by penstock.{facts['format']}",
        f"  fields     {', '.join(_field(name, kind, facts) for name, kind in facts['fields'].items())}",
    ]
    if classes:
        lines.append(f"  classes    {len(classes):,}: {shown}")
    lines += [f"  left out   {name}: {reason}" for name, reason in facts["left_out"].items()]
    if facts["problems"]:
        lines.append(f"  problems   {facts['problems']:,}, which every verb refuses; penstock check lists them")
    return "\n".join(lines)


def _field(name: str, kind: str, facts: dict[str, Any]) -> str:
    column = facts["columns"].get(name, name)
    return f"{name} ({kind})" if column == name else f"{name} ({kind}, from {column!r})"
