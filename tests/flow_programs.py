"""Whole programs that tests start, interrupt and kill: python flow_programs.py PROGRAM ARGUMENTS."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import flow_functions as functions
import penstock as ps
from made_sources import Pictures
from penstock.flow.flow import Flow


def feed(executor: str, workers: int = 2) -> Flow:
    flow = ps.Flow(Pictures(32), seed=4, executor=executor, workers=workers)  # type: ignore[arg-type]
    return flow.shuffle().map(functions.with_noise).batch(4)


def checksum(batch: dict[str, Any]) -> int:
    return zlib.crc32(b"".join(np.ascontiguousarray(batch[name]).tobytes() for name in sorted(batch)))


def endless(executor: str) -> None:
    """Goes on until it is ended from outside; says which processes it started."""
    flow = feed(executor)
    for epoch in range(10**9):
        for batch in flow.epoch(epoch):
            if epoch == 0 and batch["index"].size and flow.state()["batch"] == 1:
                workers = [child.pid for child in psutil.Process().children()]
                print(json.dumps(workers), flush=True)


def forked(executor: str) -> None:
    """As `endless`, beside a fork of this program that does nothing and stays."""
    batches = feed(executor).epoch(0)
    next(batches)
    workers = [child.pid for child in psutil.Process().children()]
    pid = os.fork()
    if pid:
        print(json.dumps([pid, *workers]), flush=True)
    signal.pause()


def limited(executor: str, megabytes: str) -> None:
    """Has little room for files, shared memory among them."""
    limit = int(float(megabytes) * 2**20)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    source = ps.Flow(Pictures(32), executor=executor, workers=2)  # type: ignore[arg-type]
    try:
        for _ in source.batch(32).map(functions.summed, batched=True) if megabytes == "0.1" else source.batch(32):
            pass
    except ps.OptionError as error:
        print(error)


def resumable(log: Path, state: Path, executor: str) -> None:
    """Writes down every batch, and after it where it is; goes on where the last one was killed."""
    flow = feed(executor)
    if state.exists():
        flow.restore(json.loads(state.read_text()))
    line = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        here = flow.state()
        for batch in flow.epoch():
            os.write(line, f"{here['epoch']} {here['batch']} {checksum(batch)}\n".encode())
            here = flow.state()
            fresh = state.with_suffix(".new")
            fresh.write_text(json.dumps(here))
            fresh.replace(state)
            del batch


def forking(log: str, state: str) -> None:
    """Starts `resumable` anew for every line that comes in: a fork of a process that has imported everything."""
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                resumable(Path(log), Path(state), line.strip())
            finally:
                os._exit(3)
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    {"endless": endless, "forked": forked, "limited": limited, "forking": forking}[sys.argv[1]](*sys.argv[2:])
