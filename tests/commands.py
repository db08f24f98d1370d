"""Running the command line in tests: here, for many small questions; in a process of its own, as users do."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.cli import main

INSTALLED = Path(sys.executable).with_name("penstock")


@dataclass(frozen=True)
class Outcome:
    """What a user sees of a command."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_here(*arguments: object) -> Outcome:
    """The command in this process: quick."""
    out, err = io.StringIO(), io.StringIO()
    exit_code: Any = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            exit_code = leaving.code
    return Outcome(exit_code, out.getvalue(), err.getvalue())


def run_installed(*arguments: object, folder: Path, **environment: str) -> Outcome:
    """The installed command, started in a folder as a user would."""
    command = [str(INSTALLED), *(str(argument) for argument in arguments)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, encoding="utf-8"
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
