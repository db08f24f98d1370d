"""`penstock demo`: makes a little world of each kind, and types what a user would to learn from it."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import click

import penstock as ps
from penstock.cli.demos.script import Script
from penstock.cli.examples import examples
from penstock.errors import require_learning

MARK = "made-by-penstock-demo.txt"
KINDS = ("images", "trees", "behaviour")


@click.command(epilog=examples("demo trees", "demo --folder demo-output"))
@click.argument("kind", type=click.Choice(KINDS), required=False)
@click.option("--folder", default="demo-output", show_default=True, help="Where the data, packs and pictures go.")
def demo(kind: str | None, folder: str) -> int:
    """Make a small dataset, pack it, examine it, train, evaluate and predict; one kind, or all of them."""
    require_learning("The demonstration")
    home = _own_folder(Path(folder))
    kinds = KINDS if kind is None else (kind,)
    for name in kinds:
        importlib.import_module(f"penstock.cli.demos.{name}").demonstrate(Script(_fresh(home / name)))
    pages = [str(page) for name in kinds for page in sorted((home / name).glob("*.html"))]
    click.echo(f"\nLook at the pages and pictures: {', '.join(pages)}")
    return 0


def _own_folder(home: Path) -> Path:
    """A folder that is new, empty, or an earlier demonstration's: files of the user are not written over."""
    mark = home / MARK
    if home.exists() and not mark.exists() and any(home.iterdir()):
        raise ps.OptionError(f"{home} has files that the demonstration did not make. Pass a new folder as --folder.")
    home.mkdir(parents=True, exist_ok=True)
    mark.write_text("Made by `penstock demo`, which writes over what is here.\n", encoding="utf-8")
    return home


def _fresh(folder: Path) -> Path:
    """Without what an earlier demonstration left: its Run would be gone on with."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
