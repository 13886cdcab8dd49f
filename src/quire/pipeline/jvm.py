"""Owns the Java process behind a local Spark session, so that it can be ended at any moment of its life.

PySpark starts the process deep inside and, on Ctrl-C, asks it to cancel its jobs over a connection that is in use, which ends
in pages of foreign traceback. Here the process is known from the moment it exists. On Ctrl-C, or when the command has to end
for another reason, the process and its children are ended first, and only then is the command interrupted. So nobody writes any
more to what the command cleans up on its way out.
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
"""How long the process may take to exit by itself, while it removes its temporary files."""

_LOOK_S = 0.02
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Jvm:
    """The Java process of a session, once there is one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[Any] | None = None

    @contextmanager
    def adopting(self, signals: Interruptible) -> Iterator[None]:
        """Take ownership of the process that PySpark starts in this block, or of the one it started before and reuses."""
        from pyspark import SparkContext

        java_gateway: Any = import_module("pyspark.java_gateway")

        def start(*arguments: Any, **options: Any) -> subprocess.Popen[Any]:
            # In its own process group, because it begins as a shell that starts other processes, which must end with it.
            # Signals are held: one that came before the process is known here would end the command, but not the process.
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
        """End the process and everything it started that did not exit by itself, and wait until it is gone."""
        if self._process is None or self._process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
            _wait_until_gone(self._process.pid)
            os.killpg(self._process.pid, signal.SIGKILL)
            _wait_until_gone(self._process.pid)
        self._process.poll()  # It has been waited for; let its Popen object know.


def _wait_until_gone(pid: int) -> None:
    """Wait for a child to end, with a timeout. Asks the system directly, because the interrupted code may hold the lock of the
    child's Popen object."""
    deadline = time.monotonic() + END_S
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)


class Interruptible:
    """In this block, signals that end a command first call `first` and then interrupt it. Only the main thread receives
    signals; in other threads nothing changes. A signal that is ignored, as in a background command, stays ignored."""

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
            # The interrupted code may have failed because of what had been ended.
            raise KeyboardInterrupt from None

    def again(self) -> None:
        """Install the signal handlers again, after a library replaced them."""
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_IGN if before == signal.SIG_IGN else self._interrupt)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Defer interruptions to the end of this block."""
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
            signal.signal(number, signal.SIG_IGN)  # Once is enough, and cleaning up must not be interrupted.
        self._first()
        raise KeyboardInterrupt
