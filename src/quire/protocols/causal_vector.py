"""Causal order by vector clocks: nothing is delivered before what its sender had delivered when it sent it.

Each member counts the messages that it has delivered of every origin: a vector. A run carries the vector of its
sender as it was when the run left. A receiver holds the run back until it has delivered all that the vector
counts, and exactly the messages of the same sender that come before it. So a question is always delivered before
its answer, also when they come from different members over links of different speed. Concurrent runs wait for
nothing, which makes this the cheapest causal order in time: a member's own run is delivered at once, and a
peer's run as soon as its causes are here. Members may deliver concurrent runs in different orders: there is no
total order. The price is a header that grows with the group.

Source: K. Birman, A. Schiper and P. Stephenson, "Lightweight Causal and Atomic Group Multicast", ACM TOCS 9(3),
1991, section 5 (the CBCAST protocol).
Assumes: links that lose nothing; they may repeat and reorder. No member crashes. Membership is fixed.
Guarantees: integrity, agreement, causal order (and with it sender order).
Departures: the sender's own entry is the number of the run's first message, counted from 0, where the paper sends
the count after the message; it counts messages although a run is one packet. Vectors are sent whole,
without the paper's compression. There is one group. The hold-back buffer has a bound.
Cost: one packet a run on a multicast network, N-1 point to point. Header: that of the run and N counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import le
from typing import Annotated, ClassVar

import msgspec

from quire.model.errors import HoldBackFull, ProtocolViolation
from quire.model.messages import NUMBER_MAX, Run
from quire.model.orders import RELIABLE, Guarantee
from quire.model.packets import Packet
from quire.protocols.contract import NOTHING, UNSOUND, Deliver, Effects, Links, Protocol, Send, Waiting, misplaced


class CausalVectorOptions(msgspec.Struct, frozen=True, kw_only=True):
    held: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 20
    """How many messages may be held back here at once."""


class Cast(Packet, frozen=True, tag=1):
    """A run on its way to all the others, with what its sender had delivered of each origin."""

    name: ClassVar[str] = "CAST"

    run: Run
    vector: tuple[int, ...]

    @property
    def entries(self) -> int:
        return len(self.vector)

    def carried(self) -> Run:
        return self.run


def may_deliver(origin: int, vector: Sequence[int], delivered: Sequence[int]) -> bool:
    """Whether a member that has delivered so many of each origin has delivered all causes of a run with this vector."""
    return vector[origin] == delivered[origin] and all(map(le, vector, delivered))


class CausalVector(Protocol):
    """One member of a group that keeps causal order."""

    promises = RELIABLE | {Guarantee.CAUSAL, Guarantee.FIFO}
    links = Links.RELIABLE
    packets = (Cast,)
    changes_views = True

    def __init__(self, me: int, members: int, options: CausalVectorOptions) -> None:
        super().__init__(me, members)
        self.options = options
        self.delivered = [0] * members
        """Per origin, how many of its messages were delivered here."""
        self.early: list[list[Cast]] = [[] for _ in range(members)]
        """Per origin, the packets held back, by number."""
        self.held = 0

    def submit(self, run: Run) -> Effects:
        self._check_own(run, self.delivered[self.me])
        packet = Cast(run, tuple(self.delivered))
        self.delivered[self.me] = run.end
        return (Send(packet), Deliver(run))

    def receive(self, source: int, packet: Packet) -> Effects:
        self._check_peer(source)
        if not isinstance(packet, Cast):
            raise misplaced(source, packet)
        run = packet.run
        self._check(source, packet)
        early = self.early[source]
        index = bisect_left(early, run.first, key=_first)
        if run.end <= self.delivered[source] or (index < len(early) and early[index] == packet):
            return NOTHING
        seen = early[index - 1].run.end if index else self.delivered[source]
        if run.first < seen or (index < len(early) and run.end > early[index].run.first):
            raise ProtocolViolation(source, f"its messages {run.first} to {run.end - 1} overlap others that it sent")
        if not may_deliver(source, packet.vector, self.delivered):
            if self.held + run.count > self.options.held:
                raise HoldBackFull(f"member {self.me} holds back {self.held} of at most {self.options.held} messages")
            early.insert(index, packet)
            self.held += run.count
            return NOTHING
        self.delivered[source] = run.end
        return [Deliver(run), *self._release()]

    def _check(self, source: int, packet: Cast) -> None:
        run, vector = packet.run, packet.vector
        if run.origin != source:
            raise ProtocolViolation(source, f"it passed on a run of member {run.origin}")
        if not run.is_sound():
            raise ProtocolViolation(source, UNSOUND)
        if len(vector) != self.members or vector[source] != run.first or min(vector) < 0 or max(vector) > NUMBER_MAX:
            raise ProtocolViolation(source, "its vector does not fit the group or the run")
        if vector[self.me] > self.delivered[self.me]:
            raise ProtocolViolation(source, f"it counts {vector[self.me]} messages of member {self.me}, who sent fewer")

    def _release(self) -> list[Deliver]:
        """Deliver what is held back no longer, until nothing more moves. The origins take turns from 0 up."""
        released: list[Deliver] = []
        moved = self.held > 0
        while moved:
            moved = False
            for origin, early in enumerate(self.early):
                while early and may_deliver(origin, early[0].vector, self.delivered):
                    run = early.pop(0).run
                    self.held -= run.count
                    self.delivered[origin] = run.end
                    released.append(Deliver(run))
                    moved = True
        return released

    def remainder(self, packets: Iterable[Packet], delivered: Sequence[int]) -> Sequence[Deliver]:
        """A cause counts fewer messages in its vector than its effect: by this sum causes come first."""
        left = [packet for packet in packets if isinstance(packet, Cast) and packet.run.first >= delivered[packet.run.origin]]
        left.sort(key=lambda packet: (sum(packet.vector), packet.run.origin, packet.run.first))
        return [Deliver(packet.run) for packet in left]

    def held_back(self) -> int:
        return self.held

    def waiting(self) -> Sequence[Waiting]:
        return [self._why(packet) for early in self.early for packet in early]

    def _why(self, packet: Cast) -> Waiting:
        late = tuple(member for member, needed in enumerate(packet.vector) if needed > self.delivered[member])
        causes = ", ".join(f"{member}:{packet.vector[member] - 1}" for member in late)
        return Waiting(packet.run, late, f"it happened after {causes}, not yet delivered here")


def _first(packet: Cast) -> int:
    return packet.run.first
