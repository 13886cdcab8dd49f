"""Normal operation in one view: runs the ordering protocol, and keeps track of what is held, stable and delivered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

import msgspec

from quire.model.errors import HoldBackFull, ProtocolViolation, WindowFull
from quire.model.messages import Run, make_run
from quire.model.packets import Packet
from quire.protocols import contract
from quire.protocols.registry import create
from quire.views.closure import causes_first
from quire.views.core import Core
from quire.views.effects import Send
from quire.views.hindrance import Hindrance
from quire.views.knowledge import Knowledge
from quire.views.packets import Control, Data, Entry, Have, Known, Previous
from quire.views.reads import Reads
from quire.views.records import Delivered, Kept, Sent, Took
from quire.views.relaying import relays_to_blame, to_blame
from quire.views.stock import Stock
from quire.views.view import View
from quire.views.witnessing import Witnessing


class Ordering:
    def __init__(self, core: Core, view: View, rank: int) -> None:
        settings, members = core.settings, len(view.members)
        self.view, self.rank = view, rank
        # A process that joins through a contact knows no founders, and has nothing to order before it is in a view.
        self.protocol = create(settings.protocol, rank, max(1, members), dict(settings.options), view.clusters())
        self.stock = Stock(members)
        self.knowledge = Knowledge(view, rank, settings.tie)
        self.reads = Reads(view, settings.tie)
        self.delivered = [0] * members
        self.sent = 0
        self._run_max = min(settings.run_max, self.protocol.longest_run())
        self._core = core
        self._journal, self._uniform = settings.journal, settings.uniform
        self._soon = (settings.outstanding + 3) // 4, settings.outstanding_bytes // 4
        """After so many delivered messages, or with so many bytes kept, the sender is told, so that its window opens."""
        self._others = [(each.name, each.incarnation) if at != rank else None for at, each in enumerate(view.members)]
        """The name and incarnation of each other member, which packets are addressed to."""
        self._queue: deque[Run] = deque()
        """Runs that the protocol has put in order, and that are not known to be safe yet."""
        self._sessions: list[tuple[str, int]] = [("", 0)] * members
        """For each member, its session, and the number of the operation that is, or would be, its message 0 in this view."""
        self._backlog: dict[int, deque[Data | Control]] = {}
        """For each member whose packet the protocol had no room for, that packet and everything that came after it."""
        self._witnessing = Witnessing(view, rank, settings)
        self._told = [0] * members
        """How many messages of each member this one has said that it has delivered."""
        self._unsaid: Packet | None = None
        """The latest control packet of the protocol for all members, of which only the latest counts. It is sent at the end of
        a turn, if another member waits for it and no messages of this member, which say as much, were sent meanwhile."""
        self._said: Packet | None = None
        """The last packet of the protocol that was sent to all members."""
        self._held_at: deque[tuple[int, int, int]] = deque()
        self._delivered_at: deque[tuple[int, int, int]] = deque()
        """(record, member, count): once the record is durable, so many messages of the member are durably held or delivered."""

    # Sending.

    def pump(self) -> None:
        """Send submitted operations while the send window has room."""
        core, settings = self._core, self._core.settings
        while core.operations.is_sendable() and core.mode == "normal" and self._has_room():
            number, batch = core.operations.next_batch(self._run_max, settings.run_bytes)
            run = make_run(self.rank, self.sent, batch.payloads, batch.lengths)
            try:
                effects = self.protocol.submit(run)
            except WindowFull:
                return
            self._sessions[self.rank] = (core.session, number - self.sent)
            self.sent += run.count
            core.operations.sent(run.count)
            self._perform(effects)
            self._hold(self.rank)
            self.release()

    def _has_room(self) -> bool:
        """Whether the send window has room: not too many of this member's messages, or bytes, are unstable."""
        settings, under_way = self._core.settings, self.sent - self.knowledge.stable(self.rank)
        return under_way < settings.outstanding and self.stock.bytes[self.rank] < settings.outstanding_bytes

    def known(self) -> Known:
        return self.knowledge.mine()

    def _known_to(self, to: tuple[int, ...] | None) -> Known:
        """The acknowledgement to put into a packet to these members (None: to all), noted as sent if it goes to all."""
        known = self.knowledge.mine()
        if to is None:
            self._told = list(known.delivered)
            self._witnessing.told_all(known.held)
        return known

    def _perform(self, effects: contract.Effects) -> None:
        """Carry out the effects of the protocol."""
        for effect in effects:
            if isinstance(effect, contract.Deliver):
                self._queue.append(effect.run)
                if not self._journal:
                    self._witnessing.is_in_order(effect.run)
            elif (run := effect.packet.carried()) is None:
                self._say(effect)
            elif run.origin == self.rank:
                self._send_data(effect)
            else:
                self._pass_on(effect, run)

    def _say(self, effect: contract.Send) -> None:
        if effect.to is None and effect.packet.latest_counts:
            self._unsaid = effect.packet
        else:
            self._send_control(effect.packet, effect.to)

    def _send_control(self, packet: Packet, to: tuple[int, ...] | None) -> None:
        if to is None:
            self._said = packet
        self._to_members(Control(self.view.epoch, packet, self._known_to(to)), to)

    def end_turn(self) -> None:
        """All packets that came together are handled: send the control packets and acknowledgements that others wait for."""
        packet = self._unsaid
        if packet is not None and self.protocol.is_awaited(self._said):
            self._unsaid = None
            self._send_control(packet, None)
        else:
            self._tell(self._witnessing.take(self.stock.count))
        self._tell_delivered()

    def _send_data(self, effect: contract.Send) -> None:
        """Send a run of this member. The protocol may send it to some members at a time, each in a packet of its own."""
        packet, to = effect.packet, effect.to
        session, base = self._sessions[self.rank]
        run = packet.carried()
        assert run is not None
        if to is None:
            self._unsaid, self._said = None, packet
        causes = tuple(self.delivered) if self._core.settings.causal else ()
        if causes:
            causes = (*causes[: self.rank], run.first, *causes[self.rank + 1 :])
        floor = self.knowledge.stable(self.rank)
        data = Data(self.view.epoch, packet, session, base + run.first, causes, floor, self._known_to(to))
        if self.stock.add(data) and self._journal:
            self._core.save(Sent(data.without_messages()))
        self._to_members(data, to)

    def _pass_on(self, effect: contract.Send, run: Run) -> None:
        """Relay a run of another member, in a packet of this member's protocol. The origin's other fields stay the same."""
        data = self.stock.find(run)
        passed_on = msgspec.structs.replace(data, packet=effect.packet, known=self._known_to(effect.to))
        self._to_members(passed_on, effect.to)

    def _to_members(self, packet: Data | Control | Have, ranks: tuple[int, ...] | None) -> None:
        for other in self._others if ranks is None else [self._others[rank] for rank in ranks]:
            if other is not None:
                self._core.out.append(Send(packet, (other[0],), other[1]))

    # Receiving.

    def take(self, source: int, packet: Data | Control) -> None:
        """Take a packet of the protocol from another member. Raises ProtocolViolation where no correct member sends it."""
        if packet.known is not None:
            self.knowledge.learn(source, packet.known)
        if source in self._backlog:
            self._backlog[source].append(packet)
        elif not self._took(source, packet):
            self._backlog[source] = deque([packet])
        self.release()

    def _took(self, source: int, packet: Data | Control) -> bool:
        """Give a packet to the protocol; returns whether it had room for it."""
        data = packet if isinstance(packet, Data) else None
        if data is not None:
            self._check(source, data.run)
        try:
            effects = self.protocol.receive(source, packet.packet)
        except HoldBackFull:
            return False
        if data is not None:
            origin = data.run.origin
            self.keep(data)
            self.knowledge.learn_floor(origin, data.floor)
        self._perform(effects)
        return True

    def _check(self, source: int, run: Run) -> None:
        """Raise ProtocolViolation where this is not the next run of its origin, or was relayed though the protocol does not
        relay. With relays, a run of this member may come back to it."""
        origin, relays = run.origin, self.protocol.relays
        if not (0 <= origin < len(self.delivered)) or (origin != source and not relays):
            raise ProtocolViolation(source, f"it passed on a run of member {origin}")
        expected = self.stock.count[origin]
        if run.end > expected if origin == self.rank else run.first != expected:
            raise ProtocolViolation(source, f"it sent message {run.first} of member {origin}, not {expected}")

    def keep(self, data: Data) -> bool:
        """Hold a run, whichever process it came from; returns whether it was new."""
        if not self.stock.add(data):
            return False
        run = data.run
        origin = run.origin
        self._sessions[origin] = (data.session, data.number - run.first)
        if self._journal:
            self._core.save(Took(data))
        else:
            # The origin holds its own run. Where there is a journal, it says so once that is durable.
            self.knowledge.holds(origin, origin, run.end)
        self._hold(origin)
        return True

    def _hold(self, origin: int) -> None:
        if self._journal:
            self._held_at.append((self._core.written(), origin, self.stock.count[origin]))
        else:
            self.knowledge.holds(self.rank, origin, self.stock.count[origin])

    def synced(self) -> None:
        """More of the journal is durable: acknowledge what it holds."""
        held = self._became_durable(self._held_at, self.knowledge.holds)
        self._became_durable(self._delivered_at, self.knowledge.has_delivered)
        if self._core.mode != "normal":
            return
        self._tell(self._witnessing.of(held))
        self.release()
        self.pump()

    def _became_durable(self, log: deque[tuple[int, int, int]], note: Callable[[int, int, int], None]) -> set[int]:
        """Returns the members of whose messages more are durable now."""
        more: set[int] = set()
        while log and self._core.is_durable(log[0][0]):
            _, origin, count = log.popleft()
            note(self.rank, origin, count)
            more.add(origin)
        return more

    def _tell(self, origins: Collection[int]) -> None:
        """Acknowledge messages of these members, to the members that wait for it."""
        if origins:
            self._to_members(Have(self.view.epoch, self.known()), self._witnessing.audience(origins))

    def heard(self, source: int, known: Known) -> None:
        """Take a packet in which a member says what it holds and has delivered."""
        self.knowledge.learn(source, known)
        self.release()
        self.pump()

    def _trim(self) -> None:
        """Drop the messages that are stable."""
        # Messages that are not delivered here are needed here, whatever the others say.
        self.stock.drop(map(min, self.knowledge.all_stable(), self.delivered))

    def _tell_delivered(self) -> None:
        """Tell senders what is delivered here before their send window is full."""
        delivered, (some, some_bytes) = self.knowledge.delivered[self.rank], self._soon
        late = []
        for origin, count in enumerate(delivered):
            many = some if self.stock.bytes[origin] < some_bytes else 1
            if self.delivered[origin] - count >= many:
                self._core.want_sync()
            if count - self._told[origin] >= many and origin != self.rank:
                late.append(origin)
        if late:
            for origin in late:
                self._told[origin] = delivered[origin]
            self._to_members(Have(self.view.epoch, self.known()), tuple(late))

    # Delivering.

    def release(self) -> None:
        """Deliver the runs that are safe (without uniform delivery, all) in the order of the protocol."""
        moved = True
        while moved:
            while self._queue and (not self._uniform or self._is_safe(self._queue[0])):
                self.deliver(self._queue.popleft())
            moved = bool(self._backlog) and self._retry()
        self._trim()
        if self.reads.is_asking():
            for token in self.reads.ready(self.delivered):
                self._core.read_is_ready(token)

    def _is_safe(self, run: Run) -> bool:
        return self.knowledge.is_safe(run.origin, run.end)

    def _retry(self) -> bool:
        """Offer the protocol again the packets that it had no room for; returns whether that put any run in order."""
        moved = False
        for source, packets in list(self._backlog.items()):
            while packets and self._took(source, packets[0]):
                packets.popleft()
                moved = True
            if not packets:
                del self._backlog[source]
        return moved and bool(self._queue)

    def deliver(self, run: Run) -> None:
        core, origin = self._core, run.origin
        session, base = self._sessions[origin]
        name, members = self.view.members[origin].name, len(self.view.members)
        self.delivered[origin] = run.end
        if self._journal:
            # The run is in the journal already, so only the senders' windows wait for this record.
            self._delivered_at.append((core.note(Delivered(origin, run.end)), origin, run.end))
        else:
            self.knowledge.has_delivered(self.rank, origin, run.end)
        core.deliver(Entry(self.view.epoch, members, name, origin, run, session, base + run.first))

    def deliver_remainder(self, cut: tuple[int, ...]) -> None:
        """The view ends: deliver the rest of the cut."""
        self._queue.clear()
        left = self.stock.within(cut)
        if self.protocol.relays:
            for data in causes_first(left):
                if data.run.first >= self.delivered[data.run.origin]:
                    self.deliver(data.run)
            return
        for delivery in self.protocol.remainder([data.packet for data in left], self.delivered):
            self.deliver(delivery.run)

    def operation_before(self, origin: int, count: int) -> int:
        """The number, in its session, of the last of the first `count` messages of a member."""
        return self._sessions[origin][1] + count - 1

    def restore(self, kept: Kept | None, runs: Iterable[Data], delivered: Iterable[Entry]) -> None:
        """Restore from the journal what was held and delivered in this view; `kept`: the record of what was dropped from it."""
        if not self.view.members:
            return
        if kept is not None:
            self.stock.count, self.delivered = list(kept.held), list(kept.delivered)
            self._sessions = list(kept.sessions)
        for data in runs:
            self.stock.add(data)
            self._sessions[data.run.origin] = (data.session, data.number - data.run.first)
        for entry in delivered:
            self.delivered[entry.rank] = entry.run.end
            self._sessions[entry.rank] = (entry.session, entry.number - entry.run.first)
            self.stock.count[entry.rank] = max(self.stock.count[entry.rank], entry.run.end)
        self.sent = self.stock.count[self.rank]
        self.knowledge.restore(self.stock.count, self.delivered)

    def to_keep(self, previous: Previous | None) -> Kept:
        """The record of everything that is still needed of the journal so far, in normal operation."""
        core, stock = self._core, self.stock
        return Kept(
            # A process that has been in a view has no vote in the founding one.
            started=core.started(founds=False),
            view=self.view,
            previous=previous,
            position=core.position,
            table=dict(core.table),
            delivered=tuple(self.delivered),
            held=tuple(map(stock.dropped, range(len(self.view.members)))),
            sessions=tuple(self._sessions),
            runs=tuple(stock.within(stock.count)),
            released=core.operations.released,
            operations=core.operations.kept(),
        )

    def hindrances(self) -> list[Hindrance]:
        """All messages that are held back here, the members that they wait for, and why."""
        unknown = "its position in the order is unknown without a message from"
        found = [self._hindrance(each.run, each.members, unknown) for each in self.protocol.waiting()]
        for run in self._queue:
            lacking = self._to_blame(run.origin, self.knowledge.lacking(run.origin, run.end))
            found.append(self._hindrance(run, lacking, "it is not known to be held by a majority without word from"))
        if not self._has_room():
            behind = self._names(self._to_blame(self.rank, self.knowledge.behind(self.rank)))
            why = f"so much is under way that more waits until it is delivered by {', '.join(behind)}"
            first = self.operation_before(self.rank, self.sent)
            found.append(Hindrance(self._core.me.name, first, max(0, self._core.operations.last - first), behind, why))
        return found

    def _to_blame(self, origin: int, ranks: Iterable[int]) -> list[int]:
        return to_blame(self.protocol, origin, [rank for rank in ranks if rank != self.rank])

    def slow_relays(self) -> dict[str, int]:
        """The relays that lack some of what this member sent, and how much of it each has taken."""
        late = [rank for rank in self.knowledge.lacking(self.rank, self.sent) if rank != self.rank]
        found = relays_to_blame(self.protocol, self.rank, late)
        return {self.view.members[rank].name: self.knowledge.held[rank][self.rank] for rank in found}

    def _hindrance(self, run: Run, ranks: Iterable[int], why: str) -> Hindrance:
        names = self._names(ranks)
        first = self.operation_before(run.origin, run.first)
        return Hindrance(self.view.members[run.origin].name, first, run.count, names, f"{why} {', '.join(names)}")

    def _names(self, ranks: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.view.members[rank].name for rank in ranks if rank != self.rank)

    def waits_for(self) -> set[str]:
        """The members from which this one needs packets to make progress."""
        return {name for each in self.hindrances() for name in each.waits_for}
