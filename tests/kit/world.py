"""A group without a clock or a network: protocol objects, and channels between them from which packets are taken.

A world does nothing by itself. A test submits payloads and takes packets, one atomic step at a time, in any order
that it likes; `steps` says what can happen next. Every delivery is recorded, with the causal history of every
message, so that the oracles can judge what came of it.

A crash ends the view that the world is, in three kinds of steps, which mix with all others. `crash` silences a member
and loses the tail of what it had under way. Each survivor then freezes at a time of its own: it says which packets it
has, and takes and sends nothing more. When all have, each delivers what is left of all these packets.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from quire.model.errors import HoldBackFull, WindowFull
from quire.model.messages import MessageId, make_run
from quire.model.packets import Packet
from quire.protocols.clusters.site import Site
from quire.protocols.contract import Deliver, Effects, Protocol, Send
from tests.kit.oracles import History

Factory = Callable[[int, int], Protocol]


class Submit(msgspec.Struct, frozen=True):
    """A run of these payloads, for these members, or for everybody."""

    member: int
    payloads: tuple[bytes, ...]
    to: tuple[int, ...] | None = None


class Take(msgspec.Struct, frozen=True):
    """Take the packet at `index` of the channel from `source` to `dest`. With `again`, a copy stays on the channel."""

    source: int
    dest: int
    index: int = 0
    again: bool = False


class Freeze(msgspec.Struct, frozen=True):
    survivor: int


class End(msgspec.Struct, frozen=True):
    survivor: int


Step = Submit | Take | Freeze | End


class Delivery(NamedTuple):
    message: MessageId
    order_key: tuple[int, ...] | None


class World:
    """`members` protocol objects made by `factory(me, members)`, and a channel for each ordered pair.

    Channels are FIFO; with `reordering`, any packet of a channel may be taken.
    """

    def __init__(self, members: int, factory: Factory, *, reordering: bool = False) -> None:
        self.members = members
        self.reordering = reordering
        self.protocols = [factory(me, members) for me in range(members)]
        self.channels: dict[tuple[int, int], deque[Packet]] = {
            (source, dest): deque() for source in range(members) for dest in range(members) if source != dest
        }
        self.sent: dict[MessageId, bytes] = {}
        self.past: dict[MessageId, frozenset[MessageId]] = {}
        self.dests: dict[MessageId, frozenset[int]] = {}
        self.deliveries: list[list[Delivery]] = [[] for _ in range(members)]
        self.events: list[list[tuple[str, MessageId]]] = [[] for _ in range(members)]
        """Per member, what it sent and delivered, in local order."""
        self.packets: list[Packet] = []
        """Everything that was put on the wire, once for each Send."""
        self.copies = 0
        """How many packets that is point to point."""
        self.held_back_most = 0
        self.refused_submissions = 0
        self.refused_packets = 0
        self.flushed = 0
        """How many packets came to a survivor only at the end of the view."""
        self.crashed: int | None = None
        self._known: list[set[MessageId]] = [set() for _ in range(members)]
        self._held: list[dict[tuple[int, int], Packet]] = [{} for _ in range(members)]
        """Per member, every packet with a run that it has, by the run's origin and first number."""
        self._frozen: set[int] = set()
        self._ended: set[int] = set()
        self._count = [0] * members

    def submit(self, member: int, payloads: Sequence[bytes], to: tuple[int, ...] | None = None) -> bool:
        """Send one run, to everybody or to some. False, and nothing happened, if the member's window is full."""
        first = self._count[member]
        run = make_run(member, first, payloads)
        protocol = self.protocols[member]
        audience = protocol.audience() if isinstance(protocol, Site) else None
        try:
            effects = protocol.submit(run) if to is None else protocol.send(run, to)
        except WindowFull:
            self.refused_submissions += 1
            return False
        self._count[member] = run.end
        for seq, payload in enumerate(payloads, first):
            message = MessageId(member, seq)
            self.sent[message] = payload
            self.past[message] = frozenset(self._known[member])
            if to is not None or audience is not None:
                self.dests[message] = frozenset(to if to is not None else audience or ())
            self._known[member].add(message)
            self.events[member].append(("send", message))
        self._perform(member, effects)
        return True

    def take(self, source: int, dest: int, index: int = 0, again: bool = False) -> bool:
        """Have the member `dest` receive a packet of `source`. False, and nothing happened, if it has no room."""
        channel = self.channels[source, dest]
        try:
            effects = self.protocols[dest].receive(source, channel[index])
        except HoldBackFull:
            self.refused_packets += 1
            return False
        self._hold(dest, channel[index])
        if not again:
            del channel[index]
        self._perform(dest, effects)
        return True

    def crash(self, member: int, lost: Mapping[int, int]) -> None:
        """Silence the member. Of what it had under way to each other, the last `lost[dest]` packets never arrive."""
        assert self.crashed is None, "one member crashes at most"
        self.crashed = member
        for dest in self.survivors():
            self.channels[dest, member].clear()
            for _ in range(lost.get(dest, 0)):
                self.channels[member, dest].pop()

    def freeze(self, survivor: int) -> None:
        self._frozen.add(survivor)

    def end(self, survivor: int) -> None:
        union = {key: packet for member in self._frozen for key, packet in self._held[member].items()}
        self.flushed += len(union) - len(self._held[survivor])
        self._ended.add(survivor)
        delivered = Counter(message.origin for message in self.log(survivor))
        counts = [delivered[member] for member in range(self.members)]
        self._perform(survivor, self.protocols[survivor].remainder(union.values(), counts))

    def is_frozen(self, member: int) -> bool:
        return member in self._frozen

    def survivors(self) -> list[int]:
        return [member for member in range(self.members) if member != self.crashed]

    def steps(self) -> list[Step]:
        """Everything but a submission that can happen now."""
        steps: list[Step] = []
        for (source, dest), channel in self.channels.items():
            if channel and dest != self.crashed and dest not in self._frozen:
                steps += [Take(source, dest, index) for index in range(len(channel) if self.reordering else 1)]
        if self.crashed is not None:
            running = [member for member in self.survivors() if member not in self._frozen]
            steps += map(Freeze, running)
            if not running:
                steps += [End(member) for member in self.survivors() if member not in self._ended]
        return steps

    def perform(self, step: Step) -> bool:
        """Do one step. False, and nothing happened, if the member has no room for what it would take."""
        if isinstance(step, Submit):
            return self.submit(step.member, step.payloads, step.to)
        if isinstance(step, Take):
            return self.take(step.source, step.dest, step.index, step.again)
        if isinstance(step, Freeze):
            self.freeze(step.survivor)
        else:
            self.end(step.survivor)
        return True

    def drain(self, *, leave: Sequence[tuple[int, int]] = ()) -> None:
        """Take packets, oldest channel first, until none is left but on the channels to `leave` alone."""
        moved = True
        while moved:
            moved = False
            for (source, dest), channel in self.channels.items():
                if channel and dest != self.crashed and (source, dest) not in leave:
                    moved = self.take(source, dest) or moved

    def log(self, member: int) -> list[MessageId]:
        return [delivery.message for delivery in self.deliveries[member]]

    def history(self) -> History:
        """What the members that did not crash delivered so far."""
        return History(self.past, {member: self.log(member) for member in self.survivors()}, self.dests)

    def act(self, member: int, effects: Effects) -> None:
        """Perform what some other input of the member's protocol asks for."""
        self._perform(member, effects)

    def _perform(self, member: int, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._send(member, effect)
            else:
                self._deliver(member, effect)
        self.held_back_most = max(self.held_back_most, self.protocols[member].held_back())

    def _send(self, member: int, send: Send) -> None:
        to = [other for other in range(self.members) if other != member] if send.to is None else send.to
        self.packets.append(send.packet)
        self._hold(member, send.packet)
        self.copies += len(to)
        for dest in to:
            if dest != self.crashed:
                self.channels[member, dest].append(send.packet)

    def _hold(self, member: int, packet: Packet) -> None:
        if (run := packet.carried()) is not None:
            self._held[member][run.origin, run.first] = packet

    def _deliver(self, member: int, delivery: Deliver) -> None:
        delivered = list(self.protocols[member].messages(delivery))
        assert len(delivered) == delivery.run.count
        known = self._known[member]
        for each in delivered:
            message = MessageId(each.origin, each.seq)
            assert each.payload == self.sent.get(message, each.payload), f"member {member} delivered {message} with other bytes"
            self.deliveries[member].append(Delivery(message, each.order_key))
            self.events[member].append(("deliver", message))
            known.add(message)
            known.update(self.past.get(message, ()))


def misplaced_key(world: World) -> str | None:
    """A sentence on the first order key that contradicts the order of delivery, or that members do not share."""
    keys: dict[MessageId, tuple[int, ...]] = {}
    for member in world.survivors():
        last: tuple[int, ...] | None = None
        for message, key in world.deliveries[member]:
            if key is None:
                continue
            if last is not None and key <= last:
                return f"member {member} delivered {message} with key {key} after key {last}"
            if keys.setdefault(message, key) != key:
                return f"{message} has key {keys[message]} and, at member {member}, key {key}"
            last = key
    return None
