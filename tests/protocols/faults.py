"""Wrong single-phase rules, each of which breaks the protocol; E-S3 and the like are explained in docs/papers.md.

A suite that does not catch these does not test the protocol. Each class changes one rule and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappush
from typing import cast

from quire.model.messages import Run
from quire.model.packets import Packet
from quire.protocols.contract import Deliver, Effect, Effects, Send
from quire.protocols.single_phase import Operations, SinglePhase, SinglePhaseOptions, need, rank
from quire.protocols.single_phase.remainder import remainder


class RankByCurrentClock(SinglePhase):
    """E-S3: the rotating rank of an operation is computed from this member's clock, not from the operation's time."""

    def _keep(self, source: int, packet: Operations) -> None:
        super()._keep(source, packet)
        entry = (packet.time, rank(source, packet.time, self.members, self._rotating), packet.run)
        self._pending.remove(entry)
        heappush(self._pending, (packet.time, rank(source, self.clock, self.members, self._rotating), packet.run))


class ReserveThenSend(SinglePhase):
    """E-S6: an operation takes its time at once but leaves only with the next input, so acknowledgements overtake it."""

    def __init__(self, me: int, members: int, options: SinglePhaseOptions) -> None:
        super().__init__(me, members, options)
        self._late: list[Effect] = []

    def submit(self, run: Run) -> Effects:
        effects = list(super().submit(run))
        sends = [effect for effect in effects if isinstance(effect, Send)]
        late, self._late = self._late, cast(list[Effect], sends)
        return late + [effect for effect in effects if not isinstance(effect, Send)]

    def receive(self, source: int, packet: Packet) -> Effects:
        effects = super().receive(source, packet)
        late, self._late = self._late, []
        return [*effects, *late]


class AcknowledgeFirstTime(SinglePhase):
    """Batches: whether a batch needs an acknowledgement is decided on the first of its times instead of the last."""

    def _take(self, source: int, packet: Operations) -> list[Effect]:
        said = self.announced
        effects = super()._take(source, packet)
        if said < need(self.me, packet.time, source, self.members, self._rotating):
            return effects
        self.announced = said
        return []


class RecordFirstTime(SinglePhase):
    """Batches: receivers record the first time of a batch instead of the last."""

    def _take(self, source: int, packet: Operations) -> list[Effect]:
        effects = super()._take(source, packet)
        self.clocks[source] = packet.time
        return effects


class BelieveRelayAtOnce(SinglePhase):
    """Point-to-point: a relayed clock is believed although operations that it covers have not arrived."""

    def receive(self, source: int, packet: Packet) -> Effects:
        effects = list(super().receive(source, packet))
        assert self._relay is not None
        for member, claims in enumerate(self._relay.claims):
            if claims:
                self.clocks[member] = max(self.clocks[member], *(clock for clock, _ in claims))
                claims.clear()
        return self._stable(effects)


class RelayEverything(SinglePhase):
    """Point-to-point: where one clock is lacking, the relay that skips its owner vouches for all the other clocks too."""

    def __init__(self, me: int, members: int, options: SinglePhaseOptions) -> None:
        super().__init__(me, members, options)
        relay = self._relay
        assert relay is not None
        narrow = relay.stable

        def stable(time: int, clocks: list[int]) -> list[Send]:
            return [Send(type(send.packet)(clocks[me], relay._publish(clocks)), send.to) for send in narrow(time, clocks)]

        relay.stable = stable  # type: ignore[method-assign]


class LeavesNothingOut(SinglePhase):
    """The end of a view: what was delivered before is delivered again."""

    def remainder(self, packets: Iterable[Packet], delivered: Sequence[int]) -> Sequence[Deliver]:
        return super().remainder(packets, [0] * len(delivered))


class EndsMemberByMember(SinglePhase):
    """The end of a view: what is left is delivered in the order of its origins, not in that of its positions."""

    def remainder(self, packets: Iterable[Packet], delivered: Sequence[int]) -> Sequence[Deliver]:
        return sorted(super().remainder(packets, delivered), key=lambda delivery: (delivery.run.origin, delivery.run.first))


class EndsWithWholeRuns(SinglePhase):
    """The end of a view: runs stay together, though each of their operations has a place of its own."""

    def remainder(self, packets: Iterable[Packet], delivered: Sequence[int]) -> Sequence[Deliver]:
        return remainder(packets, delivered, self.members, rotating=self._rotating, unit=True)


class StableWithoutOwnNext(SinglePhase):
    """Stability: every other member's clock must reach the operation's time, also where one less would do: the group hangs."""

    def _stable(self, effects: list[Effect]) -> Effects:
        clocks = list(self.clocks)
        self.clocks = [clock - 1 for clock in clocks]
        try:
            return super()._stable(effects)
        finally:
            self.clocks = clocks


FAULTS: dict[type[SinglePhase], dict[str, object]] = {
    RankByCurrentClock: {"ids": "rotating"},
    ReserveThenSend: {},
    AcknowledgeFirstTime: {"batches": "run-length"},
    RecordFirstTime: {"batches": "run-length"},
    BelieveRelayAtOnce: {"acks": "point-to-point"},
    RelayEverything: {"acks": "point-to-point"},
    LeavesNothingOut: {},
    EndsMemberByMember: {},
    EndsWithWholeRuns: {"batches": "run-length"},
    StableWithoutOwnNext: {},
}
"""Each fault and the options under which it shows."""

CRASH_FAULTS = (LeavesNothingOut, EndsMemberByMember, EndsWithWholeRuns)
