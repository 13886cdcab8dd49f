"""The packets that members of an object group exchange.

A `Request`, a `Response` or a `Release` is numbered for each destination and retransmitted until it is acknowledged; it is the
content of `Data`. A `Heartbeat` carries its sender's clock and what it has received, a `Nack` what it lacks. Every packet
acknowledges what came before, so there is no packet for that alone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from quire.model.messages import Body, MessageId, Run
from quire.model.packets import Packet


class Stamp(NamedTuple):
    """A Lamport time: a clock and its owner. Stamps of a group are unique and totally ordered."""

    clock: int
    member: int


class Instance(NamedTuple):
    """One execution, either of a request at an object or of a root (object ""), numbered at its member.

    The paper's instance names grow with their start and serve to order messages; these only tell instances apart.
    """

    origin: int
    number: int
    object: str
    member: int

    def __str__(self) -> str:
        return f"{self.origin}:{self.number}/{self.object}@{self.member}"


class Mark(NamedTuple):
    """For one instance: how many of its messages are in the past, the clock of the last one, and whether that is its
    response."""

    sends: int
    clock: int
    ended: bool


Past: TypeAlias = dict[Instance, Mark]
"""The exact vector of significant precedence, IV: what lies in the past of a message or an instance."""

Pace: TypeAlias = Literal["parallel", "serial", "split"]
"""How a tree of calls runs. Serial: one call at a time, the targets of a call released one after the other, because
conflicting branches of one tree would kill each other for ever. Split: besides, each target is sent a request of its own,
because a target calls another one in conflict; no order of one request at all of them could allow that."""

PastOnWire: TypeAlias = tuple[tuple[Instance, Mark], ...]


class Undo(msgspec.Struct, frozen=True, array_like=True):
    """A completed operation that must be undone if its call fails: which request, where, and what."""

    request: MessageId
    object: str
    op: str
    payload: bytes


class Content(msgspec.Struct, frozen=True, array_like=True):
    """What all messages have in common: the number at the sender, and the clock."""

    number: int
    clock: int


class Request(Content, frozen=True, tag="request"):
    """Run `op` at each of the targets. The copies for several targets have consecutive numbers from `number` on."""

    sender: Instance
    sends: int
    """This is the sender's how-manyeth send."""
    past: PastOnWire
    chain: tuple[Instance, ...]
    """The sender and all its direct and indirect callers, root first."""
    age: Stamp
    """When the root began for the first time: the older one waits, the younger one gives way."""
    targets: tuple[str, ...]
    op: str
    payload: bytes
    undo: bool = False
    """Take the operation back instead. It conflicts with whatever the operation conflicts with."""
    pace: Pace = "parallel"

    @property
    def id(self) -> tuple[int, int]:
        return (self.sender.member, self.number)


class Response(Content, frozen=True, tag="response"):
    """How a copy of a request ended. `sender` is the instance that it became, or would have become."""

    sender: Instance
    sends: int
    past: PastOnWire
    to: Instance
    status: Literal["ok", "aborted", "died"]
    payload: bytes
    undos: tuple[Undo, ...] = ()
    """To be undone if the receiver fails."""
    dues: tuple[Undo, ...] = ()
    """To be undone whatever the receiver does."""
    own: bool = False
    """It died of its own tree, which must be split."""


class Release(Content, frozen=True, tag="release"):
    """A copy of a serial request may run now, or must not run any more."""

    request: int
    object: str
    go: bool


class Part(Content, frozen=True, tag="part"):
    """One part of the state of an object, for a member that came back."""

    object: str
    state: bytes
    last: bool
    wrong: str = ""
    """Why it cannot be handed over; empty if it can."""


AnyContent: TypeAlias = Request | Response | Release | Part


class Between(Packet, frozen=True, kw_only=True):
    """A packet from one process of a member to one process of another. Each process of a member has a number, so that
    packets from or to an earlier one are recognised."""

    life: int = 0
    """The number of the process that sends it."""
    to_life: int = 0


class Data(Between, frozen=True, tag="data"):
    name = "DATA"

    sequence: int
    """From 1, for each destination."""
    received: int
    """The sender has everything up to this sequence number of the destination's."""
    content: AnyContent

    def carried(self) -> Run | None:
        if isinstance(self.content, Release | Part):
            return None
        return Run(self.content.sender.member, self.content.number, 1, Body(self.content.payload, len(self.content.payload)))


class Heartbeat(Between, frozen=True, tag="heartbeat"):
    name = "HEARTBEAT"

    received: int
    last: int
    """The last sequence number that went to the destination: if it has less, this clock says nothing yet."""
    clock: int
    wanted: int
    """A clock value that some member waits for the others to reach."""
    row: tuple[int, ...]
    """For each member: everything of it up to this clock that was addressed to the sender is delivered there."""


class Nack(Between, frozen=True, tag="nack"):
    name = "NACK"

    received: int
    missing: tuple[int, ...]
