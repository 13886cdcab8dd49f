"""What an executor needs of the place where it runs: time, coroutines, and somebody to carry packets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from quire.model.errors import QuireError
from quire.protocols.node import Effects

Done = Callable[[Any, BaseException | None], None]
"""Is told the result of a coroutine, or what it raised."""


class Stopped(QuireError):
    """A coroutine was stopped before its end."""


class Promise(ABC):
    """Something that will be there later. `await` it; it is kept or broken once."""

    @abstractmethod
    def keep(self, value: Any) -> None: ...

    @abstractmethod
    def fail(self, error: BaseException) -> None: ...

    @abstractmethod
    def __await__(self) -> Generator[Any, Any, Any]: ...


class Runtime(ABC):
    @abstractmethod
    def now(self) -> int:
        """Nanoseconds of the clock that the node is told."""

    @abstractmethod
    def perform(self, effects: Effects) -> None:
        """Carry out what the node returned; notices come back to the executor in order."""

    @abstractmethod
    def soon(self, act: Callable[[], None]) -> None:
        """Call this when the present input is dealt with."""

    @abstractmethod
    def later(self, delay_ns: int, act: Callable[[], None]) -> None: ...

    @abstractmethod
    def promise(self) -> Promise: ...

    @abstractmethod
    def start(self, coroutine: Coroutine[Any, Any, Any], done: Done) -> Callable[[], None]:
        """Run a coroutine to its end beside everything else. Returns what stops it before that; `done` is told `Stopped`."""

    @abstractmethod
    def jitter(self) -> float:
        """A random number from 0 up to, but not including, 1."""
