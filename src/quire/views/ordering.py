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
from quire.views.flow import Flow
from quire.views.holders import Holders
from quire.views.knowledge import Knowledge
from quire.views.packets import Control, Data, Entry, Have, Known, Previous
from quire.views.reads import Reads
from quire.views.records import Delivered, Kept, Sent, Took
from quire.views.unstable import UnstableRuns
from quire.views.view import View


class Ordering:
    def __init__(self, core: Core, view: View, rank: int) -> None:
        settings, members = core.settings, len(view.members)
        self.view, self.rank = view, rank
        # A process that joins through a contact knows no founders, and has nothing to order before it is in a view.
        self.protocol = create(settings.protocol, rank, max(1, members), dict(settings.options), view.clusters())
        self.unstable = UnstableRuns(members, settings.outstanding)
        self.knowledge = Knowledge(view, rank, settings.tie)
        self.reads = Reads(view, settings.tie)
        self.delivered = [0] * members
        self.sent = 0
        self._run_max = min(settings.run_max, self.protocol.longest_run())
        self._core = core
        self._journal, self._uniform = settings.journal, settings.uniform
        self._flow = Flow(settings, self.unstable, self.knowledge, rank)
        others = (*view.members[rank + 1 :], *view.members[:rank])
        self._everybody = tuple(other.name for other in others), tuple(other.incarnation for other in others)
        """The names and incarnations of all other members, which packets are addressed to. Those that come next are written to
        first: they are this member's witnesses, and where all send, they wait for it to send their next messages."""
        self._names = view.names()
        self.queue: deque[Run] = deque()
        """Runs that the protocol has put in order, and that are not known to be safe yet."""
        self._sessions: list[tuple[str, int]] = [("", 0)] * members
        """For each member, its session, and the number of the operation that is, or would be, its message 0 in this view."""
        self._unsettled = False
        """Whether packets were taken since `release` last looked what can be delivered."""
        self._backlog: dict[int, deque[Data | Control]] = {}
        """For each member whose packet the protocol had no room for, that packet and everything that came after it."""
        self._holders = Holders(view, rank, settings)
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
        while core.operations.is_sendable() and core.mode == "normal" and self.has_room():
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
            self._hold(self.rank, self.sent)
            self.release()

    def has_room(self) -> bool:
        """Whether the send window has room: not too many of this member's messages, or bytes, are unstable."""
        if not self._flow.has_room(self.sent):
            return False
        if self._flow.has_room_for_bytes():
            return True
        self.trim()
        return self._flow.has_room_for_bytes()

    def known(self) -> Known:
        return self.knowledge.mine()

    def _known_to(self, to: tuple[int, ...] | None) -> Known:
        """The acknowledgement to put into a packet to these members (None: to all), noted as sent if it goes to all."""
        known = self.knowledge.mine()
        if to is None:
            self._flow.told_all(known.delivered)
            self._holders.told_all(known.held)
        return known

    def _perform(self, effects: contract.Effects) -> None:
        """Carry out the effects of the protocol."""
        for effect in effects:
            if isinstance(effect, contract.Deliver):
                run = effect.run
                self.queue.append(run)
                if not self._journal:
                    self._holders.is_in_order(run.origin, run.first + run.count)
            elif (carried := effect.packet.carried()) is None:
                self._say(effect)
            elif carried.origin == self.rank:
                self._send_data(effect, carried)
            else:
                self._pass_on(effect, carried)

    def _say(self, effect: contract.Send) -> None:
        if effect.to is None and effect.packet.latest_counts:
            self._unsaid = effect.packet
        else:
            self._send_control(effect.packet, effect.to)

    def _send_control(self, packet: Packet, to: tuple[int, ...] | None) -> None:
        if to is None:
            self._said = packet
        self._to_members(Control(self.view.epoch, packet, self._known_to(to)), to)

    def owes(self) -> bool:
        """Whether an acknowledgement is due that this member's next message would carry."""
        return self._unsaid is not None or self._holders.owes()

    def end_turn(self) -> None:
        """All packets that came together are handled: send the control packets and acknowledgements that others wait for."""
        packet = self._unsaid
        if packet is not None and self.protocol.is_awaited(self._said):
            self._unsaid = None
            self._send_control(packet, None)
        elif self._holders.owes():
            self._tell(self._holders.take(self.unstable.count))
        late, waits_for_disk = self._flow.late(self.delivered)
        if waits_for_disk:
            self._core.want_sync()
        if late:
            self._to_members(Have(self.view.epoch, self.known()), tuple(late))

    def _send_data(self, effect: contract.Send, run: Run) -> None:
        """Send a run of this member. The protocol may send it to some members at a time, each in a packet of its own."""
        packet, to = effect.packet, effect.to
        session, base = self._sessions[self.rank]
        if to is None:
            self._unsaid, self._said = None, packet
        causes = tuple(self.delivered) if self._core.settings.causal else ()
        if causes:
            causes = (*causes[: self.rank], run.first, *causes[self.rank + 1 :])
        floor = self.knowledge.stable(self.rank)
        data = Data(self.view.epoch, packet, session, base + run.first, causes, floor, self._known_to(to))
        if self.unstable.add(data, run) and self._journal:
            self._core.save(Sent(data.without_messages()))
        self._to_members(data, to)

    def _pass_on(self, effect: contract.Send, run: Run) -> None:
        """Relay a run of another member, in a packet of this member's protocol. The origin's other fields stay the same."""
        data = self.unstable.find(run)
        passed_on = msgspec.structs.replace(data, packet=effect.packet, known=self._known_to(effect.to))
        self._to_members(passed_on, effect.to)

    def _to_members(self, packet: Data | Control | Have, ranks: tuple[int, ...] | None) -> None:
        if ranks is None:
            to = self._everybody
        else:
            others = [self.view.members[rank] for rank in ranks if rank != self.rank]
            to = tuple(other.name for other in others), tuple(other.incarnation for other in others)
        if to[0]:
            self._core.out.append(Send(packet, *to))

    # Receiving.

    def take(self, source: int, packet: Data | Control | Have) -> None:
        """Take a packet from another member. Raises ProtocolViolation where no correct member sends it. What can be delivered
        then is delivered by `settle`."""
        self._unsettled = True
        if packet.known is not None:
            self.knowledge.learn(source, packet.known)
        if isinstance(packet, Have):
            return
        if source in self._backlog:
            self._backlog[source].append(packet)
        elif not self._took(source, packet):
            self._backlog[source] = deque([packet])

    def _took(self, source: int, packet: Data | Control) -> bool:
        """Give a packet to the protocol; returns whether it had room for it."""
        run = packet.packet.carried() if isinstance(packet, Data) else None
        if run is not None and (run.origin != source or run.first != self.unstable.count[source]):
            self._check(source, run)
        try:
            effects = self.protocol.receive(source, packet.packet)
        except HoldBackFull:
            return False
        if isinstance(packet, Data) and run is not None:
            self.keep(packet, run)
        if effects:
            self._perform(effects)
        return True

    def settle(self) -> None:
        """Deliver and send whatever the packets so far allow."""
        if self._unsettled:
            self.release()
        if self._core.operations.is_sendable():
            self.pump()

    def _check(self, source: int, run: Run) -> None:
        """Raise ProtocolViolation where this is not the next run of its origin, or was relayed though the protocol does not
        relay. With relays, a run of this member may come back to it."""
        origin, relays = run.origin, self.protocol.relays
        if origin != source and not (relays and 0 <= origin < len(self.delivered)):
            raise ProtocolViolation(source, f"it passed on a run of member {origin}")
        expected = self.unstable.count[origin]
        if run.end > expected if origin == self.rank else run.first != expected:
            raise ProtocolViolation(source, f"it sent message {run.first} of member {origin}, not {expected}")

    def keep(self, data: Data, run: Run) -> None:
        """Hold a run, whichever process the packet with it came from."""
        origin = run.origin
        self.knowledge.learn_floor(origin, data.floor)
        if not self.unstable.add(data, run):
            return
        self._sessions[origin] = (data.session, data.number - run.first)
        self._flow.moved.add(origin)
        if self._journal:
            self._core.save(Took(data))
        self._hold(origin, run.first + run.count)
        if self.unstable.has_grown:
            self.trim()

    def _hold(self, origin: int, count: int) -> None:
        """So many messages of a member are here. Where there are journals, each member says so once that is durable."""
        if self._journal:
            self._held_at.append((self._core.written(), origin, count))
        else:
            self.knowledge.came(origin, count)

    def synced(self) -> None:
        """More of the journal is durable: acknowledge what it holds."""
        held = self._became_durable(self._held_at, self.knowledge.holds)
        self._became_durable(self._delivered_at, self.knowledge.has_delivered)
        if self._core.mode != "normal":
            return
        self._tell(self._holders.of(held))
        self.release()
        self.pump()

    def _became_durable(self, log: deque[tuple[int, int, int]], note: Callable[[int, int], None]) -> set[int]:
        """Returns the members of whose messages more are durable now."""
        more: set[int] = set()
        while log and self._core.is_durable(log[0][0]):
            _, origin, count = log.popleft()
            note(origin, count)
            self._flow.moved.add(origin)
            more.add(origin)
        return more

    def _tell(self, origins: Collection[int]) -> None:
        """Acknowledge messages of these members, to the members that wait for it."""
        if origins:
            self._to_members(Have(self.view.epoch, self.known()), self._holders.audience(origins))

    def heard(self, source: int, known: Known) -> None:
        """Take a packet in which a member says what it holds and has delivered."""
        self.knowledge.learn(source, known)
        self._unsettled = True

    def trim(self) -> None:
        """Drop the messages that are stable."""
        # Messages that are not delivered here are needed here, whatever the others say.
        stable = list(map(min, self.knowledge.all_stable(), self.delivered))
        self.unstable.drop(stable)
        # Every member has delivered them, so every later view has them: they will not have to be sent again.
        self._core.operations.release(self.operation_before(self.rank, stable[self.rank]))

    # Delivering.

    def release(self) -> None:
        """Deliver the runs that are safe (without uniform delivery, all) in the order of the protocol."""
        self._unsettled, moved, queue = False, True, self.queue
        while moved:
            while queue:
                run = queue[0]
                if self._uniform and not self.knowledge.is_safe(run.origin, run.first + run.count):
                    break
                self.deliver(queue.popleft())
            moved = bool(self._backlog) and self._retry()
        if self.unstable.has_grown:
            self.trim()
        if self.reads.rounds:
            for token in self.reads.ready(self.delivered):
                self._core.read_is_ready(token)

    def _retry(self) -> bool:
        """Offer the protocol again the packets that it had no room for; returns whether that put any run in order."""
        moved = False
        for source, packets in list(self._backlog.items()):
            while packets and self._took(source, packets[0]):
                packets.popleft()
                moved = True
            if not packets:
                del self._backlog[source]
        return moved and bool(self.queue)

    def deliver(self, run: Run) -> None:
        core, origin, end = self._core, run.origin, run.first + run.count
        session, base = self._sessions[origin]
        self.delivered[origin] = end
        self._flow.moved.add(origin)
        if self._journal:
            # The run is in the journal already, so only the senders' windows wait for this record.
            self._delivered_at.append((core.note(Delivered(origin, end)), origin, end))
        else:
            self.knowledge.has_delivered(origin, end)
        names = self._names
        core.deliver(Entry(self.view.epoch, len(names), names[origin], origin, run, session, base + run.first))

    def deliver_remainder(self, cut: tuple[int, ...]) -> None:
        """The view ends: deliver the rest of the cut."""
        self.queue.clear()
        left = self.unstable.within(cut)
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
            self.unstable.count, self.delivered = list(kept.held), list(kept.delivered)
            self._sessions = list(kept.sessions)
        for data in runs:
            run = data.run
            self.unstable.add(data, run)
            self._sessions[run.origin] = (data.session, data.number - run.first)
        for entry in delivered:
            self.delivered[entry.rank] = entry.run.end
            self._sessions[entry.rank] = (entry.session, entry.number - entry.run.first)
            self.unstable.count[entry.rank] = max(self.unstable.count[entry.rank], entry.run.end)
        self.sent = self.unstable.count[self.rank]
        self.knowledge.restore(self.unstable.count, self.delivered)

    def to_keep(self, previous: Previous | None) -> Kept:
        """The record of everything that is still needed of the journal so far, in normal operation."""
        core, unstable = self._core, self.unstable
        self.trim()
        return Kept(
            # A process that has been in a view has no vote in the founding one.
            started=core.started(founds=False),
            view=self.view,
            previous=previous,
            position=core.position,
            table=dict(core.table),
            delivered=tuple(self.delivered),
            held=tuple(map(unstable.dropped, range(len(self.view.members)))),
            sessions=tuple(self._sessions),
            runs=tuple(unstable.within(unstable.count)),
            released=core.operations.released,
            operations=core.operations.kept(),
        )
