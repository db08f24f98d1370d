"""docs/performance.md from what the benchmarks wrote: nothing on that page is typed by hand.

python -m benchmarks.rendering                     of benchmarks/results/*.json, with pictures in docs/performance
python -m benchmarks.rendering --results FOLDER
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.charts import chart
from benchmarks.tables import Row, Value, read_row, shown

ROOT = Path(__file__).parents[1]
RESULTS, PAGE, README = ROOT / "benchmarks" / "results", ROOT / "docs" / "performance.md", ROOT / "README.md"
# Between these lines of the README stands a short table; what is there is replaced.
BEGIN, END = "<!-- speed: written by python -m benchmarks.rendering -->\n", "<!-- speed: end -->\n"
# The order of the page, and what each table is about; others follow.
TITLES = {
    "feed": "Feeding a model",
    "kernel": "Decoding",
    "packing": "Packing and reading packs",
    "formats": "Other formats beside the pack",
    "frameworks": "What frameworks get",
    "export": "Exporting",
    "training": "Training",
    "boxes": "Boxes",
    "detection": "Detection",
    "video": "Videos and ethograms",
    "doctor": "The doctor",
}
HEAD = """\
# Performance

Written by `make bench` from the files in `benchmarks/results`. [How it is measured](benchmarks.md): everybody on the
same machine, in turns, and ratios of medians. A dashed bar is a loop without any pipeline around it: what nothing can
surpass. Where a contestant is absent, the reason stands there.
"""
NOTHING = "Nothing was measured yet: run `make bench`.\n"


def read_tables(folder: Path) -> list[dict[str, Any]]:
    """All documents of a folder, in the order of the page."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    places = {name: place for place, name in enumerate(TITLES)}
    return sorted(found, key=lambda document: (places.get(document["table"], len(places)), document["table"]))


def page(documents: list[dict[str, Any]]) -> str:
    """The page in Markdown; pictures are those of `pictures`."""
    return "\n".join([HEAD, *(_section(document) for document in documents)] if documents else [HEAD, NOTHING])


def pictures(documents: list[dict[str, Any]]) -> dict[str, str]:
    """The pictures of all rows with several contestants, by the names of their files."""
    return {
        _picture_name(document, number): chart(row)
        for document in documents
        for number, row in _rows(document)
        if _is_drawn(row)
    }


def _rows(document: dict[str, Any]) -> Iterator[tuple[int, Row]]:
    return enumerate(read_row(values) for values in document["rows"])


def _is_drawn(row: Row) -> bool:
    return len(row.present) > 1


def _picture_name(document: dict[str, Any], number: int) -> str:
    return f"{document['table']}-{number}.svg"


def _section(document: dict[str, Any]) -> str:
    lines = [f"## {TITLES.get(document['table'], document['table'])}", "", f"`{document['command']}`", ""]
    lines += [_machine_words(document), ""]
    single = []
    for number, row in _rows(document):
        if row.values and len(row.values) > 1:
            lines += _compared(document, number, row)
        else:
            single.append(row)
    if single:
        lines += ["| | figure | must | |", "|---|---|---|---|", *(line for row in single for line in _single(row)), ""]
    return "\n".join(lines)


def _machine_words(document: dict[str, Any]) -> str:
    machine, versions = document["machine"], document["versions"]
    cpu = ", ".join(machine["cpu"]) or "unknown processor"
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items())
    cores = len(machine["cores"])
    return f"{cpu}, {cores} cores, Python {machine['python']}, load {machine['load']:.1f} before it began; {libraries}."


