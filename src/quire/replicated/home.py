"""What a replicated object asks of the group in which it lives, and what a group asks of any state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

R = TypeVar("R")


class Context(msgspec.Struct, frozen=True):
    """The call that a command executes, beside its arguments; the same at every replica."""

    member: int
    """Who called."""
    number: int
    """The number of the command among the messages of that member: the two together name it."""
    now: float
    """Seconds since 1970 by the caller's clock, when it called; but never less than in any command before."""


@runtime_checkable
class State(Protocol):
    """What every member holds a copy of. All copies begin equal, and are given the same payloads in the same order."""

    def apply(self, payload: bytes, context: Context) -> object:
        """Do what the payload says. What is returned or raised here reaches the caller, at its own member; where this raises,
        the state must be as before."""

    def snapshot(self) -> bytes | Iterable[bytes]:
        """The state as it is now. Chunks may be made as they are asked for, while more is applied."""

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Replace the state by a snapshot's; raises BadInput, and changes nothing, if the snapshot is damaged."""


class Home(Protocol):
    """One object's end of its group."""

    def submit(self, body: bytes, finish: Callable[[Any], R]) -> asyncio.Future[R]:
        """Have every member apply this; the future holds what `finish` makes of what was returned here."""

    def now(self) -> float:
        """Seconds since 1970, of the clock by which commands of this member are stamped."""

    def read_barrier(self) -> Awaitable[None]:
        """Returns when everything that was applied anywhere before this call is applied here."""
