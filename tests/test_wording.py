"""Numbers with their noun."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.wording import counted


@pytest.mark.parametrize(
    ("count", "thing", "words"),
    [
        (1, "sample", "1 sample"),
        (0, "sample", "0 samples"),
        (3680, "sample", "3,680 samples"),
        (1, "class", "1 class"),
        (2, "class", "2 classes"),
        (2, "box", "2 boxes"),
        (2, "batch", "2 batches"),
        (1, "image without boxes", "1 image without boxes"),
        (2, "image without boxes", "2 images without boxes"),
        (2, "label row", "2 label rows"),
        (None, "batch", "batches without end"),
    ],
)
def test_a_noun_follows_its_number(count: int | None, thing: str, words: str) -> None:
    assert counted(count, thing) == words


@pytest.mark.parametrize(
    ("count", "thing", "verb", "words"),
    [
        (1, "sample", "was", "1 sample was"),
        (2, "sample", "was", "2 samples were"),
        (0, "box", "is", "0 boxes are"),
        (1, "image", "has", "1 image has"),
    ],
)
def test_a_verb_agrees_with_its_number(count: int, thing: str, verb: str, words: str) -> None:
    assert counted(count, thing, verb) == words


SOURCES = Path(penstock.__file__).parent
THINGS = (
    *("samples", "boxes", "images", "tiles", "classes", "batches", "frames", "videos", "rows", "files", "features"),
    *(
        "windows",
        "shards",
        "workers",
        "epochs",
        "points",
        "problems",
        "runs",
        "behaviours",
        "bouts",
        "events",
        "columns",
    ),
    *("pixels", "steps", "layers", "crops", "rasters", "splits", "groups", "records", "folders", "paths"),
    *("threads", "cores", "bands", "values", "devices"),
)
# A noun right after a value; samples/s is a unit.
BARE = re.compile(rf" (?:{'|'.join(THINGS)})\b(?!/)")
# Values that are no counts, or never 1.
KNOWN = {
    "formats/tfrecord/examples.py: {array.dtype} values",
    "flow/explaining/explanation.py: {metrics.ready / metrics.batches} batches",
    "flow/explaining/explanation.py: {ENOUGH_BATCHES} batches",
    "reporting/exports.py: {known[0]} frames",
    "reporting/exports.py: {known[-1]} frames",
    "storage/documents.py: {MOST_VALUES} values",
    "training/telling.py: {COMPARED_SAMPLES} samples",
}


def bare_counts(file: Path, folder: Path = SOURCES) -> Iterator[str]:
    """The places of f-strings where a noun in the plural stands after a value, such as {n} samples."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            for value, text in itertools.pairwise(node.values):
                if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                    noun = BARE.match(str(text.value))
                    if noun:
                        yield f"{file.relative_to(folder).as_posix()}: {{{ast.unparse(value.value)}}}{noun[0]}"


def test_a_bare_count_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("f'{n:,} samples of {len(b)} boxes at {rate} samples/s'")
    assert list(bare_counts(tmp_path / "a.py", tmp_path)) == ["a.py: {n} samples", "a.py: {len(b)} boxes"]


def test_every_count_in_a_message_has_its_noun_by_wording() -> None:
    found = {place for file in sorted(SOURCES.rglob("*.py")) for place in bare_counts(file)}
    assert found - KNOWN == set(), "write counted(n, 'sample') in place of {n} samples"
    assert KNOWN - found == set(), "no longer there"
