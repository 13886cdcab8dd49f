"""The interfaces between replicated state and its group: what an object needs of the group, and the group of any state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

R = TypeVar("R")


class Context(msgspec.Struct, frozen=True):
    """What a command knows besides its arguments; the same at every replica."""

    member: int
    """The caller."""
    number: int
    """The number of the command among the messages of that member; the two together identify it."""
    now: float
    """The time of the call in seconds since 1970, by the caller's clock, but never less than in any earlier command."""


@runtime_checkable
class State(Protocol):
    """Replicated state: every member has a copy. All copies begin equal, and apply the same payloads in the same order."""

    def apply(self, payload: bytes, context: Context) -> object:
        """Apply the payload. The caller gets what its own member's copy returned or raised; if this raises, it must not have
        changed the state."""

    def snapshot(self) -> bytes | Iterable[bytes]:
        """The current state. Chunks may be produced lazily, while further payloads are applied."""

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Replace the state by the snapshot's. Raises BadInput, and changes nothing, if the snapshot is damaged."""


class Home(Protocol):
    """The group, as seen by a replicated object."""

    def submit(self, body: bytes, finish: Callable[[Any], R]) -> asyncio.Future[R]:
        """Have every member apply this. The future gets `finish` of what was returned here."""

    def now(self) -> float:
        """Seconds since 1970, by the clock with which commands of this member are stamped."""

    def read_barrier(self) -> Awaitable[None]:
        """Returns when everything that was applied anywhere before this call is applied here."""
