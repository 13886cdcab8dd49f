"""The one module of live groups that reads a clock.

Time is that of the running event loop, which timers, timeouts and pauses follow anyway: on a loop with virtual time, all of a
group's time is virtual. The wall clock is for what people and other hosts read: traces, and the incarnation numbers that
distinguish a process from an earlier one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def now() -> float:
    """Seconds, of the running event loop."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        # Metrics were asked for in a thread without an event loop; the usual loops use this clock.
        return time.monotonic()


def reader() -> Callable[[], float]:
    """A function that returns the time of the running event loop, for code that needs it with every packet: finding the loop
    takes a system call, and much longer than reading its time."""
    loop = asyncio.get_running_loop()
    # The usual loops use this clock, so it can be read directly.
    return time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time


def wall_ns() -> int:
    return time.time_ns()


def stopwatch_s() -> float:
    """Seconds from an arbitrary origin, to measure work that is done without an event loop."""
    return time.perf_counter()
