"""How a sequencer numbers messages: detects duplicates, keeps each sender's order, and gives each run one context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quire.model.messages import NUMBER_MAX, Run
from quire.protocols.node import NOTHING, Effects, Node, Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.contexts import Context, merge, weight
from quire.protocols.sequencing.errors import NAME_MAX
from quire.protocols.sequencing.events import JOIN, LEAVE, MESSAGES, NO_RUN, Event, Remembered
from quire.protocols.sequencing.moves import Moves
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.permissions import Permissions
from quire.protocols.sequencing.senders import Numbers, copied
from quire.protocols.sequencing.state import GroupState


class Numbering(Node):
    """The part of a sequencer that assigns numbers."""

    def __init__(self, address: int, sequencers: Sequence[int], directory: int, options: SequencingOptions) -> None:
        super().__init__(address)
        self.options = options
        self.others = tuple(each for each in sequencers if each != address)
        self.directory = directory
        self.permissions = Permissions(sequencers, directory)
        self.groups: dict[str, GroupState] = {}
        self.forward: dict[str, int] = {}
        self.moves = Moves(self.groups, self.forward, self.others, directory, options)
        self.numbered = 0
        """How many messages were numbered here."""
        self.held: dict[int, dict[tuple[str, int], wire.DoMulticast]] = {}
        """By client, messages that wait for a number of an earlier one of the same client."""
        self.elsewhere: Context = {}
        """How far groups of other sequencers are stable."""
        self.waiting: dict[str, set[int]] = {}
        """By group, the clients whose messages wait because its history is full."""
        self.unwitnessed: dict[str, dict[tuple[int, int], None]] = {}
        """By group, messages by client and counter that have numbers, which their senders are told when a member has them."""
        self._near: dict[str, list[GroupState]] = {}
        self._news = False
        """Whether there is something to report to the directory or the other sequencers."""

    def queue(self) -> int:
        """How many messages are waiting here, either for a number or to be delivered by all members."""
        held = sum(packet.run.count for packets in self.held.values() for packet in packets.values())
        return held + sum(state.kept for state in self.groups.values())

    def _wrong_multicast(self, packet: wire.DoMulticast) -> str | None:
        """Why no correct client can have sent this, or None."""
        run = packet.run
        if not run.is_sound() or run.origin != packet.client:
            return "its run holds fewer messages than stated, or is another client's"
        if not 0 <= packet.acked <= packet.counter <= NUMBER_MAX - run.count:
            return f"it counts from {packet.counter}, and knows the numbers of {packet.acked}"
        if packet.view != -1 and (packet.view < 0 or run.body.payload or self.options.bodies != "direct"):
            return "it sends bodies in a way that was not agreed"
        if not (packet.ctx or packet.ids):
            return None
        return self._wrong_context(packet.ctx) or self._wrong_context(packet.ids, counters=True)

    def _wrong_context(self, context: Context, *, counters: bool = False) -> str | None:
        """Why the context is impossible, or None. It cannot name numbers that do not exist: members would wait for them."""
        for group, number in context.items():
            state = None if counters or self.moves.on_the_way(group) else self.groups.get(group)
            last = NUMBER_MAX if state is None else state.seq
            if not 0 <= number <= last or len(group) > NAME_MAX:
                return f"it has seen {number} of {group[:NAME_MAX]!r}, of which there are {last}"
        return None

    def _multicast(self, source: int, packet: wire.DoMulticast) -> Effects:
        state = self.groups.get(packet.group)
        if state is None:
            return self._redirect(source, packet)
        numbers = state.senders.get(packet.client)
        if numbers is not None and packet.counter < numbers.next:
            return self._known(state, numbers, packet)
        if self.moves.suspended(packet.group) or _is_outdated(state, packet):
            return NOTHING
        effects: list[Send] = []
        if self._has_room(state, packet) and self._number(state, packet, effects):
            if packet.client in self.held:
                self._retry(packet.client, effects)
        elif not self._hold(packet):
            effects.append(Send(wire.Overloaded(packet.group, packet.counter), (packet.client,)))
        return effects

    def _has_room(self, state: GroupState, packet: wire.DoMulticast) -> bool:
        """Whether the history of the group has room for these messages. If not, they wait for a number until members have
        delivered more; the sender waits too when its window is full. The same applies to a sender that does not acknowledge
        the numbers it was told."""
        options, numbers = self.options, state.senders.get(packet.client)
        if numbers is not None and len(numbers.window) >= options.window:
            numbers.settle(packet.acked)
            if len(numbers.window) >= options.window:
                return False
        size = len(packet.run.body.payload) + weight(packet.ctx) + weight(packet.ids)
        fits = state.kept_bytes + size <= options.history_bytes or not state.kept
        if fits and state.kept + packet.run.count <= options.history:
            if self.waiting:
                self._waits_no_more(state.group, packet.client)
            return True
        self.waiting.setdefault(state.group, set()).add(packet.client)
        return False

    def _waits_no_more(self, group: str, client: int) -> None:
        clients = self.waiting.get(group, set())
        clients.discard(client)
        if not clients:
            self.waiting.pop(group, None)

    def holding_up(self) -> dict[int, tuple[str, int]]:
        """The clients that delay others because the history of a group is full of what they have not delivered: each with
        the group, and how far it has delivered it."""
        found: dict[int, tuple[str, int]] = {}
        for group, clients in self.waiting.items():
            state = self.groups.get(group)
            if state is None or self.moves.on_the_way(group):
                continue
            last = min(state.reached.values(), default=state.seq)
            for client, reached in state.reached.items():
                if reached == last < state.seq and clients != {client}:
                    found.setdefault(client, (group, reached))
        return found

    def _known(self, state: GroupState, numbers: Numbers, packet: wire.DoMulticast) -> Effects:
        """The answer to a retransmission: the number that the message got the first time."""
        return self._acknowledge(state, packet.client, packet.counter) if packet.counter in numbers.window else NOTHING

    def _acknowledge(self, state: GroupState, client: int, counter: int) -> list[Send]:
        """Tell a client which numbers its messages got. If only members remember the group, wait until one of them has the
        messages. A sender that is a member gets the messages themselves instead, and then has them."""
        count, seq, members = state.senders[client].window[counter]
        if self._is_witnessed(state, seq, seq + count - 1):
            return [Send(wire.Ack(state.group, counter, seq, members, state.stable), (client,))]
        if members is None:
            return [Send(state.history[seq], (client,))]
        self.unwitnessed.setdefault(state.group, {})[client, counter] = None
        return []

    def _is_witnessed(self, state: GroupState, first: int, last: int) -> bool:
        """Whether events with these numbers would survive the loss of this sequencer. An event that a later member lacks
        survives only if all others have it."""
        if not self.options.remembered or not state.reached or last <= state.stable:
            return True
        return any(state.reached[client] >= last and joined < first for client, joined in state.members.items())

    def _tell_witnessed(self, state: GroupState) -> list[Send]:
        """Members have reported: acknowledge to senders what these members have."""
        waiting = self.unwitnessed.pop(state.group, {})
        known = [key for key in waiting if key[0] in state.senders and key[1] in state.senders[key[0]].window]
        return [effect for client, counter in known for effect in self._acknowledge(state, client, counter)]

    def _number(self, state: GroupState, packet: wire.DoMulticast, effects: list[Send]) -> bool:
        """Number the messages, unless something that must come before them has no number yet."""
        numbers = state.senders.setdefault(packet.client, Numbers())
        dep = self._resolve(packet)
        if packet.counter != numbers.next or dep is None:
            return False
        seq, counter = state.seq + 1, packet.counter
        tells = Remembered(state.life, counter, packet.acked) if self.options.remembered else None
        direct = packet.view >= 0
        effects.append(self._emit(state, MESSAGES, packet.client, run=packet.run, dep=dep, direct=direct, remembered=tells))
        self.numbered += packet.run.count
        members = None if packet.client in state.members else tuple(state.members)
        numbers.give(counter, packet.run.count, seq, members, packet.acked)
        if members is not None:
            # A member that is asked says at once that it has them.
            told = self._acknowledge(state, packet.client, counter)
            effects += told or [Send(wire.Poll(), members[:1])]
        return True

    def _resolve(self, packet: wire.DoMulticast) -> Context | None:
        """What the sender had seen, with its own messages replaced by their numbers; None if one of them has no number here
        yet."""
        seen = packet.ctx
        for group, counter in packet.ids.items():
            number = self._number_of(packet.client, group, counter)
            if number is None:
                return None
            seen = merge(seen, {group: number})
        return {group: number for group, number in seen.items() if group != packet.group and number > self._stable(group)}

    def _number_of(self, client: int, group: str, counter: int) -> int | None:
        state = self.groups.get(group)
        numbers = state.senders.get(client) if state is not None else None
        for first, (count, seq, _) in numbers.window.items() if numbers is not None else ():
            if first <= counter < first + count:
                return seq + counter - first
        return None

    def _hold(self, packet: wire.DoMulticast) -> bool:
        """Keep messages that cannot be numbered yet; returns False if this client already has too many of them."""
        held = self.held.get(packet.client, {})
        key = (packet.group, packet.counter)
        if key not in held:
            messages = sum(each.run.count for each in held.values()) + packet.run.count
            size = sum(len(each.run.body.payload) for each in held.values()) + len(packet.run.body.payload)
            if messages > self.options.window or (held and size > self.options.history_bytes):
                return False
        self.held.setdefault(packet.client, {})[key] = packet
        return True

    def _retry(self, client: int, effects: list[Send]) -> None:
        """Number messages of this client that were waiting for one that has a number now."""
        held, progress = self.held[client], True
        while progress:
            progress = False
            for key, packet in sorted(held.items()):
                state = self.groups.get(packet.group)
                if state is None or self.moves.suspended(packet.group) or _is_outdated(state, packet):
                    del held[key]  # The client repeats it, where the group is then.
                elif client in state.senders and packet.counter < state.senders[client].next:
                    del held[key]
                elif self._has_room(state, packet) and self._number(state, packet, effects):
                    del held[key]
                    progress = True
        if not held:
            del self.held[client]

    def _emit(
        self,
        state: GroupState,
        kind: int,
        who: int,
        *,
        req: int = -1,
        run: Run = NO_RUN,
        dep: Context | None = None,
        direct: bool = False,
        remembered: Remembered | None = None,
    ) -> Send:
        """Give an event the next number, and send it to all members, and to a client that has just left."""
        members = tuple(state.members)
        if self.options.remembered and kind != MESSAGES:
            remembered = Remembered(state.life, senders=copied(state.senders) if kind == JOIN else None)
        event = Event(
            state.group, state.seq + 1, kind, who, req, run, self._together(state), dep or {},
            members if kind != MESSAGES else (), state.stable, direct, state.reachable() if kind == JOIN else {}, remembered,
        )  # fmt: skip
        state.record(event)
        self._news = True
        if not state.reached:
            state.collect()
        # Who was evicted did not ask to leave, and is told otherwise.
        return Send(event, (*members, who) if kind == LEAVE and req >= 0 else members)

    def _together(self, state: GroupState) -> Context:
        """How far those groups at this sequencer are numbered that share a client with this one."""
        if not self.options.totally:
            return {}
        near = self._near.get(state.group)
        if near is None:
            mine = state.effective()
            near = [other for other in self.groups.values() if other is not state and mine & other.effective()]
            self._near[state.group] = near
        return {other.group: other.seq for other in near}

    def _stable(self, group: str) -> int:
        state = self.groups.get(group)
        return self.elsewhere.get(group, -1) if state is None else state.stable

    def _redirect(self, source: int, packet: Any, group: str | None = None) -> list[Send]:
        """Forward a request to where its group has gone, and tell the client, which then asks there. A forwarded request is
        not forwarded again, so it cannot go in circles."""
        group = packet.group if group is None else group
        assert group is not None
        if self.moves.is_expected(group):
            return []
        to = self.forward.get(group, -1)
        effects = [Send(wire.NewLocation(group, to), (packet.client,))]
        if to >= 0 and source == packet.client:
            effects.append(Send(packet, (to,)))
        return effects


def _is_outdated(state: GroupState, packet: wire.DoMulticast) -> bool:
    """Whether some member may lack the bodies: it joined after the sender sent them to all members that it knew, or it will
    drop them because the sender has left."""
    return packet.view >= 0 and (packet.view < state.joined or packet.client not in state.members)
