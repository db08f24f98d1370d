"""One worker process, as the training process sees it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from penstock.errors import HopError, RecipeError
from penstock.flow.making.program import Program
from penstock.flow.workers import messages
from penstock.flow.workers.tasks import Task

SHOWN_SAMPLES = 5
SIGNALS = {
    "SIGKILL": "Memory may have run out (`dmesg` tells): use fewer workers, smaller batches or a smaller prefetch.",
    "SIGBUS": "A file that was in use has become shorter, or memory has run out. Run `penstock verify` on the pack.",
    "SIGSEGV": "A library crashed; run the same samples with workers=0 to see which function called it.",
}
EXITED = "Does one of the functions end its process (os._exit), or a library that it calls?"


class WorkerProcess:
    """A process, the connection to it, and the tasks that it has and did not answer yet, oldest first."""

    def __init__(self) -> None:
        self.connection, theirs = socket.socketpair()
        try:
            self._popen = _started(theirs.fileno())
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()
        self.tasks: dict[tuple[int, int], Task] = {}  # by ticket and row
        self.takes_tasks = True
        self.is_told_to_end = False
        self.is_out_of_step = False  # a message was cut short: nothing more can be said to it
        self._sending = threading.Lock()

    @property
    def identity(self) -> int:
        return self._popen.pid

    def send(self, message: Any, descriptors: list[int] | None = None) -> None:
        """Say something; if it is dead, whoever listens to it will notice."""
        with self._sending:
            try:
                messages.send(self.connection, message, descriptors or [])
            except OSError:
                return
            except BaseException:  # such as Ctrl-C in the middle
                self.is_out_of_step = True
                raise

    def tell_to_end(self) -> None:
        """It ends itself at the end of the stream."""
        self.is_told_to_end = True
        self.hang_up()

    def hang_up(self) -> None:
        """Nothing more is said or heard."""
        with contextlib.suppress(OSError):  # it is gone already
            self.connection.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds: float) -> int:
        """Its exit code; killed if it does not end in time."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self._popen.wait()

    def forget(self) -> None:
        """In a forked process: this is not ours to end or to talk to."""
        self.connection.close()
        self._popen.returncode = 0  # else Popen warns that it is still running

    def obituary(self, program: Program, code: int, working_on: list[Task]) -> HopError:
        """What to say when it has died: how, and what it was doing."""
        name = signal_name(code)
        how = f"was ended by {name}" if name else f"ended with exit code {code}"
        remedy = SIGNALS.get(name, "") if name else EXITED
        doing = "; ".join(_described(program, task) for task in working_on) or "between two tasks"
        return HopError("worker process", doing, f"process {self.identity} {how}", remedy)


def signal_name(code: int) -> str | None:
    """The signal that an exit code of subprocess stands for."""
    if code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _described(program: Program, task: Task) -> str:
    # By number alone: looking at the data is what ended the worker, perhaps.
    numbers = program.draws(task.epoch, task.start, task.stop).index.tolist()
    shown = ", ".join(map(str, numbers[:SHOWN_SAMPLES]))
    more = f" and {len(numbers) - SHOWN_SAMPLES} more" if len(numbers) > SHOWN_SAMPLES else ""
    word = "sample" if len(numbers) == 1 else "samples"
    return f"{word} {shown}{more} (positions {task.start} to {task.stop - 1} of epoch {task.epoch})"


def _started(descriptor: int) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise RecipeError(
            'this Python does not know its own program, so it cannot start others. Use executor="thread".'
        )
    script = str(Path(__file__).with_name("child.py"))
    # -P: the folder of the script is not searched for modules.
    command = [sys.executable, "-P", script, str(descriptor), json.dumps([str(place) for place in sys.path])]
    # Ctrl-C reaches all processes of a terminal; it is held back until the new one has said that it ignores it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[descriptor], env=os.environ)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
