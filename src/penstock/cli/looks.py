"""`info`, `show` and `verify`: small looks at a pack."""

from __future__ import annotations

import json
from pathlib import Path

import click

import penstock as ps
from penstock.codecs.images import encode_image
from penstock.errors import one_of
from penstock.packing.verifying import DamagedPack
from penstock.reporting.drawing import caption, draw_sample
from penstock.reporting.packs import pack_facts, pack_text
from penstock.samples import checked_index


@click.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Everything, for programs.")
def info(path: str, as_json: bool) -> int:
    """Say what is in a pack: counts, classes, splits, sizes, bytes, and what it was made from."""
    facts = pack_facts(ps.open(path))
    click.echo(json.dumps(facts, ensure_ascii=False) if as_json else pack_text(facts))
    return 0


@click.command()
@click.argument("path")
@click.argument("number", type=int)
@click.option(
    "-o", "--output", default="sample.png", show_default=True, help="The picture to write: .png, .jpg or .webp."
)
def show(path: str, number: int, output: str) -> int:
    """Draw one sample with its boxes or labels."""
    pack = ps.open(path)
    try:
        sample = pack[checked_index(number, len(pack))]
    except IndexError as error:
        raise ps.RecipeError(str(error)) from None
    ending = Path(output).suffix.lower().lstrip(".").replace("jpg", "jpeg")
    codec = one_of("the ending of --output", ending, ("png", "jpeg", "webp"))
    Path(output).write_bytes(encode_image(draw_sample(sample, pack.schema), codec))
    click.echo(f"{output}: {caption(sample, pack.schema)}")
    return 0


@click.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Every damage, for programs.")
def verify(path: str, as_json: bool) -> int:
    """Check every checksum of a pack; exit code 4 when something is damaged."""
    pack = ps.open(path)
    try:
        pack.verify()
    except DamagedPack as error:
        if not as_json:
            raise
        click.echo(json.dumps({"ok": False, "damages": [vars(damage) for damage in error.damages]}))
        return error.exit_code
    message = f"{path}: {len(pack):,} samples in {len(pack.manifest.shards)} shards, every checksum matches"
    click.echo(json.dumps({"ok": True, "samples": len(pack), "damages": []}) if as_json else message)
    return 0
