"""One member as the engine sees it: its protocol, its recorder, its logical clock, and what waits there.

Almost always a member takes its input at once. Two flags tell the loop at a glance that something is out of the
ordinary: `busy`, that input may have to wait, and `alert`, that somebody waits for a delivery.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from quire.model.messages import Run
from quire.protocols.contract import Protocol
from quire.simulation.flights import Parcel
from quire.simulation.inbox import Inbox
from quire.trace.recorder import Recorder


class Site:
    __slots__ = (
        "alert", "blocked", "busy", "clock", "crashed", "deaf", "inbox", "member", "next_number", "others", "parts", "paused",
        "protocol", "receipts", "receive", "recorder", "stalled", "waking", "watch", "write",
    )  # fmt: skip

    def __init__(self, protocol: Protocol, recorder: Recorder) -> None:
        self.member = protocol.me
        self.protocol = protocol
        self.receive = protocol.receive
        self.recorder = recorder
        self.write = recorder.write
        self.others = tuple(member for member in range(protocol.members) if member != protocol.me)
        self.clock = 0
        self.next_number = 0
        self.receipts: dict[int, int] = {}
        """When each run came here that is not yet delivered; for its own runs, when they were submitted."""
        self.parts: dict[int, int] = {}
        """How much of each run of several messages is not yet delivered."""
        self.inbox: Inbox[Run, Parcel] = Inbox()
        self.stalled: dict[int, deque[Parcel]] = {}
        """What is left on the links from which the protocol takes nothing until it has delivered something."""
        self.deaf: set[int] = set()
        """The members that broke the protocol, whose links are closed."""
        self.watch: Callable[[int, int], None] | None = None
        self.paused = self.crashed = self.blocked = self.waking = self.busy = self.alert = False

    def note(self, key: int, count: int, now_ns: int) -> None:
        """A run of so many messages came, or was submitted; what counts is when it first did."""
        self.receipts.setdefault(key, now_ns)
        if count > 1:
            self.parts.setdefault(key, count)

    def refresh(self) -> None:
        """Set the flags after a change of what they are made of."""
        self.busy = self.paused or self.crashed or bool(self.stalled or self.deaf)
        self.alert = self.blocked or bool(self.stalled) or self.watch is not None