def _compared(document: dict[str, Any], number: int, row: Row) -> list[str]:
    """Everybody beside each other, with the ratios to the best peer and to the limit."""
    lines = [f"### {row.title}", ""]
    if _is_drawn(row):
        lines += [f"![{row.title}](performance/{_picture_name(document, number)})", ""]
    lines += [f"| | {row.unit} | × best peer | × limit | versions, notes |", "|---|---|---|---|---|"]
    lines += [_contestant(row, value) for value in row.present]
    lines += [f"| {value.name} | absent | | | {value.absent} |" for value in row.values if value.absent]
    if row.bars:
        lines += ["", "| asked | found | |", "|---|---|---|"]
        lines += [
            f"| {bar.must} {bar.what.rpartition(' beside ')[2]} | {bar.figure} | {_mark(bar.reached)} |"
            for bar in row.bars
        ]
    return [*lines, ""]


def _contestant(row: Row, value: Value) -> str:
    name = f"**{value.name}**" if value.role == "penstock" else value.name
    versions = (f"{library} {version}" for library, version in value.versions.items())
    words = ", ".join([*versions, *filter(None, [value.note])])
    ratios = " | ".join(_ratio(row, value, _counterpart(row, value, role)) for role in ("peer", "limit"))
    return f"| {name} | {shown(value.amount)} | {ratios} | {words} |"


def _counterpart(row: Row, value: Value, role: str) -> Value | None:
    """The best of a role; where names say what differs ("Penstock, raw"), the best of the same kind.

    Peers stand beside the best of all of them: the words behind a comma are part of their names.
    """
    others = [other for other in row.present if other.role == role]
    if value.role == role == "peer":
        return next(iter(others), None)
    _, comma, kind = value.name.partition(", ")
    alike = [other for other in others if comma and other.name.endswith(f", {kind}")]
    return next(iter(alike or others), None)


def _ratio(row: Row, value: Value, other: Value | None) -> str:
    return f"{row.times_as_fast(value, other):.2f}" if other is not None else ""


def _single(row: Row) -> list[str]:
    if not row.bars:
        return [f"| {row.title} | {value.absent or shown(value.amount)} | | |" for value in row.values]
    return [f"| {bar.what} | {bar.figure} | {bar.must} | {_mark(bar.reached)} |" for bar in row.bars]


def _mark(reached: bool) -> str:
    return "reached" if reached else "missed"


def with_speed(readme: str, documents: list[dict[str, Any]]) -> str:
    """The README with the rows in which Penstock stands beside peers, each with the best of them."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = [row for document in documents for _, row in _rows(document) if row.best_peer and _ours(row)]
    lines = [_speed_line(row) for row in rows]
    table = ["", "| | Penstock | best peer | |", "|---|---|---|---|", *lines, ""] if lines else []
    return before + BEGIN + "".join(f"{line}\n" for line in table) + END + after


def _ours(row: Row) -> Value | None:
    """Ours as it was entered first: of several, those behind it are made of other data than the peers have."""
    return next((value for value in row.values if value.role == "penstock" and not value.absent), None)


def _speed_line(row: Row) -> str:
    ours, peer = _ours(row), row.best_peer
    assert ours is not None and peer is not None
    ratio = row.times_as_fast(ours, peer)
    theirs = f"{shown(peer.amount)} ({peer.name})"
    times = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"
    return f"| {row.title} | {shown(ours.amount)} {row.unit} | {theirs} | **{times} ×** |"


def write(results: Path, target: Path) -> None:
    """Write the page and its pictures; pictures of rows that are gone go too."""
    documents = read_tables(results)
    folder = target.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = pictures(documents)
    for path in folder.glob("*.svg"):
        if path.name not in drawn:
            path.unlink()
    for name, text in drawn.items():
        (folder / name).write_text(text, encoding="utf-8")
    target.write_text(page(documents), encoding="utf-8")


def publish(results: Path, target: Path) -> None:
    """Write the page; where it is that of the documentation, also the short table of the README."""
    write(results, target)
    print(target)
    if target.resolve() == PAGE:
        text = with_speed(README.read_text(encoding="utf-8"), read_tables(results))
        README.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    publish(options.results, options.page)


if __name__ == "__main__":
    main()
