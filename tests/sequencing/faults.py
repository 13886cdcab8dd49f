"""The errata of docs/papers.md planted back: each is a way in which the published protocol fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from quire.model.packets import Packet
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.client import Client
from quire.protocols.sequencing.contexts import Context, merge
from quire.protocols.sequencing.delivery import HoldBack
from quire.protocols.sequencing.directory import Directory
from quire.protocols.sequencing.events import JOIN, MESSAGES, Event
from quire.protocols.sequencing.moves import Giving, Moves
from quire.protocols.sequencing.outbox import Outstanding
from quire.protocols.sequencing.placement import strong_component
from quire.protocols.sequencing.sequencer import Sequencer
from quire.protocols.sequencing.state import GroupState
from tests.sequencing.kit import Kinds


def with_hold(kind: type[HoldBack]) -> Kinds:
    """Clients that hold back by another rule."""

    class Wrong(Client):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.hold = kind(self.address, self.options.history)

    return Kinds(client=Wrong)


def with_moves(kind: type[Moves]) -> Kinds:
    class Wrong(Sequencer):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.moves = kind(self.groups, self.forward, self.others, self.directory, self.options)
            self._handlers[wire.Open] = lambda _, packet: self.moves.open(packet)
            self._handlers[wire.Transfer] = lambda _, packet: self.moves.take(packet)

    return Kinds(sequencer=Wrong)


class JoinerStartsAtZero(HoldBack):
    """K1: a joiner that does not know the number of its join waits for the group's first message."""

    def deliver(self, event: Event) -> None:
        joins = event.kind == JOIN and event.who == self.me
        super().deliver(event)
        if joins:
            self.delivered[event.group] = 0


class EqualSets(HoldBack):
    """K2: contexts must be equal, also where they have no entry."""

    def blocked_on(self, event: Event) -> str | None:
        others = (group for group in self.delivered if group != event.group)
        return next((group for group in others if event.tot.get(group) != self.delivered[group]), None)


class FoundersStartBelowZero(HoldBack):
    """K3: a founder that has delivered nothing has delivered less than nothing."""

    def _next(self, group: str) -> Event | None:
        return None if self.delivered.get(group) == 0 else super()._next(group)


class EqualTotals(HoldBack):
    """K4: an entry of `tot` must be met exactly."""

    def blocked_on(self, event: Event) -> str | None:
        exact = next((group for group, number in event.tot.items() if self.delivered.get(group, number) != number), None)
        return exact or super().blocked_on(event)


class MergedIntoDelivered(HoldBack):
    """K5: what a context names is taken for delivered, of whatever group. With K6, without which it cannot be seen."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._foreign: Context = {}

    def _must_wait(self, group: str, number: int) -> bool:
        return group in self.delivered and self.delivered[group] < number

    def deliver(self, event: Event) -> None:
        super().deliver(event)
        self._foreign = merge(self._foreign, merge(event.tot, event.dep))
        if event.kind == JOIN and event.who == self.me:
            self.delivered[event.group] = max(event.seq, self._foreign.get(event.group, -1))


class PendingJoinIgnored(HoldBack):
    """K6: entries of a group whose join is on its way are ignored."""

    def _must_wait(self, group: str, number: int) -> bool:
        return group in self.delivered and self.delivered[group] < number


class LeaverGoneAtOnce(Sequencer):
    """K7: who leaves counts no more, although it has not delivered everything."""

    def _together(self, state: GroupState) -> Context:
        mine = frozenset(state.members)
        return {o.group: o.seq for o in self.groups.values() if o is not state and mine & frozenset(o.members)}


class NoBarrier(Moves):
    """K8: groups are separated before what was numbered together is delivered."""

    def may_go(self, giving: Giving) -> bool:
        return True


class PendingJoinsUnseen(Directory):
    """K9, K11: whether groups overlap is asked of those who are in them, not of those who are about to be."""

    def _apart(self, group: str) -> frozenset[str] | None:
        return None


class OnePairAtATime(Directory):
    """K10: a group is brought to one that it overlaps, and what overlaps that one stays where it is."""

    def _start(self, now: int, groups: Any, to: int) -> list[Send]:
        moving = sorted(group for group in groups if self.locations[group] != to)
        return super()._start(now, moving[:1], to)

    def _apart(self, group: str) -> frozenset[str] | None:
        apart = super()._apart(group)
        others = [other for other in strong_component(group, self.entries) if self._overlap(group, other)]
        return apart if any(self.locations[other] != self.locations[group] for other in others) else None

    def _overlap(self, one: str, other: str) -> bool:
        return len(set(self.entries[one]) & set(self.entries[other])) >= 2


class OverlapNeverRecomputed(Sequencer):
    """K12: which groups overlap is noted when they come together, and not again."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._near = _Frozen()


