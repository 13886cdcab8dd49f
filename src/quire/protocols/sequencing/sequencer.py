"""A sequencer: numbers the messages, joins and leaves of its groups, and keeps them until all members have them.

A client sends messages to the sequencer of their group, which numbers them and sends them to all members. To each event it adds
a context, by which clients order the groups among each other: `tot`, how far the other groups here were numbered that have a
client in common with this one, and `dep`, how far the sender had seen others. Groups that two clients have in common are always
at one sequencer, because only then does the directory grant a join; otherwise groups are spread over several, and move when
membership or load changes. The network is not trusted to deliver: requests are retransmitted until they are answered, clients
report at intervals how far they have delivered, and are sent what they lack.

Source: T. Kindberg, "A Sequencing Service for Group Communication", 1995, sections 3 to 6.
Assumes: any network that does not lose everything; it may lose, repeat and reorder. Nobody crashes; a client that is gone
can be evicted.
Guarantees: `total`: any two clients deliver what both deliver in one order (pairwise over overlapping groups; without any
cycle if `acyclic`), and sender order in each group. `hybrid`: one order in each group, causal order across groups.
`causal-total`: both. In each group, what a client delivers is one unbroken slice from its join to its leave.
Departures, by the names of docs/papers.md: joins and leaves take numbers and a joiner starts at its own (K1, K3, K6);
contexts are lower bounds and groups without an entry are skipped (K2, K4), kept apart as `tot` and `dep` (K13) and not
stored (K5); leavers count until they have delivered their leave (K7); groups are separated only when all is delivered (K8);
the directory linearises joins and moves (K9, K11) of whole strong components (K10), computed from memberships (K12); `hybrid`
has no `tot` (K14); an acknowledgement never lowers a context (K15); ids of messages without numbers never reach clients:
the sequencer resolves them before it numbers (K16, K17, K18); repeats are known by counters that outlive the history (K19),
of joins and leaves too (K20); clients report periodically (K21); history moves with its group (K22); total is pairwise, and
said to be (K23); one's own leave releases what waits for the group that was left (K24).
Cost: a message of a member takes one request and one multicast, of another client one acknowledgement more. Header: one
number for each co-located group that shares a client, and for each group in the sender's context; never one a process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effects, Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.contexts import merge
from quire.protocols.sequencing.errors import NAME_MAX
from quire.protocols.sequencing.events import JOIN, LEAVE
from quire.protocols.sequencing.numbering import Numbering
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.permissions import OF_CLIENTS
from quire.protocols.sequencing.state import GroupState

NEVER = 1 << 62
"""The request of a client that will make no more."""
FETCHED_EVENTS_MAX = 64
"""How many events answer one report; the next report asks for the rest."""


class Sequencer(Numbering):
    packets = (
        wire.DoMulticast, wire.Join, wire.Leave, wire.LeftAck, wire.Fetch, wire.Host, wire.JoinAnswer, wire.Forgotten,
        wire.Open, wire.Transfer, wire.Outcome, wire.Stable, wire.Evict,
    )  # fmt: skip

    def __init__(self, address: int, sequencers: Sequence[int], directory: int, options: SequencingOptions) -> None:
        super().__init__(address, sequencers, directory, options)
        self.forgetting: dict[tuple[str, int], int] = {}
        """Clients that have left, with the request by which they did, until the directory knows."""
        self.founded: set[str] = set()
        """Groups that began here; a late copy must not found one again that has moved away."""
        self.evicted: set[int] = set()
        self._marks: dict[str, tuple[int, int, int]] = {}
        """For each group: a time, how far it was numbered then, and how far at the time before."""
        self._now = 0
        self._tick_at: int | None = None
        self._handlers: dict[type[Packet], Callable[[int, Any], Effects]] = {
            wire.DoMulticast: self._multicast,
            wire.Fetch: self._fetch,
            wire.Join: self._join,
            wire.Leave: self._leave,
            wire.LeftAck: self._left,
            wire.Host: self._host,
            wire.JoinAnswer: self._join_answered,
            wire.Forgotten: self._forgotten,
            wire.Open: lambda _, packet: self.moves.open(packet),
            wire.Transfer: lambda _, packet: self.moves.take(packet),
            wire.Outcome: self._moved,
            wire.Stable: self._stable_elsewhere,
            wire.Evict: self._evict,
        }
        self._wrong: dict[type[Packet], Callable[[Any], str | None]] = {
            wire.DoMulticast: self._wrong_multicast,
            wire.Fetch: self._wrong_report,
            wire.Join: self._wrong_join,
            wire.Leave: _wrong_request,
            wire.JoinAnswer: _wrong_request,
            wire.Open: self.moves.wrong_open,
            wire.Transfer: self.moves.wrong_transfer,
        }
        """What is wrong with packets, if anything; to be asked before anything is done about them."""

    # Inputs.

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        handler = self._handlers.get(type(packet))
        if handler is None:
            raise ProtocolViolation(source, f"{packet.name} is not for a sequencer")
        self.permissions.check(source, packet)
        if (find := self._wrong.get(type(packet))) is not None and (wrong := find(packet)) is not None:
            if type(packet) in OF_CLIENTS and self.permissions.is_sequencer(source):
                # Who passed it on is not to blame; the client will say it here itself.
                return NOTHING
            raise ProtocolViolation(source, wrong)
        self._now = now
        if self.evicted and self._is_of_an_evicted(packet):
            return (Send(wire.Expelled(), (packet.client,)),)  # type: ignore[attr-defined]
        effects = handler(source, packet)
        if self._tick_at is None and (self._news or not self.idle()):
            self._tick_at = now + self.options.tick_ns
        return effects

    def changes_nothing(self, packet: Packet) -> bool:
        """Whether the packet certainly leaves the state of this sequencer as it is; mostly it is a retransmission."""
        if self._is_of_an_evicted(packet):
            return True
        match packet:
            case wire.DoMulticast():
                state = self.groups.get(packet.group)
                numbers = None if state is None else state.senders.get(packet.client)
                return numbers is not None and packet.counter < numbers.next
            case wire.Fetch() if not self.moves.giving:
                known = [(self.groups[group].reached, number) for group, number in packet.have.items() if group in self.groups]
                return all(number <= reached.get(packet.client, number) for reached, number in known)
            case wire.Forgotten():
                return self.forgetting.get((packet.group, packet.client)) != packet.req
        return False

    def _is_of_an_evicted(self, packet: Packet) -> bool:
        """Whether the packet comes from an evicted client. It is ignored, whoever forwarded it."""
        return type(packet) in OF_CLIENTS and packet.client in self.evicted  # type: ignore[attr-defined]

    def begin(self, now: int) -> None:
        """This sequencer starts to work: whatever must be retransmitted is due, and what is numbered may be lost."""
        self._marks = {group: (now, state.seq, state.seq) for group, state in self.groups.items()}
        self._news = True
        self._tick_at = now

    def wake(self, now: int) -> Effects:
        effects = self._leaves_again()
        effects += [Send(wire.Forget(*who, req), (self.directory,)) for who, req in self.forgetting.items()]
        effects += self.moves.repeat()
        effects += self._report()
        self._tick_at = None if self.idle() else now + self.options.tick_ns
        return effects

    def due(self) -> int | None:
        return self._tick_at

    def idle(self) -> bool:
        """Whether every member has everything that was numbered here."""
        return (
            self.moves.idle()
            and not self.held
            and not self.forgetting
            and not any(state.history or state.departing for state in self.groups.values())
        )

    # Membership.

    def _wrong_join(self, packet: wire.Join) -> str | None:
        if packet.at and (self.options.bodies != "direct" or len(packet.at) > NAME_MAX):
            return "it announced an address without being asked"
        return _wrong_request(packet)

    def _join(self, source: int, packet: wire.Join) -> Effects:
        group, client, req = packet.group, packet.client, packet.req
        state = self.groups.get(group)
        if state is None:
            return self._redirect(source, packet)
        if self.moves.on_the_way(group) or req < state.requests.get(client, -1):
            return NOTHING
        if req == state.requests.get(client):
            return self._answer_again(state, client, req, state.members.get(client))
        if client in state.members:
            return NOTHING
        # A client that joins again has delivered its leave.
        effects = self._has_left(state, client) if client in state.departing else []
        if client in state.departing or self.moves.suspended(group):
            return effects if client in state.departing else [*effects, self._refuse(state, client, req)]
        if packet.at:
            state.at[client] = packet.at
        return [*effects, Send(wire.JoinRequest(group, client, req), (self.directory,))]

    def _join_answered(self, source: int, packet: wire.JoinAnswer) -> Effects:  # noqa: ARG002
        group, client, req = packet.group, packet.client, packet.req
        state = self.groups.get(group)
        if state is None or self.moves.on_the_way(group) or req <= state.requests.get(client, -1):
            return NOTHING
        if client in state.members or client in state.departing or client in self.evicted:
            return NOTHING  # Who is still here cannot join, nor can who was evicted after it was granted.
        if not packet.granted or self.moves.suspended(group):
            return (self._refuse(state, client, req),)
        state.requests[client] = req
        state.members[client] = state.joined = state.seq + 1
        state.reached[client] = state.seq
        self._near.clear()
        return (self._emit(state, JOIN, client, req=req),)

    def _refuse(self, state: GroupState, client: int, req: int) -> Send:
        """Refuse a request for good, whatever copies of it may still arrive."""
        state.requests[client] = state.refused[client] = req
        return Send(wire.Nak(state.group, req), (client,))

    def _leave(self, source: int, packet: wire.Leave) -> Effects:
        group, client, req = packet.group, packet.client, packet.req
        state = self.groups.get(group)
        if state is None:
            return self._redirect(source, packet)
        if req == state.requests.get(client):
            return self._answer_again(state, client, req, state.departing.get(client))
        if req < state.requests.get(client, -1) or client not in state.members or self.moves.suspended(group):
            return NOTHING
        state.requests[client] = req
        del state.members[client]
        state.departing[client] = state.seq + 1
        return (self._emit(state, LEAVE, client, req=req),)

    def _answer_again(self, state: GroupState, client: int, req: int, number: int | None) -> Effects:
        """Repeat the answer to a join or leave; nothing if the client must have delivered it already."""
        if state.refused.get(client) == req:
            return (Send(wire.Nak(state.group, req), (client,)),)
        event = state.history.get(-1 if number is None else number)
        return (Send(event, (client,)),) if event is not None and event.req == req else NOTHING

    def _left(self, source: int, packet: wire.LeftAck) -> Effects:
        state = self.groups.get(packet.group)
        if state is None:
            return self._redirect(source, packet)
        if state.departing.get(packet.client) != packet.seq or self.moves.on_the_way(packet.group):
            return NOTHING
        return [*self._has_left(state, packet.client), *self.moves.proceed()]

    def _has_left(self, state: GroupState, client: int) -> list[Send]:
        """A client that leaves has delivered everything. If only members remember the group, it counts until they know."""
        if not self.options.remembered:
            return self._departed(state, client)
        state.reached[client] = state.departing[client]
        state.collect()
        return self._part(state)

    def _part(self, state: GroupState) -> list[Send]:
        """Remove clients whose leave everybody has delivered, and acknowledge to senders what members have."""
        effects: list[Send] = []
        while gone := [who for who, number in state.departing.items() if state.reached[who] == number <= state.stable]:
            effects += self._departed(state, gone[0])
        return [*effects, *self._tell_witnessed(state)] if state.group in self.unwitnessed else effects

    def _departed(self, state: GroupState, client: int) -> list[Send]:
        """The client no longer counts as a member."""
        del state.departing[client], state.reached[client]
        state.at.pop(client, None)
        state.collect()
        self._near.clear()
        req = self.forgetting[state.group, client] = state.requests[client]
        return [Send(wire.Forget(state.group, client, req), (self.directory,))]

    def _forgotten(self, source: int, packet: wire.Forgotten) -> Effects:  # noqa: ARG002
        if self.forgetting.get((packet.group, packet.client)) == packet.req:
            del self.forgetting[packet.group, packet.client]
        return NOTHING

    def _leaves_again(self) -> list[Send]:
        return [
            Send(state.history[number], (client,))
            for state in self.groups.values()
            for client, number in state.departing.items() if state.reached[client] < number
        ]  # fmt: skip

    # Recovery.

    def _wrong_report(self, packet: wire.Fetch) -> str | None:
        for group, number in packet.have.items():
            last = self.groups[group].seq if group in self.groups else number
            # Of a group that is on its way the new sequencer may have numbered more already.
            if number > last and not self.moves.on_the_way(group):
                return f"it has delivered {group!r} up to {number}, of which there are {last}"
        return None

    def _fetch(self, source: int, packet: wire.Fetch) -> Effects:
        effects: list[Send] = []
        elsewhere: dict[str, int] = {}
        freed = False
        for group, number in packet.have.items():
            state = self.groups.get(group)
            if state is None:
                elsewhere[group] = number
                continue
            if not self.moves.on_the_way(group):
                before = state.stable
                state.report(packet.client, number)
                freed |= state.stable > before
                effects += self._part(state)
            lacking = state.lacking(packet.client, number, self._old(state))[:FETCHED_EVENTS_MAX]
            effects += [Send(event, (packet.client,)) for event in lacking]
        if freed:
            self._news = True
            for client in tuple(self.held):
                self._retry(client, effects)
        for group, number in elsewhere.items():
            effects += self._redirect(source, wire.Fetch(packet.client, {group: number}), group)
        if packet.ask:
            stable = {group: number for group in packet.ask if (number := self._stable(group)) >= 0}
            effects.append(Send(wire.Stable(stable), (packet.client,)))
            moved = [group for group in packet.ask if group not in self.groups and not self.moves.is_expected(group)]
            effects += [Send(wire.NewLocation(group, self.forward.get(group, -1)), (packet.client,)) for group in moved]
        return [*effects, *self.moves.proceed()]

    def _old(self, state: GroupState) -> int:
        """Everything up to this number was sent at least one tick ago, so that it may be lost and not only on its way."""
        since, newest, old = self._marks.get(state.group, (0, 0, 0))
        if self._now - since >= self.options.tick_ns:
            self._marks[state.group] = (self._now, state.seq, newest)
            return newest
        return old

    def _stable_elsewhere(self, source: int, packet: wire.Stable) -> Effects:  # noqa: ARG002
        self.elsewhere = merge(self.elsewhere, packet.numbers)
        return NOTHING

    def _report(self) -> list[Send]:
        """Tell the directory about the load, and the other sequencers what is stable."""
        if not self._news or not self.others:
            self._news = False
            return []
        self._news = False
        load = {group: state.numbered for group, state in self.groups.items() if state.numbered}
        for group in load:
            self.groups[group].numbered = 0
        effects = [Send(wire.Load(load), (self.directory,))] if load else []
        if self.options.causally:
            numbers = {group: state.stable for group, state in self.groups.items()}
            effects.append(Send(wire.Stable(numbers), self.others))
        return effects

    # Clients that are gone.

    def suspect(self, client: int) -> Effects:
        """The driver of this node has lost the client; the directory decides for all sequencers."""
        return (Send(wire.Suspect(client), (self.directory,)),)

    def _evict(self, source: int, packet: wire.Evict) -> Effects:
        self.evicted.update(packet.clients)
        # Who was only about to join is in no group, and must not stay entered in one; of what is on its way nobody can tell.
        settled = [group for group in packet.entered if group in self.groups and not self.moves.on_the_way(group)]
        out = [(group, who) for group in settled for who in packet.clients if who not in self.groups[group].reached]
        self.forgetting.update(dict.fromkeys(out, NEVER))
        done = [Send(wire.EvictDone(packet.clients), (source,))] if len(settled) == len(packet.entered) else []
        return [*self._expel(), *done, *self.moves.proceed()]

    def _expel(self) -> list[Send]:
        """Remove evicted clients from all groups whose state may change, without waiting for them. Nothing from them is
        accepted any more."""
        effects: list[Send] = []
        for client in self.evicted:
            self.held.pop(client, None)
            for group in tuple(self.waiting):
                self._waits_no_more(group, client)
        for group, keys in self.unwitnessed.items():
            self.unwitnessed[group] = {key: None for key in keys if key[0] not in self.evicted}
        gone = [
            (state, client)
            for group, state in self.groups.items() if not self.moves.on_the_way(group)
            for client in state.reached if client in self.evicted
        ]  # fmt: skip
        for state, client in gone:
            if client in state.members:
                del state.members[client]
                state.departing[client] = state.seq + 1
                effects.append(self._emit(state, LEAVE, client))
            state.requests[client] = NEVER
        for state, client in gone:
            effects += self._has_left(state, client) if client in state.departing else []
        return effects

    # Places.

    def _host(self, source: int, packet: wire.Host) -> Effects:
        group = packet.group
        if group not in self.founded:
            self.founded.add(group)
            self.groups[group] = GroupState(group)
        return (Send(wire.Hosted(group), (source,)),)

    def _moved(self, source: int, packet: wire.Outcome) -> Effects:  # noqa: ARG002
        changed = self.moves.end(packet)
        # Whoever was evicted while a group was on its way is in it still, wherever the group is now.
        effects = self._expel()
        if changed:
            self._near.clear()
            self._news = True
            for client in [*self.held]:
                self._retry(client, effects)
        return effects


def _wrong_request(packet: wire.Join | wire.Leave | wire.JoinAnswer) -> str | None:
    return None if 0 <= packet.req < NEVER else f"no client has made {packet.req} requests"
