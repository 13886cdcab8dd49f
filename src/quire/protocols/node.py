"""The interface of a node: a process of a service, as a state machine with timers.

The protocols of `contract` order the multicasts of a fixed group over links that lose nothing, and need no clock. A service
(sequencers and their clients, objects that call each other, replicas and their transactions) tolerates an unreliable network
itself, and answers requests of its application. So a node also has timers. It still owns its state and nothing else: a driver
tells it the time with every input, wakes it when it asks to be woken, and performs its effects in order.

The inputs:

receive(now, source, packet)   a packet came; it may have been lost before, come twice, or overtaken another
wake(now)                      the time that `due()` named has come (or passed: a driver may be late)
a service's own requests       multicast, join, invoke … each with `now` first; they return effects as well

Times are nanoseconds of a clock that never goes back. Effects are `Send`, `Save` where a node outlives its process, and
whatever else a service tells its application: deliveries, answers, failures. Those are values too, of classes that the
service defines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from quire.model.packets import Packet


class Send(msgspec.Struct, frozen=True, gc=False):
    """Put the packet on the way to these addresses, one copy each. It may be lost, repeated or overtaken."""

    packet: Packet
    to: tuple[int, ...]


class Notice(msgspec.Struct, frozen=True):
    """Base of what a node tells its application."""


class Save(msgspec.Struct, frozen=True):
    """Make this record durable. Nothing that comes after it, in this step or a later one, happens before (`gate`)."""

    record: msgspec.Struct


Effect = Send | Save | Notice
Effects = Sequence[Effect]

NOTHING: Effects = ()


class Node(ABC):
    """One process of a service. `address` is the number by which the others reach it."""

    packets: ClassVar[tuple[type[Packet], ...]]
    """The classes of all packets that it takes, each with a tag of its own, so that they can be read from bytes."""

    def __init__(self, address: int) -> None:
        self.address = address

    @abstractmethod
    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        """Take a packet. Raises ProtocolViolation, and changes nothing, where no correct peer would have sent it."""

    @abstractmethod
    def wake(self, now: int) -> Effects:
        """Do what is due: retransmit what was not answered, send heartbeats, give up on silent peers."""

    @abstractmethod
    def due(self) -> int | None:
        """When to be woken next; None: not before the next input."""

    @abstractmethod
    def idle(self) -> bool:
        """Whether nothing is unfinished here: no open request, nothing held back, nothing that others still lack."""
