"""`info`, `show` and `verify`: small looks at a pack; the first two also at any data that `open` recognises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import penstock as ps
from penstock.cli.examples import examples
from penstock.codecs.images import encode_image
from penstock.opening import kind_of
from penstock.packing.verifying import Damage, DamagedPack
from penstock.reporting.packs import pack_facts, pack_text
from penstock.reporting.pictures import caption, draw_sample
from penstock.reporting.sources import source_facts, source_text
from penstock.samples import checked_index
from penstock.storage.whole_files import write_whole
from penstock.wording import counted

ENDINGS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}


@click.command(epilog=examples("info crowns.pack"))
@click.argument("path", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Everything, for programs.")
def info(path: str, as_json: bool) -> int:
    """Say what is in a pack (counts, classes, splits, sizes, bytes, what it was made from) or in other data."""
    pack = ps.open(path)
    if not isinstance(pack, ps.Pack):
        facts = source_facts(path, pack)
        click.echo(json.dumps(facts, ensure_ascii=False) if as_json else source_text(facts))
        return 0
    with _damage_blamed(pack):
        facts = pack_facts(pack)
        text = json.dumps(facts, ensure_ascii=False) if as_json else pack_text(facts)
    click.echo(text)
    return 0


@contextmanager
def _damage_blamed(source: Any) -> Iterator[None]:
    """When a look at a pack fails in any way, say so if damage of the pack is the reason."""
    try:
        yield
    except (ps.PackError, ps.OptionError):
        raise
    except Exception:
        if isinstance(source, ps.Pack):
            source.verify()
        raise


@click.command(epilog=examples("show crowns.pack 12 -o tile.png"))
@click.argument("path", type=click.Path())
@click.argument("number", type=int)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="sample.png",
    show_default=True,
    help="The picture to write: .png, .jpg or .webp.",
)
def show(path: str, number: int, output: str) -> int:
    """Draw one sample with its boxes or labels; the first has the number 0."""
    codec = _codec(output)
    pack = ps.open(path, verify=kind_of(path) in ("Pack", "MDS"))
    try:
        index = checked_index(number, len(pack))
    except IndexError as error:
        raise ps.OptionError(str(error)) from None
    with _damage_blamed(pack):
        sample = pack[index]
        picture, words = draw_sample(sample, pack.schema), caption(sample, pack.schema)
    write_whole(output, encode_image(picture, codec))
    click.echo(f"{output}: {words}")
    return 0


def _codec(output: str) -> str:
    """The codec that the ending of a picture's name asks for."""
    ending = Path(output).suffix.lower()
    if ending not in ENDINGS:
        raise ps.OptionError(f"--output {output}: its ending must be one of {', '.join(ENDINGS)}.")
    return ENDINGS[ending]


@click.command(epilog=examples("verify crowns.pack"))
@click.argument("path", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Every damage, for programs.")
def verify(path: str, as_json: bool) -> int:
    """Check every checksum of a pack; exit code 4 when something is damaged."""
    pack = ps.Pack(path)
    damages: tuple[Damage, ...] = ()
    try:
        pack.verify()
    except DamagedPack as error:
        if not as_json:
            raise
        damages = error.damages
    if as_json:
        found = {"ok": not damages, "samples": len(pack), "damages": [vars(damage) for damage in damages]}
        click.echo(json.dumps(found, ensure_ascii=False))
        return ps.PackError.exit_code if damages else 0
    there = f"{counted(len(pack), 'sample')} in {counted(len(pack.manifest.shards), 'shard')}"
    click.echo(f"{path}: {there}, every checksum matches")
    return 0