class _Frozen(dict[str, Any]):
    def clear(self) -> None:
        """What was noted stays."""


class EqualCauses(HoldBack):
    """K13: an entry of `dep` must be met exactly."""

    def blocked_on(self, event: Event) -> str | None:
        exact = next((group for group, number in event.dep.items() if self.delivered.get(group, number) != number), None)
        return exact or super().blocked_on(event)


class HybridOrdersAll(Sequencer):
    """K14: contexts of co-located groups in hybrid too, which then orders all of them."""

    def _together(self, state: GroupState) -> Context:
        mine = state.effective()
        return {o.group: o.seq for o in self.groups.values() if o is not state and mine & o.effective()}


class ContextAssigned(Client):
    """K15: an acknowledgement sets the context, also to less than was seen since."""

    def saw(self, group: str, number: int) -> None:
        self.context[group] = number


class IdsInEvents(Sequencer):
    """K16: a message is numbered although others that it must come after have no number: its event names them. Such an
    entry is written as a negative number."""

    def _resolve(self, packet: wire.DoMulticast) -> Context | None:
        seen = {group: number for group, number in packet.ctx.items() if group != packet.group}
        return {**seen, **{group: -1 - number for group, number in packet.ids.items()}}


class IdsByNumber(Client):
    """Names own messages by their own numbers, which others can find in events."""

    strict: ClassVar[bool] = False
    """K17: wait for the number of a message of a group in which one is not."""
    forgetful: ClassVar[bool] = False
    """K18: forget the number of a sender's message with its next."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        client = self

        class Hold(HoldBack):
            def __init__(self, me: int, limit: int) -> None:
                super().__init__(me, limit)
                self.known: dict[tuple[str, int, int], int] = {}

            def blocked_on(self, event: Event) -> str | None:
                dep = {}
                for group, number in event.dep.items():
                    if number >= 0:
                        dep[group] = number
                        continue
                    known = self.known.get((group, event.who, -1 - number))
                    if known is not None:
                        dep[group] = known
                    elif group in self.delivered or client.strict:
                        return group
                return super().blocked_on(msgspec.structs.replace(event, dep=dep))

            def deliver(self, event: Event) -> None:
                super().deliver(event)
                if event.kind == MESSAGES:
                    if client.forgetful:
                        self.known = {key: n for key, n in self.known.items() if key[1] != event.who}
                    self.known[event.group, event.who, event.run.end - 1] = event.last

        self.hold = Hold(self.address, self.options.history)

    def _consumed(self, event: Event) -> None:
        super()._consumed(msgspec.structs.replace(event, dep={g: n for g, n in event.dep.items() if n >= 0}))

    def _transmit(self, now: int, one: Outstanding) -> list[Any]:
        sends: list[Any] = super()._transmit(now, one)
        ids: dict[str, int] = {}
        for other in self.outbox.sent():
            if other.group in one.ids and other.counter <= one.ids[other.group] <= other.last:
                ids[other.group] = other.run.end - 1
        return [Send(msgspec.structs.replace(send.packet, ids=ids), send.to) for send in sends]


class IdsOfStrangers(IdsByNumber):
    strict = True


class IdsForgotten(IdsByNumber):
    forgetful = True


class RepeatsKnownByHistory(Sequencer):
    """K19: what is no longer in the history is taken for new."""

    def _multicast(self, source: int, packet: wire.DoMulticast) -> Effects:
        state = self.groups.get(packet.group)
        numbers = state.senders.get(packet.client) if state is not None else None
        if state is not None and numbers is not None and not state.history and packet.counter < numbers.next:
            numbers.next = packet.counter
        return super()._multicast(source, packet)


class RequestsWithoutNumbers(Sequencer):
    """K20: a late copy of a join or leave is carried out again."""

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        if isinstance(packet, wire.Join | wire.Leave | wire.JoinAnswer):
            state = self.groups.get(packet.group)
            if state is not None and (packet.client in state.members) == isinstance(packet, wire.Leave):
                state.requests.pop(packet.client, None)
        return super().receive(now, source, packet)


class RequestsWithoutMemory(Directory):
    def _join(self, now: int, source: int, packet: wire.JoinRequest) -> Effects:
        self.over[packet.group].clear()
        return super()._join(now, source, packet)


class NoReports(Client):
    """K21: a client asks only for what it can see is missing."""

    def _report(self, now: int) -> list[Any]:
        self._report_at = now + self._report_wait
        lacks = {group: number for group, number in self.hold.delivered.items() if self.hold.held.get(group)}
        return [Send(wire.Fetch(self.address, {group: number}), (self.locations[group],)) for group, number in lacks.items()]


class HistoryStaysBehind(Moves):
    """K22, half done: the history stays at the old sequencer, which forgets the group."""

    def proceed(self) -> list[Send]:
        effects = super().proceed()
        for giving in self.giving.values():
            for state in giving.leaving:
                state.history.clear()
                state.kept = 0
        return effects


class WaitsForWhatItLeft(HoldBack):
    """K24: a group that was left still counts."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._left: Context = {}

    def deliver(self, event: Event) -> None:
        before = self.delivered.get(event.group)
        super().deliver(event)
        if event.group not in self.delivered and before is not None:
            self._left[event.group] = event.seq
        elif event.group in self.delivered:
            self._left.pop(event.group, None)

    def _must_wait(self, group: str, number: int) -> bool:
        return super()._must_wait(group, number) or number > self._left.get(group, number)


