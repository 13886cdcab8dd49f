"""The Java process behind a local Spark session: whoever started it must be able to end it, at any moment of its life.

PySpark starts it deep inside and, on Ctrl-C, asks it over a connection that is in use to cancel its jobs, which ends in pages
of somebody else's traceback. Here the process is known from the moment it exists. On Ctrl-C, or when the command is to end
otherwise, it is ended first, with everything that works for it, and only then the command is interrupted. So nobody writes
any more to what the command cleans up on its way out.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import TracebackType
from typing import Any

END_S = 10.0
"""How long it may take to end by itself, for which it removes its temporary files."""

_LOOK_S = 0.02
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Jvm:
    """The Java process of a session, once there is one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[Any] | None = None

    @contextmanager
    def adopting(self, signals: Interruptible) -> Iterator[None]:
        """What PySpark starts in this block is ours to end; or what it started before, and works with again."""
        from pyspark import SparkContext

        java_gateway: Any = import_module("pyspark.java_gateway")

        def start(*arguments: Any, **options: Any) -> subprocess.Popen[Any]:
            # In a group of its own, because at first it is a shell that starts others, and they are to end with it.
            # An interruption that comes before it is known here would end the command, but not the process.
            with signals.held():
                self._process = subprocess.Popen(*arguments, **options, process_group=0)  # noqa: S603
            return self._process

        if SparkContext._gateway is not None:
            self._process = SparkContext._gateway.proc
        starts = java_gateway.Popen
        java_gateway.Popen = start
        try:
            yield
        finally:
            java_gateway.Popen = starts

    def end(self) -> None:
        """End it, and return when it is gone, with everything that it started and that did not end by itself."""
        if self._process is None or self._process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
            _wait_until_gone(self._process.pid)
            os.killpg(self._process.pid, signal.SIGKILL)
            _wait_until_gone(self._process.pid)
        self._process.poll()  # It has been waited for, and its object is to know.


def _wait_until_gone(pid: int) -> None:
    """Wait for the end of a child, but not for ever. The system is asked, because who was interrupted may just have been
    asking by the child's object, which is locked then."""
    deadline = time.monotonic() + END_S
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)


class Interruptible:
    """Has signals that end a command do `first` before they interrupt it, in this block. Only the main thread gets them;
    elsewhere nothing is changed. What ignores a signal, as a command in the background does, goes on ignoring it."""

    def __init__(self, first: Callable[[], object]) -> None:
        self.interrupted = False
        self._holding = self._waiting = False
        self._first = first
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in _SIGNALS}
            self.again()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.interrupted and not isinstance(error, KeyboardInterrupt):
            # Whoever was interrupted may have fallen over what had been ended.
            raise KeyboardInterrupt from None

    def again(self) -> None:
        """Take the signals back from a library that took them."""
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_IGN if before == signal.SIG_IGN else self._interrupt)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Interrupt nothing in this block; what would have been interrupted is interrupted at its end."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
            if self._waiting:
                self._interrupt()

    def _interrupt(self, *_: object) -> None:
        if self._holding:
            self._waiting = True
            return
        self.interrupted = True
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)  # Once is enough, and what follows is not to be cut off.
        self._first()
        raise KeyboardInterrupt
