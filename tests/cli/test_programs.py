"""What a program reads: `--json` on stdout, everything else on stderr, and no colours where none are wanted."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import penstock as ps
from commands import run_here, run_installed
from penstock.cli import HOMES, penstock
from penstock.cli.demo_data import write_shapes

# They print a path, a recipe, or a demonstration, which is read as it is.
WITHOUT_JSON = {"recipe", "report", "show", "demo"}
# Escapes for colours; bold and italics are none.
COLOUR = re.compile(r"\x1b\[(\d;)*(3[0-8]|4[0-8]|9[0-7])[;m]")
RECIPE = """\
data: {path: shapes.pack}
task: {kind: classification, size: 32}
model: {backbone: tiny}
train: {epochs: 1, batch_size: 32}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_shapes(Path("shapes"), count=12)
    return tmp_path


@pytest.mark.parametrize("name", sorted(set(HOMES) - WITHOUT_JSON))
def test_a_command_with_results_has_json(name: str) -> None:
    command = penstock.get_command(click.Context(penstock), name)
    assert command is not None
    kinds = command.commands.values() if isinstance(command, click.Group) else [command]
    assert all("as_json" in {parameter.name for parameter in kind.params} for kind in kinds)


def test_packing_and_exporting_tell_programs_what_they_wrote(home: Path) -> None:
    packed = run_here("pack", "images", "shapes", "-o", "shapes.pack", "--json")
    assert packed.json["samples"] == 12 and packed.json["classes"] == {"circle": 4, "square": 4, "triangle": 4}
    exported = run_here("export", "shapes.pack", "--to", "webdataset", "-o", "shards", "--json")
    assert (exported.json["samples"], exported.json["path"]) == (12, "shards")


@pytest.mark.slow
def test_training_says_its_way_on_stderr_and_its_result_on_stdout(home: Path) -> None:
    ps.pack(ps.Images("shapes"), "shapes.pack")
    Path("shapes.yaml").write_text(RECIPE)
    trained = run_installed("train", "shapes.yaml", "--json", folder=home, NO_COLOR="1", FORCE_COLOR="1")
    assert trained.exit_code == 0, trained.err
    assert trained.json["run"] == "runs/shapes" and "accuracy" in trained.json["scores"]
    assert trained.err and not COLOUR.search(trained.err)

    answered = run_here("predict", "runs/shapes", "shapes/circle", "--json")
    assert {row["image_path"] for row in answered.json["rows"]} == {
        str(path) for path in Path("shapes/circle").iterdir()
    }
    written = run_here("predict", "runs/shapes", "shapes/circle", "-o", "labels.csv", "--json")
    assert written.json["files"] == ["labels.csv"] and written.json["facts"]["precision"] == "32"
