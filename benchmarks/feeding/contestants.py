"""Everybody who takes part: a program that makes one pass over the data whenever it is asked to."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.feeding.environments import OURS, Environments
from benchmarks.tables import Role

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 900.0  # compiling, converting the data, and a pass on a busy machine


class Absent(Exception):  # noqa: N818 - it is no error that a peer cannot be had
    """A contestant does not take part; says why."""


@dataclass(frozen=True)
class Entry:
    """Who, in which environment, with which settings."""

    name: str
    module: str
    environment: str = OURS
    role: Role = "peer"
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Pass:
    """What a contestant says of one pass."""

    seconds: float
    samples: int
    first_seconds: float = 0.0
    shape: tuple[int, ...] | None = None  # None where there is nothing to look at: bare loops
    dtype: str = ""
    mean: float = 0.0
    labels: int | None = None


class Contestant(Protocol):
    """A program that is ready."""

    @property
    def versions(self) -> dict[str, str]: ...
    @property
    def pid(self) -> int: ...
    def go(self) -> Pass: ...
    def close(self) -> None: ...


class Server:
    """A contestant that speaks `protocol`."""

    def __init__(self, entry: Entry, settings: Mapping[str, Any], environments: Environments) -> None:
        reason = environments.missing(entry.environment)
        if reason:
            raise Absent(reason)
        program = f"benchmarks.feeding.peers.{entry.module}"
        words = json.dumps({**settings, **entry.settings})
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the contestant
        self._process = subprocess.Popen(
            [str(environments.python(entry.environment)), "-m", program, words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            text=True,
        )
        self.versions: dict[str, str] = self._answer()["versions"]

    @property
    def pid(self) -> int:
        return self._process.pid

    def go(self) -> Pass:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        answer = self._answer()
        return Pass(**{**answer, "shape": tuple(answer["shape"])})

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], PATIENCE_SECONDS)[0]:
            raise Absent(f"it has not answered for {PATIENCE_SECONDS:.0f} seconds")
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise Absent(f"it stopped: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self._process.returncode}"

    def close(self) -> None:
        if self._process.poll() is None:
            try:
                self._process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._errors.close()
