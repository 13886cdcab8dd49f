"""Runs coroutines in virtual time, step by step between the events of a world, without an asyncio event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from random import Random
from typing import Any

from quire.objects.runtime import Done, Promise, Runtime, Stopped
from quire.protocols.node import Effects
from quire.simulation.world import SimulatedHost, World


class SteppedPromise(Promise):
    def __init__(self) -> None:
        self.over = False
        self.wakes: Callable[[], None] | None = None
        self._value: Any = None
        self._error: BaseException | None = None

    def keep(self, value: Any) -> None:
        self._value = value
        self._settle()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._settle()

    def _settle(self) -> None:
        self.over = True
        if self.wakes is not None:
            self.wakes()

    def __await__(self) -> Generator[SteppedPromise, None, Any]:
        if not self.over:
            yield self
        if self._error is not None:
            raise self._error
        return self._value


class _Stepped:
    """A coroutine that is resumed whenever what it awaits is available."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], done: Done) -> None:
        self._coroutine = coroutine
        self._done: Done | None = done

    def step(self) -> None:
        if self._done is None:
            return
        try:
            waited = self._coroutine.send(None)
        except StopIteration as end:
            self._end(end.value, None)
        except Exception as error:  # noqa: BLE001
            # Whatever an operation raises is its caller's to know.
            self._end(None, error)
        else:
            if isinstance(waited, SteppedPromise):
                waited.wakes = self.step
            else:
                self._coroutine.close()
                self._end(None, TypeError("in the simulator an operation can await calls and call.sleep, nothing else"))

    def stop(self) -> None:
        if self._done is not None:
            self._coroutine.close()
            self._end(None, Stopped("it was stopped"))

    def _end(self, result: Any, error: BaseException | None) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(result, error)


class SteppedRuntime(Runtime):
    """The runtime of one host in a world, until its process crashes."""

    def __init__(self, world: World, random: Random, life: int = 0) -> None:
        """`life`: which of the processes of the host it belongs to."""
        self.host: SimulatedHost | None = None
        self._life = life
        self._world = world
        self._uniform = random.random

    def now(self) -> int:
        return self._world.now

    def perform(self, effects: Effects) -> None:
        assert self.host is not None
        self.host.act(effects)

    def soon(self, act: Callable[[], None]) -> None:
        self.later(0, act)

    def later(self, delay_ns: int, act: Callable[[], None]) -> None:
        self._world.at(self._world.now + delay_ns, lambda _: act() if self._runs() else None, None)

    def _runs(self) -> bool:
        return self.host is None or (not self.host.gone and self.host.life == self._life)

    def promise(self) -> Promise:
        return SteppedPromise()

    def start(self, coroutine: Coroutine[Any, Any, Any], done: Done) -> Callable[[], None]:
        stepped = _Stepped(coroutine, done)
        stepped.step()
        return stepped.stop

    def jitter(self) -> float:
        return self._uniform()
