"""`penstock recipe`: a recipe to begin with."""

from __future__ import annotations

import click

from penstock.cli.examples import examples
from penstock.recipes.templates import recipe_text


@click.command(epilog=examples("recipe images > pets.yaml"))
@click.argument("kind")
def recipe(kind: str) -> int:
    """Write a commented recipe with every key and its default. KIND: images, trees or behaviour."""
    click.echo(recipe_text(kind), nl=False)
    return 0
