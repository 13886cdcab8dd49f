"""The status of a process as one value, which observers poll while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from quire.live import held

Kind = Literal["group", "sequencer", "client", "store", "objects", "service"]
Condition = Literal["joining", "running", "changing", "blocked", "unread", "ended", "failed"]
"""changing: a view change is under way. blocked: no majority can be reached. unread: its application takes nothing."""


class ViewStatus(msgspec.Struct, frozen=True):
    number: int
    members: tuple[str, ...]


class LinkStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The link to another process."""

    peer: str
    connected: bool
    suspected: bool = False
    unread: bool = False
    """Whether it says that its application takes nothing."""
    sent: int = 0
    received: int = 0
    """Frames, in all."""
    unacknowledged_bytes: int = 0
    silent_s: float = 0.0


class HeldBack(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that are held back, for whom, and the reason in words."""

    origin: str
    first: int
    count: int
    waits_for: tuple[str, ...]
    because: str


class Queue(msgspec.Struct, frozen=True):
    messages: int
    bytes: int = 0
    messages_max: int | None = None


class JournalStatus(msgspec.Struct, frozen=True):
    batches: int
    bytes: int


class Tile(msgspec.Struct, frozen=True):
    """A value that only this kind of process has."""

    name: str
    value: int | float | str
    note: str = ""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a process: what it runs, whether it can go on, its links and queues, and what is held back."""

    kind: Kind
    group: str
    me: str
    protocol: str
    condition: Condition
    why: str = ""
    """Where it does not run, why not."""
    view: ViewStatus | None = None
    members: tuple[str, ...] = ()
    sent: int = 0
    unsettled: int = 0
    """Own messages that are not delivered yet."""
    delivered: dict[str, int] = {}
    """Deliveries by origin. At a sequencer: messages that it numbered; at a client of a store: transactions committed."""
    queues: dict[str, Queue] = {}
    links: tuple[LinkStatus, ...] = ()
    waiting: tuple[HeldBack, ...] = ()
    """The first that are held back."""
    waiting_in_all: int = 0
    journal: JournalStatus | None = None
    tiles: tuple[Tile, ...] = ()


class Observed(Protocol):
    """A process that can be observed while it runs."""

    def status(self) -> Status: ...
    def metrics(self) -> str: ...


WAITING_MAX = 20


def shown(each: held.Held) -> HeldBack:
    """A `Held` of a group whose members have numbers, with names instead."""
    return HeldBack(
        origin=str(each.origin),
        first=each.first,
        count=each.count,
        waits_for=tuple(map(str, each.waits_for)),
        because=each.because,
    )


def first_held(waiting: Sequence[HeldBack]) -> tuple[HeldBack, ...]:
    """The first of these, as many as a person will read."""
    return tuple(waiting[:WAITING_MAX])