FAULTS: Mapping[str, Kinds] = {
    "K1": with_hold(JoinerStartsAtZero),
    "K2": with_hold(EqualSets),
    "K3": with_hold(FoundersStartBelowZero),
    "K4": with_hold(EqualTotals),
    "K5": with_hold(MergedIntoDelivered),
    "K6": with_hold(PendingJoinIgnored),
    "K7": Kinds(sequencer=LeaverGoneAtOnce),
    "K8": with_moves(NoBarrier),
    "K9, K11": Kinds(directory=PendingJoinsUnseen),
    "K10": Kinds(directory=OnePairAtATime),
    "K12": Kinds(sequencer=OverlapNeverRecomputed),
    "K13": with_hold(EqualCauses),
    "K14": Kinds(sequencer=HybridOrdersAll),
    "K15": Kinds(client=ContextAssigned),
    "K16": Kinds(client=IdsByNumber, sequencer=IdsInEvents),
    "K17": Kinds(client=IdsOfStrangers, sequencer=IdsInEvents),
    "K18": Kinds(client=IdsForgotten, sequencer=IdsInEvents),
    "K19": Kinds(sequencer=RepeatsKnownByHistory),
    "K20": Kinds(sequencer=RequestsWithoutNumbers, directory=RequestsWithoutMemory),
    "K21": Kinds(client=NoReports),
    "K22": with_moves(HistoryStaysBehind),
    "K24": with_hold(WaitsForWhatItLeft),
}
