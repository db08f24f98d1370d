"""`penstock recipe`: a recipe to begin with."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli.examples import examples
from penstock.recipes.templates import TEMPLATES, recipe_text


class Kind(click.Choice):  # type: ignore[type-arg] # generic only in later versions of click
    """What shells complete; an unknown kind goes on to `recipe_text`, which names the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


@click.command(epilog=examples("recipe images > pets.yaml", "recipe behaviour --from mice_deepethogram > mice.yaml"))
@click.argument("kind", type=Kind(tuple(TEMPLATES)))
@click.option("--from", "project", type=click.Path(), help="DeepEthogram project whose settings for training it takes.")
def recipe(kind: str, project: str | None) -> int:
    """Write a commented recipe with every key and its default."""
    click.echo(recipe_text(kind, project), nl=False)
    return 0
