"""The command line: each verb with the same options and defaults as its Python function.

Exit codes: 0 fine, 1 a look found problems, 2 wrong option, 3 the user's files, 4 a pack, 70 our own bug, 130 Ctrl-C.
"""

from __future__ import annotations

import sys
import traceback

import click

from penstock import __version__
from penstock.cli.check import check
from penstock.cli.demo import demo
from penstock.cli.looks import info, show, verify
from penstock.cli.pack import pack
from penstock.errors import PenstockError

INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def penstock(debug: bool) -> None:
    """Packs raw images, rasters and videos so that training never waits for data."""


for command in (check, pack, info, show, verify, demo):
    penstock.add_command(command)


def main() -> None:
    """Run a command; errors become one message and an exit code."""
    debug = "--debug" in sys.argv[1:]
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        result = penstock.main(args=arguments, prog_name="penstock", standalone_mode=False)
        sys.exit(result if isinstance(result, int) else 0)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except PenstockError as error:
        if debug:
            traceback.print_exc()
        click.echo(f"penstock: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if debug:
            traceback.print_exc()
        click.echo(f"penstock: {error.filename or 'a file'}: {error.strerror or error}", err=True)
        sys.exit(3)
    except Exception as error:  # noqa: BLE001 - the last door: whatever is left is our own bug, and said to be
        traceback.print_exc()
        click.echo(
            f"penstock: this is a bug of ours ({type(error).__name__}); please report the lines above.", err=True
        )
        sys.exit(70)
