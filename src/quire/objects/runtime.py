"""The interface of an executor's runtime: time, coroutines, and carrying out the node's effects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from quire.model.errors import QuireError
from quire.protocols.node import Effects

Done = Callable[[Any, BaseException | None], None]
"""Called with the result of a coroutine, or with what it raised."""


class Stopped(QuireError):
    """A coroutine was stopped before its end."""


class Promise(ABC):
    """A value that will be available later. `await` it; `keep` or `fail` completes it, once."""

    @abstractmethod
    def keep(self, value: Any) -> None: ...

    @abstractmethod
    def fail(self, error: BaseException) -> None: ...

    @abstractmethod
    def __await__(self) -> Generator[Any, Any, Any]: ...


class Runtime(ABC):
    @abstractmethod
    def now(self) -> int:
        """The node's time in nanoseconds."""

    @abstractmethod
    def perform(self, effects: Effects) -> None:
        """Carry out the node's effects. Notices go back to the executor, in order."""

    @abstractmethod
    def soon(self, act: Callable[[], None]) -> None:
        """Call this after the current input has been handled."""

    @abstractmethod
    def later(self, delay_ns: int, act: Callable[[], None]) -> None: ...

    @abstractmethod
    def promise(self) -> Promise: ...

    @abstractmethod
    def start(self, coroutine: Coroutine[Any, Any, Any], done: Done) -> Callable[[], None]:
        """Run a coroutine concurrently. Returns a function that stops it; `done` is then called with `Stopped`."""

    @abstractmethod
    def jitter(self) -> float:
        """A random number from 0 up to, but not including, 1."""
