"""For which part of the time the GIL is held by others: a thread wakes every other millisecond, and asks for it.

Who gets it at once finds it free. Who does not waits until its holder lets go of it, at the latest after the switch
interval of Python (5 ms). Time without a core is left out, so a busy machine gives the same answer.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

from penstock.flow.measuring.core_wait import CoreWait

INTERVAL_SECONDS = 0.002
FEWEST_QUESTIONS = 15
NOTABLE_SECONDS = 0.0003  # timers are late by a tenth of a millisecond; shorter sections are not seen


class GilShare:
    """Asks for the GIL while its block runs; `share` is how often it was not to be had."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._asked = self._held = 0
        self._thread = threading.Thread(target=self._ask, name="penstock-gil", daemon=True)

    def __enter__(self) -> GilShare:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def share(self) -> float:
        """0 where it could not ask often enough to know."""
        return self._held / self._asked if self.is_known else 0.0

    @property
    def is_known(self) -> bool:
        return self._asked >= FEWEST_QUESTIONS

    def _ask(self) -> None:
        with CoreWait() as core_wait:
            while not self._stop.is_set():
                no_core, begin = core_wait.seconds(), time.perf_counter()
                time.sleep(INTERVAL_SECONDS)
                late = time.perf_counter() - begin - INTERVAL_SECONDS - (core_wait.seconds() - no_core)
                self._asked += 1
                self._held += late > NOTABLE_SECONDS
