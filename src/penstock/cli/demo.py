"""`penstock demo`: makes a small dataset of each kind, packs it, verifies it, shows it, and learns from one."""

from __future__ import annotations

from pathlib import Path

import click

import penstock as ps
from penstock.cli import demo_data
from penstock.cli.examples import examples
from penstock.codecs.images import encode_image
from penstock.errors import require_learning
from penstock.reporting.drawing import draw_sample
from penstock.reporting.packs import pack_facts, pack_text

MARK = "made-by-penstock-demo.txt"


@click.command(epilog=examples("demo --folder demo-output"))
@click.option("--folder", default="demo-output", show_default=True, help="Where the data, packs and pictures go.")
def demo(folder: str) -> int:
    """Pack a synthetic dataset of each kind, verify it, draw a sample, and train on one of them."""
    home = _own_folder(Path(folder))
    raw = home / "raw"
    click.echo(f"1. images: class folders of shapes, in {raw / 'shapes'}")
    shapes = demo_data.write_shapes(raw / "shapes")
    _pack_and_show(ps.Images(shapes), home / "shapes.pack")
    click.echo(f"\n2. rasters: three flights over trees and a table of boxes, in {raw / 'flights'}")
    flights, crowns = demo_data.write_flights(raw / "flights")
    _pack_and_show(ps.Rasters(flights, boxes=crowns), home / "crowns.pack", number=2)
    click.echo(f"\n3. videos: three mice and a table of behaviours each, in {raw / 'mice'}")
    videos, labels = demo_data.write_mice(raw / "mice")
    _pack_and_show(ps.Videos(videos, labels=f"{labels}/{{stem}}.csv"), home / "mice.pack", number=40)
    _learn(home)
    click.echo(f"\nLook at the pictures in {home}, and try: penstock info {home / 'crowns.pack'}")
    return 0


def _learn(home: Path) -> None:
    """Training, where its libraries are installed; packing and looking need none of them."""
    try:
        require_learning("4. training")
    except ps.MissingExtra as missing:
        click.echo(f"\n{missing}")
        return
    from penstock.cli.demo_learning import learn_shapes

    click.echo(f"\n4. training: which shape is it? by {home / 'shapes.yaml'}")
    learn_shapes(home)


def _own_folder(home: Path) -> Path:
    """A folder that is new, empty, or an earlier demonstration's: files of the user are not written over."""
    mark = home / MARK
    if home.exists() and not mark.exists() and any(home.iterdir()):
        raise ps.RecipeError(f"{home} has files that the demonstration did not make. Pass a new folder as --folder.")
    home.mkdir(parents=True, exist_ok=True)
    mark.write_text("Made by `penstock demo`, which writes over what is here.\n", encoding="utf-8")
    return home


def _pack_and_show(source: ps.Source, path: Path, number: int = 0) -> None:
    packed = ps.pack(source, path, overwrite=True)
    packed.verify()
    picture = path.with_suffix(".png")
    picture.write_bytes(encode_image(draw_sample(packed[number], packed.schema), "png"))
    click.echo(pack_text(pack_facts(packed)))
    click.echo(f"  verified   every checksum matches; sample {number} is drawn in {picture}")
