"""Total order by agreement on timestamps (Skeen's algorithm): every member proposes one for each run, and the largest is final.

The origin multicasts a request with its run. Every member puts the run in its queue under a timestamp larger than
any it has seen, and proposes that timestamp to the origin. When all have answered, the origin takes the largest
proposal, with the proposer's id to tell equal timestamps apart, and multicasts it as final. A member re-queues
the run under its final key; the head of the queue is delivered once its key is final. A key only ever grows,
and a run still to come is given a larger one than any that is final here, so nothing can get in before that
head. Two phases, and a round trip of the slowest member, pass before anybody delivers: this is what single-phase
ordering was set against.

Source: D. Skeen, unpublished, 1982; in K. Birman and T. Joseph, "Reliable Communication in the Presence of
Failures", ACM TOCS 5(1), 1987 (the ABCAST protocol).
Assumes: FIFO links that lose nothing. No member crashes. Membership is fixed.
Guarantees: integrity, agreement, one total order, and that order is causal.
Departures: the paper calls the order of ABCAST arbitrary, because it asks nothing of the links. Here they are FIFO
and a final timestamp advances the clock, and then the order is causal. Two runs of one origin reach every proposer
in the order sent, so each proposal for the second is larger and so is their maximum; a run sent after a delivery
is proposed by its own origin above the delivered key. Failures are left out; the paper's takeover by another
member is not built. A run is one request and is delivered whole. Timestamps far ahead of the clock are refused,
so that one poisoned clock cannot exhaust the numbers. The queue has a bound for each origin.
Cost: N+1 packets a run on a multicast network (request, N-1 proposals, final), 3(N-1) point to point.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec

from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation, WindowFull
from quire.model.messages import NUMBER_MAX, Run
from quire.model.orders import RELIABLE, Guarantee
from quire.model.packets import Packet
from quire.protocols.contract import NOTHING, UNSOUND, Deliver, Effect, Effects, Links, Protocol, Send, Waiting, misplaced

WINDOWS_HELD = 4
"""How many windows of messages a member holds back of each other one before it lets packets wait on their link.

Fewer could block the group for ever. While the run at the head of a queue lacks a proposal, what another origin can
have queued behind it was under way when that run came here, when it was sent, when that origin learnt of it, or
since: four windows. So with more than these, the head's final key is under way, on a link that is not full.
"""


class TwoPhaseOptions(msgspec.Struct, frozen=True, kw_only=True):
    outstanding: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 16
    """How many of its own messages a member may have undelivered."""
    lead: Annotated[int, msgspec.Meta(ge=1, le=1 << 62)] = 1 << 32
    """How far ahead of the local clock a timestamp may be."""


class Request(Packet, frozen=True, tag=1):
    """A run, to be put in every queue."""

    name: ClassVar[str] = "REQ"

    run: Run

    def carried(self) -> Run:
        return self.run


class Propose(Packet, frozen=True, tag=2):
    """The timestamp that a member proposes for the origin's run with this first number."""

    name: ClassVar[str] = "PROPOSE"

    number: int
    timestamp: int


class Final(Packet, frozen=True, tag=3):
    """The key of the origin's run with this first number: the largest proposal and who made it."""

    name: ClassVar[str] = "FINAL"

    number: int
    timestamp: int
    proposer: int


Key = tuple[int, int]
"""A timestamp and the member that proposed it. No member proposes a timestamp twice, so keys are unique."""


class Queued(msgspec.Struct, frozen=True):
    """A run that waits for its position: its key so far, and whether that is final."""

    run: Run
    key: Key
    final: bool


class Asked(msgspec.Struct, frozen=True):
    """An own request: who has yet to answer, and the largest proposal so far."""

    awaited: frozenset[int]
    largest: Key


