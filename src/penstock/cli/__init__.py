"""The command line: each verb with the same options and defaults as its Python function.

Exit codes: 0 fine, 1 a look found problems, 2 wrong option, 3 the user's files, 4 a pack, 5 a training cannot go on,
70 our own bug, 130 Ctrl-C.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from penstock import __version__
from penstock.cli.examples import examples
from penstock.cli.failures import file_message
from penstock.cli.foreign_options import with_better_hint
from penstock.errors import PenstockError
from penstock.storage.locations import refuse_urls

INTERRUPTED = 130
# What stands before a path in one argument: data.path=x, --output=x, -ox
_KEY = re.compile(r"[\w.-]+=|-\w(?=\w{2,}://)")

# Where each command lives, and its line in the list of commands.
HOMES = {
    "check": ("penstock.cli.check", "Find every problem of raw files, by file and row."),
    "pack": ("penstock.cli.pack", "Turn raw files into a pack that is read fast."),
    "export": ("penstock.cli.export", "Write any data as files of another format."),
    "doctor": ("penstock.cli.doctor", "Say what holds a training back, and what to do about it."),
    "recipe": ("penstock.cli.recipe", "Write a commented recipe to begin with."),
    "train": ("penstock.cli.train", "Train by a recipe, and leave a Run."),
    "evaluate": ("penstock.cli.evaluate", "Evaluate a trained Run, or predictions made by anything."),
    "predict": ("penstock.cli.predict", "Predict on new images, rasters or videos."),
    "report": ("penstock.cli.report", "Write a page on one Run, or on several beside each other."),
    "info": ("penstock.cli.looks", "Say what is in a pack."),
    "show": ("penstock.cli.looks", "Draw one sample with its boxes or labels."),
    "verify": ("penstock.cli.looks", "Check every checksum of a pack."),
    "demo": ("penstock.cli.demo", "Pack, train and predict on data that it makes itself."),
}


class Commands(click.Group):
    """Commands that are imported when they are used; in the list, a line stands for each."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(HOMES)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in HOMES:
            return None
        command: click.Command = getattr(importlib.import_module(HOMES[name][0]), name)
        return command

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except BrokenPipeError:
            # The reader of our output went away, as `| head` does; what is left in the buffer must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in HOMES.items()])


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    # click looks here for the nearest command when one is misspelt
    commands=[click.Command(name) for name in HOMES],
    epilog=examples("demo", "pack images pets/ -o pets.pack", "recipe images > pets.yaml", "train pets.yaml"),
)
@click.version_option(__version__, prog_name="penstock")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def penstock(debug: bool) -> None:
    """Packs raw images, rasters and videos so that training never waits for data."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code; errors become one message."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files that are not UTF-8 are shown all the same
            stream.reconfigure(errors="backslashreplace")
    # Taken out here, so that it may stand anywhere and is known before anything can fail.
    sys.exit(_run([argument for argument in given if argument != "--debug"], debug="--debug" in given))


def _run(arguments: list[str], debug: bool) -> int:
    try:
        _refuse_url_arguments(arguments)
        result = penstock.main(args=arguments, prog_name="penstock", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.NoSuchOption as error:
        with_better_hint(error).show()
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _told("interrupted", INTERRUPTED, debug)
    except PenstockError as error:
        return _told(_worded(str(error), arguments), error.exit_code, debug)
    except OSError as error:
        return _told(file_message(error), 3, debug)
    except Exception as error:  # noqa: BLE001 - the last door: whatever is left is our own bug, and said to be
        kind = type(error).__name__
        return _told(f"this is a bug of ours ({kind}); please report the lines above.", 70, debug=True)


def _refuse_url_arguments(arguments: list[str]) -> None:
    """No path on the command line is a URL or device, in whichever option; who asks for a model takes hf:// itself."""
    refuse_urls([_KEY.sub("", argument) for argument in arguments], is_model=True)


def _worded(message: str, arguments: Sequence[str]) -> str:
    """An error of Python's functions in the words of the command that ran."""
    from penstock.cli.wording import in_command_words, spellings_of

    return in_command_words(message, spellings_of(penstock, arguments))


def _told(message: str, exit_code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    click.echo(f"penstock: {message}", err=True)
    return exit_code
