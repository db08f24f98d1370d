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
    for context in commands(_context(penstock, "penstock", None)):
        sections += [f"## {context.command_path}", "", "```", context.get_help(), "```", ""]
    return "\n".join(sections)


def commands(context: click.Context) -> Iterator[click.Context]:
    """Every command that does something, in the context of its groups, from which it has its settings."""
    group = context.command
    if not isinstance(group, click.Group):
        yield context
        return
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if command is not None:
            yield from commands(_context(command, word, context))


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    settings = command.context_settings | {"terminal_width": WIDTH, "max_content_width": WIDTH}
    return click.Context(command, info_name=name, parent=parent, **settings)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
