"""The one module of live groups that reads a clock.

Time is the running event loop's, which timers, timeouts and pauses follow anyhow: on a loop whose time is not the real one,
all of a group's time is that loop's. The wall clock is for what people and other hosts read: traces, and the numbers by which
a process is known from the one that was there before.
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
        # Somebody asks for measures from a thread without a loop; the usual loops go by this clock.
        return time.monotonic()


def reader() -> Callable[[], float]:
    """What tells the time of the running event loop, which never changes, for whoever asks with every packet: looking for the
    loop takes a system call, and much longer than its time."""
    loop = asyncio.get_running_loop()
    # The usual loops go by this clock, and asking it takes no call of theirs.
    return time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time


def wall_ns() -> int:
    return time.time_ns()


def stopwatch_s() -> float:
    """Seconds from whatever moment, to measure what is done without an event loop."""
    return time.perf_counter()
