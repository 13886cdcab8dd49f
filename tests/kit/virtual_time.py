"""An event loop whose time is not the real one: it jumps to the next timer whenever there is nothing else to do.

Whatever waits for a timer, a timeout or a pause waits no time at all, in the same order as it would, and always for exactly as
long. Sockets may be used, but what is on its way through the system takes real time, in which the loop's own runs on: whatever
should be exact talks through memory.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

BEGINNING_S = 1000.0


class _NeverWaits(selectors.DefaultSelector):
    """Looks what is ready, and where nothing is, lets so much virtual time pass as it should have waited."""

    passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0 if timeout is not None else None)
        if not ready and timeout is not None and timeout > 0:
            self.passed_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._waits = _NeverWaits()
        super().__init__(self._waits)

    def time(self) -> float:
        return BEGINNING_S + self._waits.passed_s

    def let_pass(self, seconds: float) -> None:
        """As if the process had been stopped for so long: whatever was due meanwhile is late."""
        self._waits.passed_s += seconds

    def wall_ns(self) -> int:
        """A wall clock that goes with it."""
        return int(self.time() * 1e9)


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
