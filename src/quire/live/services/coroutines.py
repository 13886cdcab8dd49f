"""Runtime that executes operations of objects as tasks of the event loop, which may await anything that a task may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from random import SystemRandom
from typing import Any

from quire.live.services.nodes import Host
from quire.objects.runtime import Done, Promise, Runtime, Stopped
from quire.protocols.node import Effects


class FuturePromise(Promise):
    def __init__(self, future: asyncio.Future[Any]) -> None:
        self._future = future

    def keep(self, value: Any) -> None:
        if not self._future.done():
            self._future.set_result(value)

    def fail(self, error: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(error)
            # A caller may end without ever awaiting this call; that must not be logged as an error.
            self._future.exception()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._future.__await__()


class LoopRuntime(Runtime):
    """The runtime of a node on this event loop; `host` must be set before anything runs."""

    def __init__(self) -> None:
        self.host: Host | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._over = False
        self._uniform = SystemRandom().random

    def now(self) -> int:
        assert self.host is not None
        return self.host.now()

    def perform(self, effects: Effects) -> None:
        assert self.host is not None
        self.host.act(effects)

    def soon(self, act: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(act)

    def later(self, delay_ns: int, act: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(delay_ns / 1e9, act)

    def promise(self) -> Promise:
        return FuturePromise(asyncio.get_running_loop().create_future())

    def start(self, coroutine: Coroutine[Any, Any, Any], done: Done) -> Callable[[], None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)

        def ended(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            if task.cancelled():
                if not self._over:
                    done(None, Stopped("it was stopped"))
                return
            error = task.exception()
            done(None if error is not None else task.result(), error)

        task.add_done_callback(ended)

        def stop() -> None:
            task.cancel()

        return stop

    def jitter(self) -> float:
        return self._uniform()

    async def stop(self) -> None:
        """Cancel everything that still runs: the group has ended, and the results are no longer needed."""
        self._over = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
