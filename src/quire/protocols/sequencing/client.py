"""A client of the sequencing service: joins and leaves groups, sends to any, and delivers the events of its own.

The application asks for one thing at a time: `find` or `create` a group, `join` or `leave` it, `multicast` to it, as a member
or not. The client retransmits what is not answered, follows groups that move, reports how far it has delivered, and delivers
events in the order that `delivery` allows. Where causal order matters, its *context*, how far it has seen each group, is sent
with its messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from quire.model.errors import ProtocolViolation
from quire.model.messages import Body, Run
from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effect, Effects, Node, Send
from quire.protocols.sequencing import errors
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.bodies import Bodies, Spreading, request
from quire.protocols.sequencing.contexts import Context, merge, prune
from quire.protocols.sequencing.delivery import HoldBack
from quire.protocols.sequencing.events import BLANK, LEAVE, MESSAGES, Event
from quire.protocols.sequencing.locations import Locations
from quire.protocols.sequencing.notices import Changed, Delivered, Failed, Numbered, Skipped
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.outbox import Outbox, Outstanding
from quire.protocols.sequencing.permissions import Permissions
from quire.protocols.sequencing.reply_checks import wrong_reply
from quire.protocols.sequencing.reports import reports
from quire.protocols.sequencing.requests import WAIT_TICKS_MAX, Request

REPORTS_PER_HISTORY = 8
"""How often clients report within what a sequencer keeps, so that it never has to refuse for want of reports."""


class Client(Node):
    packets: ClassVar[tuple[type[Packet], ...]] = (
        Event, wire.Ack, wire.Nak, wire.NewLocation, wire.Stable, wire.Poll, wire.Overloaded, wire.Located, wire.Ready,
        wire.Bodies, wire.Kept, wire.Expelled,
    )  # fmt: skip

    def __init__(self, address: int, sequencers: Sequence[int], directory: int, options: SequencingOptions) -> None:
        super().__init__(address)
        self.permissions = Permissions(sequencers, directory)
        self.options = options
        self.directory = directory
        self._locations = Locations(directory)
        self.locations = self._locations.known
        self.context: Context = {}
        self.stable: Context = {}
        self.unstable: Context = {}
        """For each group that this client sent to: its last number there, until that is stable (delivered by all members)."""
        self.views: dict[str, tuple[int, ...]] = {}
        """The members of each group that the client is in."""
        self.viewed: dict[str, int] = {}
        """As of which number."""
        self.at = ""
        """Where other clients can reach this one, if they can."""
        self.hold = HoldBack(address, options.history)
        self.outbox = Outbox(options)
        self.bodies = Bodies(options)
        self.spreading = Spreading(address, options)
        self.request: Request | None = None
        self.next_number = 0
        """The number that the next message gets among all that this client sends."""
        self._requests = 0
        self.evicted = False
        self._gaps: set[str] = set()
        self._unreported = 0.0
        """How much was delivered since the last report, as a share of what asks for one at once."""
        self._report_at = 0
        self._report_wait = options.tick_ns
        self._tick_at: int | None = None
        self._handlers: dict[type[Packet], Callable[[int, int, Any], Effects]] = {
            Event: self._event,
            wire.Ack: self._ack,
            wire.Nak: self._nak,
            wire.NewLocation: lambda _, __, packet: self._locations.moved(packet),
            wire.Stable: lambda _, __, packet: self._learn(packet.numbers),
            wire.Poll: lambda now, *_: self._report(now),
            wire.Overloaded: self._overloaded,
            wire.Located: lambda _, __, packet: self._locations.located(packet),
            wire.Ready: self._ready,
            wire.Bodies: self._bodies,
            wire.Expelled: self._expelled,
            wire.Kept: self._kept,
        }

    # What an application may ask for.

    def find(self, now: int, group: str) -> Effects:
        """Look for a group; the answer is Found, or Failed with NoSuchGroup."""
        return self._ask(now, wire.Lookup(group))

    def create(self, now: int, group: str) -> Effects:
        """Create a group, unless one of that name exists; the answer is Found. Its creator is not a member until it joins."""
        errors.check_name(group)
        return self._ask(now, wire.Create(group))

    def _ask(self, now: int, question: wire.Create | wire.Lookup) -> Effects:
        effects = self._locations.ask(question)
        self._set_tick(now)
        return effects

    def join(self, now: int, group: str) -> Effects:
        """Join a group that was found. The client is a member from the notice Changed on that says so. Raises NoSuchGroup,
        AlreadyMember, or Busy while it is joining or leaving another."""
        self._check_request(group)
        if group in self.hold.delivered:
            raise errors.AlreadyMember(group)
        return self._request_join(now, group)

    def leave(self, now: int, group: str) -> Effects:
        """Leave a group. The client is a member until the notice Changed that says so, the last of this group. Raises
        NotMember, or Busy while it is joining or leaving another."""
        self._check_request(group)
        if group not in self.hold.delivered:
            raise errors.NotMember(group)
        return self._begin(now, group, wire.Leave(group, self.address, self._new_request()))

    def multicast(self, now: int, group: str, body: Body, count: int) -> Effects:
        """Send `count` messages to a group that was found, whether the client is in it or not.

        They are the client's messages from `next_number` on. Raises NoSuchGroup, or Overload where too many have no
        number yet: then send again after the next Numbered.
        """
        self._check(group)
        self.outbox.submit(group, Run(self.address, self.next_number, count, body))
        self.next_number += count
        return self._send_ready(now)

    def move(self, now: int, group: str, sequencer: int) -> Effects:  # noqa: ARG002
        """Have a group moved to that sequencer, with all groups that must move with it; for operators of the service."""
        return (Send(wire.Move(group, sequencer), (self.directory,)),)

    def _check(self, group: str) -> None:
        if self.evicted:
            raise errors.Evicted
        if group not in self.locations:
            raise errors.NoSuchGroup(group)

    def _check_request(self, group: str) -> None:
        self._check(group)
        if self.request is not None:
            raise errors.Busy(self.request.group)

    # The driver's inputs.

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        handler = self._handlers.get(type(packet))
        if handler is None:
            raise ProtocolViolation(source, f"{packet.name} is not for a client")
        self.permissions.check(source, packet)
        if (wrong := wrong_reply(packet, self.permissions)) is not None:
            raise ProtocolViolation(source, wrong)
        if self.evicted:
            return NOTHING
        effects = handler(now, source, packet)
        self._set_tick(now)
        return effects

    def wake(self, now: int) -> Effects:
        effects: list[Effect] = [*self._locations.ask_again()]
        request = self.request
        if request is not None and now >= request.again_at:
            request.wait = self._longer(request.wait)
            request.again_at = now + request.wait
            effects.append(self._transmit_request(request))
        for one in self.outbox.sent():
            if now >= one.again_at:
                effects += self._transmit(now, one)
        if now >= self._report_at:
            effects += self._report(now)
        self._tick_at = None
        self._set_tick(now)
        return effects

    def due(self) -> int | None:
        return None if self.evicted else self._tick_at

    def idle(self) -> bool:
        return self.evicted or (self._quiet() and not self.hold.held_events)

    def _quiet(self) -> bool:
        """Whether every request has been answered."""
        return self.request is None and self._locations.idle() and self.outbox.idle()

    def _set_tick(self, now: int) -> None:
        """Wake up after one tick if an answer is missing, otherwise when the next report is due."""
        if not self._quiet():
            due = now + self.options.tick_ns
        elif self.hold.delivered or self.unstable:
            due = max(self._report_at, now + 1)
        else:
            return
        self._tick_at = due if self._tick_at is None else min(due, self._tick_at)

    def _longer(self, wait: int) -> int:
        return min(2 * wait, WAIT_TICKS_MAX * self.options.tick_ns) or self.options.tick_ns

    def _expelled(self, now: int, source: int, packet: wire.Expelled) -> Effects:  # noqa: ARG002
        """The service has removed this client. What it delivered so far is a correct prefix; nothing follows."""
        self.evicted = True
        return (Failed("", errors.Evicted()),)

    # Membership.

    def _new_request(self) -> int:
        self._requests += 1
        return self._requests

    def _begin(self, now: int, group: str, packet: wire.Join | wire.Leave | wire.Prepare) -> Effects:
        self.request = Request(group, packet, now + self.options.tick_ns, self.options.tick_ns)
        self._set_tick(now)
        return (self._transmit_request(self.request),)

    def _request_join(self, now: int, group: str) -> Effects:
        """Send the join. It is numbered or refused at once, so what waits for it does not wait for long."""
        req = self._new_request()
        self.hold.join(group, req)
        return self._begin(now, group, wire.Join(group, self.address, req, self.at))

    def _transmit_request(self, request: Request) -> Send:
        directly = isinstance(request.packet, wire.Prepare)
        return Send(request.packet, (self.directory if directly else self.locations[request.group],))

    def _nak(self, now: int, source: int, packet: wire.Nak) -> Effects:  # noqa: ARG002
        request = self.request
        if request is None or request.packet != wire.Join(packet.group, self.address, packet.req, self.at):
            return NOTHING
        prepare = wire.Prepare(request.group, self._new_request())
        return [*self._deliver(now, self.hold.cancel()), *self._begin(now, request.group, prepare)]

    def _ready(self, now: int, source: int, packet: wire.Ready) -> Effects:  # noqa: ARG002
        request = self.request
        if request is None or request.packet != wire.Prepare(packet.group, packet.req):
            return NOTHING
        self.locations[packet.group] = packet.sequencer
        return self._request_join(now, packet.group)

    # Sending.

    def _send_ready(self, now: int) -> list[Effect]:
        effects: list[Effect] = []
        for one in self.outbox.ready(self.context):
            if self.spreading.begin(one, self.views.get(one.group)):
                self.bodies.keep(one.group, self.viewed.get(one.group, 0), one.run, own=True)
            effects += self._transmit(now, one)
        self._set_tick(now)
        return effects

    def _transmit(self, now: int, one: Outstanding) -> list[Effect]:
        one.wait = self._longer(one.wait)
        one.again_at = now + one.wait
        lacking = self.spreading.lacking(one, self.views.get(one.group))
        view = -1 if lacking is None else self.viewed.get(one.group, 0)
        if lacking:
            return [Send(wire.Bodies(one.group, view, one.run), lacking)]
        packet = request(one, self.address, self.outbox.acked(one.group), view)
        return [Send(packet, (self.locations[one.group],))]

    def _kept(self, now: int, source: int, packet: wire.Kept) -> Effects:
        one = self.outbox.find(packet.group, packet.first)
        if one is None or not self.spreading.kept(one, source, packet.view, self.views.get(one.group, ())):
            return NOTHING
        one.wait = 0
        return self._transmit(now, one)

    def _ack(self, now: int, source: int, packet: wire.Ack) -> Effects:  # noqa: ARG002
        effects = self._learn({packet.group: packet.stable})
        one = self.outbox.at(packet.group, packet.counter)
        return effects if one is None else [*effects, *self._numbered(now, one, packet.seq, packet.members)]

    def _numbered(self, now: int, one: Outstanding, seq: int, members: tuple[int, ...] | None) -> list[Effect]:
        """Messages of this client have been numbered: everything that it sends from now on comes after them."""
        last = seq + one.run.count - 1
        released = self.outbox.numbered(one, seq)
        self.saw(one.group, last)
        self.unstable = merge(self.unstable, {one.group: last})
        effects: list[Effect] = [Numbered(one.group, one.run.first, one.run.count, seq, members)]
        for other in released:
            # A sequencer knows the numbers that it gave itself.
            if not other.ids and self.locations[other.group] != self.locations[one.group]:
                effects += self._transmit(now, other)
        return [*effects, *self._send_ready(now)]

    def saw(self, group: str, number: int) -> None:
        """Note the number of one of this client's own messages; a late acknowledgement must not lower what was seen since."""
        if self.options.causally:
            self.context = prune(merge(self.context, {group: number}), self.stable)

    def _overloaded(self, now: int, source: int, packet: wire.Overloaded) -> Effects:  # noqa: ARG002
        if one := self.outbox.at(packet.group, packet.counter):
            one.wait = WAIT_TICKS_MAX * self.options.tick_ns
            one.again_at = now + one.wait
        return NOTHING

    # Delivering.

    def _event(self, now: int, source: int, event: Event) -> Effects:
        group = event.group
        effects: list[Effect] = [*self._learn({group: event.stable})]
        if event.kind == MESSAGES and event.who == self.address:
            # What was numbered before this client joined it never delivers: an answer will say who does.
            one = self.outbox.find(group, event.run.first) if self.hold.covers(event) else None
            if one is not None:
                effects += self._numbered(now, one, event.seq, None)
        elif event.kind == LEAVE and event.who == self.address and group not in self.hold.delivered:
            effects.append(Send(wire.LeftAck(group, self.address, event.seq), (source,)))
        if self.hold.wants(event):
            whole = self.bodies.whole(event)
            if whole is not None:
                effects += self._deliver(now, self.hold.take(whole))
            elif self.hold.delivered.get(group) == event.seq - 1:
                effects += self._lost((group,))
        return effects

    def _bodies(self, now: int, source: int, packet: wire.Bodies) -> Effects:  # noqa: ARG002
        if packet.run.origin != source or not packet.run.is_sound():
            raise ProtocolViolation(source, "its bodies are not its own, or fewer than stated")
        inside = source in self.views.get(packet.group, ()) or packet.view > self.viewed.get(packet.group, 0)
        inside = inside and (packet.group in self.hold.delivered or packet.group == self.hold.joining)
        if not inside or not self.bodies.keep(packet.group, packet.view, packet.run):
            return NOTHING
        return (Send(wire.Kept(packet.group, packet.view, packet.run.first), (source,)),)

    def _deliver(self, now: int, events: list[Event]) -> list[Effect]:
        effects: list[Effect] = []
        for event in events:
            if event.kind == MESSAGES:
                self._consumed(event)
                effects.append(Delivered(event.group, event.seq, event.run))
            elif event.kind == BLANK:
                effects.append(Skipped(event.group, event.seq, event.last))
            else:
                effects += self._changed(now, event)
        if events:
            self._report_wait = self.options.tick_ns
            self._report_at = min(self._report_at, now + self._report_wait)
            if self._unreported >= 1.0:
                effects += self._report(now)
        return effects

    def _consumed(self, event: Event) -> None:
        """What this client sends from now on comes after this event, and after whatever its sender had seen."""
        count, size = event.run.count / self.options.history, len(event.run.body.payload) / self.options.history_bytes
        self._unreported += max(count, size) * REPORTS_PER_HISTORY
        if self.options.bodies == "direct":
            self.bodies.delivered(event.group, event.who, event.run.end)
        if self.options.causally:
            self.context = prune(merge(merge(self.context, event.dep), {event.group: event.last}), self.stable)

    def _changed(self, now: int, event: Event) -> list[Effect]:
        group, own = event.group, event.who == self.address
        effects: list[Effect] = [Changed(group, event.seq, event.kind, event.who, event.members, event.at)]
        self.views[group], self.viewed[group] = event.members, event.seq
        self.spreading.changed(event, self.outbox.sent_to(group))
        if event.kind == LEAVE:
            self.bodies.left(group, event.who, event.seq)
        if own:
            self.request = None
        if own and event.kind == LEAVE:
            del self.views[group], self.viewed[group]
            self.bodies.drop(group)
            self.spreading.left(group)
            effects.append(Send(wire.LeftAck(group, self.address, event.seq), (self.locations[group],)))
        for one in self.outbox.sent_to(group):
            if one.holders is not None:
                effects += self._transmit(now, one)
        return effects

    # Reports.

    def _report(self, now: int) -> list[Effect]:
        """Tell sequencers how far each group is delivered. The report also requests whatever comes after that."""
        self._report_wait = self._longer(self._report_wait)
        self._report_at = now + self._report_wait
        self._unreported = 0.0
        self.spreading.silent.clear()
        curious = (*self.context, *self.unstable)
        return [*reports(self.address, self.locations, self.hold.delivered, curious)]

    def _learn(self, numbers: Mapping[str, int]) -> list[Effect]:
        """These groups are stable up to these numbers: nobody will wait for anything earlier."""
        self.stable = merge(self.stable, numbers)
        self.context = prune(self.context, self.stable)
        self.unstable = prune(self.unstable, self.stable)
        behind = {group for group, number in numbers.items() if number > self.hold.delivered.get(group, number)}
        return self._lost(sorted(behind))

    def _lost(self, groups: Sequence[str]) -> list[Effect]:
        """Tell the application, once, that messages of these groups can no longer be obtained."""
        lost = [group for group in groups if group not in self._gaps]
        self._gaps.update(lost)
        return [Failed(group, errors.GapUnrecoverable(group)) for group in lost]
