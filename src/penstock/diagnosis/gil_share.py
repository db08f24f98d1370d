"""For which part of the time the GIL is held by others: a thread wakes every other millisecond, and asks for it.

Who gets it at once finds it free. Who does not waits until its holder lets go of it, at the latest after the switch
interval of Python (5 ms). An answer stands for the time since the last one: who has to wait asks less often, and by
their number alone the GIL would seem free. Time without a core is left out, so a busy machine gives the same answer.
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
    """Asks for the GIL while its block runs; `share` is the part of the time that it was not to be had."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._asked = 0
        self._seconds = self._held_seconds = 0.0
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
        return self._held_seconds / self._seconds if self.is_known else 0.0

    @property
    def is_known(self) -> bool:
        return self._asked >= FEWEST_QUESTIONS

    def _ask(self) -> None:
        with CoreWait() as core_wait:
            while not self._stop.is_set():
                no_core, begin = core_wait.seconds(), time.perf_counter()
                time.sleep(INTERVAL_SECONDS)
                self._note(max(time.perf_counter() - begin - (core_wait.seconds() - no_core), 0.0))

    def _note(self, taken: float) -> None:
        """One answer, and the seconds that it took to get it."""
        self._asked += 1
        self._seconds += taken
        self._held_seconds += taken if taken - INTERVAL_SECONDS > NOTABLE_SECONDS else 0.0
