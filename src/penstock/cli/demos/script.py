"""Commands that are printed as a user would type them, and run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from penstock.errors import PenstockError


class Script:
    """Types commands; paths below the current folder are typed as seen from there."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def say(self, text: str) -> None:
        click.echo(f"\n# {text}")

    def write(self, name: str, text: str) -> Path:
        """Write a file of the demonstration and show what is in it."""
        path = self.home / name
        path.write_text(text, encoding="utf-8")
        click.echo(f"\n# {shown(path)}:")
        click.echo("\n".join(f"    {line}" for line in text.splitlines()))
        return path

    def type(self, *words: str | Path, may_find: bool = False) -> None:
        """Print a command and run it; with `may_find` an exit code of 1, which says what was found, is fine."""
        from penstock.cli import penstock

        arguments = [shown(word) if isinstance(word, Path) else word for word in words]
        click.echo(f"\n$ {shlex.join(['penstock', *arguments])}")
        found = penstock.main(args=arguments, prog_name="penstock", standalone_mode=False)
        code = found if isinstance(found, int) else 0
        if code and not (may_find and code == 1):
            raise PenstockError(f"the demonstration stops: penstock {arguments[0]} ended with exit code {code}.")


def shown(path: Path) -> str:
    """A path as seen from here, where it is below."""
    here = Path.cwd()
    return os.fspath(path.relative_to(here) if path.is_relative_to(here) else path)
