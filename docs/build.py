"""Writes docs/commands.md from the commands themselves, so that it cannot lag behind. Run by `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from penstock.cli import penstock

PAGE = Path(__file__).with_name("commands.md")
WIDTH = 110


def page() -> str:
    """The help of every command, one after another."""
    sections = ["# All commands", "", "Written by `make docs` from the commands' own help.", ""]
    for name, command in commands(penstock, "penstock"):
        with click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH) as context:
            sections += [f"## {name}", "", "```", command.get_help(context), "```", ""]
    return "\n".join(sections)


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its full name."""
    with click.Context(group, info_name=name) as context:
        for word in group.list_commands(context):
            command = group.get_command(context, word)
            if isinstance(command, click.Group):
                yield from commands(command, f"{name} {word}")
            elif command is not None:
                yield f"{name} {word}", command


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
