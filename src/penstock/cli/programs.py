"""How a command answers to a program: one JSON document on stdout, and nothing else there."""

from __future__ import annotations

import json
from typing import Any

import click

from penstock.runs.layout import plain


def tell_program(facts: Any) -> None:
    """Values that JSON has no word for become plain first."""
    click.echo(json.dumps(plain(facts), ensure_ascii=False))
