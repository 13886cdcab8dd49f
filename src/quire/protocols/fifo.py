"""FIFO order only: the messages of one member are delivered in the order in which it sent them.

A run carries the numbers of its messages, which count on from the sender's last one. A member delivers its own
run at once. A run from a peer is delivered when its first number is the next that is missing of that peer; a run
that comes early is held back until the gap before it is filled, and a run that was seen before is dropped. Nothing
relates the messages of two senders, so an answer may be delivered before its question, and two members may
deliver two concurrent messages in different orders. This is the floor that the other protocols are measured from.

Source: folklore; named and placed among the orders by V. Hadzilacos and S. Toueg, "A Modular Approach to
Fault-Tolerant Broadcasts and Related Problems", 1994 (FIFO broadcast).
Assumes: links that lose nothing; they may repeat and reorder. No member crashes. Membership is fixed.
Guarantees: integrity, agreement and sender order.
Departures: numbers count messages, but a run travels and is delivered whole; the hold-back buffer has a bound.
Cost: one packet a run on a multicast network, N-1 point to point. Header: origin, first number and count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar

import msgspec

from quire.model.errors import HoldBackFull, ProtocolViolation
from quire.model.messages import Run
from quire.model.orders import RELIABLE, Guarantee
from quire.model.packets import Packet
from quire.protocols.contract import NOTHING, UNSOUND, Deliver, Effects, Links, Protocol, Send, Waiting, misplaced


class FifoOptions(msgspec.Struct, frozen=True, kw_only=True):
    held: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 20
    """How many messages may be held back here at once."""


class Cast(Packet, frozen=True, tag=1):
    """A run on its way to all the others."""

    name: ClassVar[str] = "CAST"

    run: Run

    def carried(self) -> Run:
        return self.run


class Fifo(Protocol):
    """One member of a group that keeps sender order."""

    promises = RELIABLE | {Guarantee.FIFO}
    links = Links.RELIABLE
    packets = (Cast,)
    changes_views = True

    def __init__(self, me: int, members: int, options: FifoOptions) -> None:
        super().__init__(me, members)
        self.options = options
        self.next = [0] * members
        """Per origin, the number of the first message that was not delivered here."""
        self.early: list[list[Run]] = [[] for _ in range(members)]
        """Per origin, the runs held back, by number."""
        self.held = 0

    def submit(self, run: Run) -> Effects:
        self._check_own(run, self.next[self.me])
        self.next[self.me] = run.end
        return (Send(Cast(run)), Deliver(run))

    def receive(self, source: int, packet: Packet) -> Effects:
        self._check_peer(source)
        if not isinstance(packet, Cast):
            raise misplaced(source, packet)
        run = packet.run
        if run.origin != source:
            raise ProtocolViolation(source, f"it passed on a run of member {run.origin}")
        if not run.is_sound():
            raise ProtocolViolation(source, UNSOUND)
        early = self.early[source]
        index = bisect_left(early, run.first, key=_first)
        if run.end <= self.next[source] or (index < len(early) and early[index] == run):
            return NOTHING
        seen = early[index - 1].end if index else self.next[source]
        if run.first < seen or (index < len(early) and run.end > early[index].first):
            raise ProtocolViolation(source, f"its messages {run.first} to {run.end - 1} overlap others that it sent")
        if run.first > self.next[source]:
            if self.held + run.count > self.options.held:
                raise HoldBackFull(f"member {self.me} holds back {self.held} of at most {self.options.held} messages")
            early.insert(index, run)
            self.held += run.count
            return NOTHING
        return self._deliver_from(run)

    def _deliver_from(self, run: Run) -> Effects:
        """Deliver the run and all that were held back only for it."""
        early = self.early[run.origin]
        effects = [Deliver(run)]
        end = run.end
        for later in early:
            if later.first != end:
                break
            effects.append(Deliver(later))
            self.held -= later.count
            end = later.end
        del early[: len(effects) - 1]
        self.next[run.origin] = end
        return effects

    def remainder(self, packets: Iterable[Packet], delivered: Sequence[int]) -> Sequence[Deliver]:
        runs = [packet.run for packet in packets if isinstance(packet, Cast)]
        left = [run for run in runs if run.first >= delivered[run.origin]]
        return [Deliver(run) for run in sorted(left, key=lambda run: (run.origin, run.first))]

    def held_back(self) -> int:
        return self.held

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(run, (origin,), f"message {origin}:{self.next[origin]} has not arrived")
            for origin, early in enumerate(self.early)
            for run in early
        ]


def _first(run: Run) -> int:
    return run.first
