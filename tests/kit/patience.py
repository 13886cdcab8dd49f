"""How long a test waits for what comes at once: a deadline is only for what hangs, and a machine may have much else to do."""

from __future__ import annotations

import threading
import time
from types import TracebackType

PATIENCE_S = 600.0


class Stretch:
    """How much longer everything takes meanwhile than on a machine that has nothing else to do, for what must be done within a
    given time: a thread that needs a little of a processor again and again, and sees how long it takes to get it."""

    _WORK_S = 0.004
    _PAUSE_S = 0.02

    def __init__(self) -> None:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._worked_s = self._took_s = 0.0

    def __enter__(self) -> Stretch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    @property
    def factor(self) -> float:
        """At least 1."""
        return max(1.0, self._took_s / self._worked_s) if self._worked_s else 1.0

    def _measure(self) -> None:
        while not self._done.is_set():
            began, worked = time.monotonic(), time.thread_time()
            while (used_s := time.thread_time() - worked) < self._WORK_S:
                pass
            slept = time.monotonic()
            self._done.wait(self._PAUSE_S)
            # Who wakes up late waits for a processor, too.
            late_s = max(0.0, time.monotonic() - slept - self._PAUSE_S)
            self._took_s += slept - began + late_s
            self._worked_s += used_s
