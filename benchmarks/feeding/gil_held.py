"""How long the GIL is held for each image of A: `python -m benchmarks.feeding.gil_held SETTINGS` prints microseconds.

All CPU time of the process is counted, of every thread, except what passes inside the kernel's calls, which do not hold
the GIL. What is left is Python's, and a little of the system's: an upper bound.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

from benchmarks.feeding.peers.penstock_images import flow_of
from penstock.codecs import kernel

PASSES = 3


class Timed:
    """A function that adds up the CPU time of its calls, thread by thread."""

    def __init__(self, function: Any) -> None:
        self._function, self._lock, self.seconds = function, threading.Lock(), 0.0

    def __call__(self, *values: Any) -> Any:
        start = time.thread_time()
        try:
            return self._function(*values)
        finally:
            took = time.thread_time() - start
            with self._lock:
                self.seconds += took


def main() -> None:
    native = kernel.native_extension()
    if native is None:
        raise SystemExit("the kernel is not built: there is nothing that releases the GIL.")
    timed = {name: Timed(getattr(native, name)) for name in ("decode_range", "decode_places", "pixels_range")}
    watched = SimpleNamespace(**{name: getattr(native, name) for name in dir(native)})
    watched.__dict__.update(timed)
    kernel.native_extension = lambda: watched  # type: ignore[assignment]
    flow = flow_of(json.loads(sys.argv[1]))
    held = []
    for epoch in range(PASSES):
        inside, start = sum(each.seconds for each in timed.values()), time.process_time()
        images = sum(len(batch["image"]) for batch in flow.epoch(epoch))
        spent = time.process_time() - start
        held.append((spent - (sum(each.seconds for each in timed.values()) - inside)) / images * 1e6)
    if not any(each.seconds for each in timed.values()):
        raise SystemExit("the kernel was never called: nothing was measured.")
    print(json.dumps({"microseconds": sorted(held)[len(held) // 2]}))


if __name__ == "__main__":
    main()