class TwoPhase(Protocol):
    """One member of a group that agrees on a number for every run."""

    promises = RELIABLE | {Guarantee.TOTAL, Guarantee.ACYCLIC, Guarantee.CAUSAL, Guarantee.FIFO}
    links = Links.FIFO
    packets = (Request, Propose, Final)

    def __init__(self, me: int, members: int, options: TwoPhaseOptions) -> None:
        super().__init__(me, members)
        self.options = options
        self.clock = 0
        self.next = [0] * members
        """Per origin, the number of the first message that was not requested yet."""
        self.heard = [0] * members
        """Per member, the last timestamp that it proposed to this one."""
        self.asked: dict[int, Asked] = {}
        self.queued: dict[tuple[int, int], Queued] = {}
        """By origin and first number, what was not delivered yet."""
        self.queue: list[tuple[Key, tuple[int, int]]] = []
        """The keys so far, sorted, with the runs that have them."""
        self.undelivered = [0] * members
        """Per origin, how many of its messages are queued."""

    def longest_run(self) -> int:
        return self.options.outstanding

    def submit(self, run: Run) -> Effects:
        me, window = self.me, self.options.outstanding
        self._check_own(run, self.next[me])
        if self.clock >= NUMBER_MAX:
            raise BadInput("no timestamps are left; create a new group")
        if run.count > window:
            raise BadInput(f"a run of {run.count} messages never fits in a window of {window}; send smaller runs")
        if self.undelivered[me] + run.count > window:
            raise WindowFull(f"member {me} has {self.undelivered[me]} of at most {window} of its own messages undelivered")
        key = self._enqueue(run)
        others = frozenset(range(self.members)) - {me}
        if not others:
            return self._settle(run.origin, run.first, key)
        self.asked[run.first] = Asked(others, key)
        return (Send(Request(run)),)

    def receive(self, source: int, packet: Packet) -> Effects:
        self._check_peer(source)
        if isinstance(packet, Request):
            return self._on_request(source, packet.run)
        if isinstance(packet, Propose):
            return self._on_propose(source, packet)
        if isinstance(packet, Final):
            return self._on_final(source, packet)
        raise misplaced(source, packet)

    def _on_request(self, source: int, run: Run) -> Effects:
        if run.origin != source:
            raise ProtocolViolation(source, f"it passed on a run of member {run.origin}")
        if run.first != self.next[source]:
            raise ProtocolViolation(source, f"its next message is {self.next[source]}, not {run.first}")
        if not run.is_sound() or run.count > self.options.outstanding:
            raise ProtocolViolation(source, UNSOUND)
        if self.clock >= NUMBER_MAX:
            raise ProtocolViolation(source, "no timestamps are left")
        if self.undelivered[source] + run.count > WINDOWS_HELD * self.options.outstanding:
            raise HoldBackFull(f"member {self.me} holds back {self.undelivered[source]} messages of member {source}")
        timestamp, _ = self._enqueue(run)
        return (Send(Propose(run.first, timestamp), (source,)),)

    def _on_propose(self, source: int, proposal: Propose) -> Effects:
        number, timestamp = proposal.number, proposal.timestamp
        asked = self.asked.get(number)
        if asked is None or source not in asked.awaited:
            raise ProtocolViolation(source, f"it was not asked for a timestamp for {self.me}:{number}")
        if timestamp <= self.heard[source]:
            raise ProtocolViolation(source, f"it proposed {self.heard[source]} and then {timestamp}")
        self._check_lead(source, timestamp)
        self.heard[source] = timestamp
        awaited, largest = asked.awaited - {source}, max(asked.largest, (timestamp, source))
        if awaited:
            self.asked[number] = Asked(awaited, largest)
            return NOTHING
        del self.asked[number]
        return [Send(Final(number, *largest)), *self._settle(self.me, number, largest)]

    def _on_final(self, source: int, packet: Final) -> Effects:
        key = packet.timestamp, packet.proposer
        queued = self.queued.get((source, packet.number))
        if queued is None or queued.final:
            raise ProtocolViolation(source, f"{source}:{packet.number} does not wait for a final timestamp")
        if not 0 <= packet.proposer < self.members:
            raise ProtocolViolation(source, f"member {packet.proposer}, who proposed, is not in the group")
        if key < queued.key or (packet.proposer == self.me and key != queued.key):
            raise ProtocolViolation(source, f"its final key {key} cannot be, since member {self.me} proposed {queued.key[0]}")
        self._check_lead(source, packet.timestamp)
        index = bisect_left(self.queue, (key, (-1, -1)))
        if key != queued.key and index < len(self.queue) and self.queue[index][0] == key:
            raise ProtocolViolation(source, f"two runs have the key {key}")
        return self._settle(source, packet.number, key)

    def _check_lead(self, source: int, timestamp: int) -> None:
        if timestamp > min(self.clock + self.options.lead, NUMBER_MAX):
            raise ProtocolViolation(source, f"its timestamp {timestamp} is too far ahead of {self.clock}")

    def _enqueue(self, run: Run) -> Key:
        """Queue the run under this member's own proposal, a timestamp above all that it has seen."""
        self.clock += 1
        key = self.clock, self.me
        self.next[run.origin] = run.end
        self.undelivered[run.origin] += run.count
        self.queued[run.origin, run.first] = Queued(run, key, final=False)
        self.queue.append((key, (run.origin, run.first)))
        return key

    def _settle(self, origin: int, number: int, key: Key) -> list[Effect]:
        """Give the run its final key, and deliver what no undecided run can come before any longer."""
        name = (origin, number)
        queued = self.queued[name]
        self.clock = max(self.clock, key[0])
        self.queued[name] = Queued(queued.run, key, final=True)
        del self.queue[bisect_left(self.queue, (queued.key, name))]
        insort(self.queue, (key, name))
        delivered: list[Effect] = []
        for _, head in self.queue:
            if not self.queued[head].final:
                break
            ready = self.queued.pop(head)
            self.undelivered[head[0]] -= ready.run.count
            delivered.append(Deliver(ready.run, ready.key))
        del self.queue[: len(delivered)]
        return delivered

    def held_back(self) -> int:
        return sum(self.undelivered)

    def waiting(self) -> Sequence[Waiting]:
        waiting: list[Waiting] = []
        ahead: list[int] = []
        for _, (origin, number) in self.queue:
            queued = self.queued[origin, number]
            if queued.final:
                waiting.append(Waiting(queued.run, _distinct(ahead), "a run whose key is not final may come before it"))
                continue
            late = sorted(self.asked[number].awaited) if origin == self.me else [origin]
            what = "not every member has proposed a timestamp" if origin == self.me else "its final key has not arrived"
            waiting.append(Waiting(queued.run, tuple(late), what))
            ahead += late
        return waiting


def _distinct(members: list[int]) -> tuple[int, ...]:
    return tuple(sorted(set(members)))
