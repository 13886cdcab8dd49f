"""The engine's state for one member: its protocol, its log, its logical clock, and its waiting input.

Almost always a member takes its input at once. Two flags tell the loop quickly about exceptions: `busy`, that input may have to
wait, and `alert`, that somebody waits for a delivery.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from quire.model.messages import Run
from quire.model.packets import Packet
from quire.protocols.contract import Effects, Protocol
from quire.simulation.flights import Parcel
from quire.simulation.inbox import Inbox
from quire.trace.log import Address, EventLog

Submission = tuple[Run, tuple[int, ...] | None]
"""The messages that an application sends, and their destinations; None for everybody."""


class Site:
    __slots__ = (
        "_others", "alert", "blocked", "busy", "clock", "deaf", "delivered_from", "inbox", "log", "member", "next_number",
        "parts", "paused", "protocol", "receipts", "receive", "stalled", "waking", "watch", "write",
    )  # fmt: skip

    def __init__(self, protocol: Protocol, log: EventLog) -> None:
        self.member = protocol.me
        self.protocol = protocol
        self.receive: Callable[[int, Packet], Effects] = protocol.receive
        self.log = log
        self.write = log.write
        self._others: tuple[int, ...] | None = None
        # If messages may be addressed to some members only, a member that delivers one does not know its other destinations.
        self.delivered_from = log.address(Address()) if protocol.addressed else 0
        """The address in the records of deliveries here."""
        self.clock = 0
        self.next_number = 0
        self.receipts: dict[int, int] = {}
        """When each undelivered batch of messages was received here or, for its own, submitted."""
        self.parts: dict[int, int] = {}
        """How many messages of each batch of several are not yet delivered."""
        self.inbox: Inbox[Submission, Parcel] = Inbox()
        self.stalled: dict[int, deque[Parcel]] = {}
        """Parcels waiting on links from which the protocol takes nothing until it has delivered something (backpressure)."""
        self.deaf: set[int] = set()
        """The members that broke the protocol, whose links are closed."""
        self.watch: Callable[[int, int], None] | None = None
        self.paused = self.blocked = self.waking = self.busy = self.alert = False

    def note(self, key: int, count: int, now_ns: int) -> None:
        """Note when `count` messages were first received or submitted."""
        self.receipts.setdefault(key, now_ns)
        if count > 1:
            self.parts.setdefault(key, count)

    def forget(self, key: int) -> None:
        """Drop what was noted: it will not be delivered here."""
        del self.receipts[key]
        self.parts.pop(key, None)

    @property
    def others(self) -> tuple[int, ...]:
        """All other members, computed when first needed: in a large group that relays, it never is."""
        if self._others is None:
            self._others = tuple(member for member in range(self.protocol.members) if member != self.member)
        return self._others

    def refresh(self) -> None:
        """Recompute the flags after a change of state."""
        waits = bool(self.stalled or self.deaf) or (self.blocked and self.protocol.wakes_on_packets)
        self.busy = self.paused or waits
        self.alert = self.blocked or bool(self.stalled) or self.watch is not None
