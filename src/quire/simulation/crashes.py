"""How survivors agree on what a crashed member sent.

When a member learns of a crash it *fences* the crashed one: it takes nothing more from it, and reports what it holds of
it to the coordinator, the lowest member that it does not know to have crashed. When all survivors have reported, the
coordinator multicasts the union, and each survivor takes what it lacks and waits for the crashed member no more. If a
coordinator crashes too, everything is reported again to the next one.

This is a state machine like the protocols, around one of them: inputs in, effects out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from quire.model.packets import Packet
from quire.protocols.contract import NOTHING, Effect, Effects, Protocol, Send


class Crashed(Packet, frozen=True):
    """Not on the wire: the detector of this member says that a member crashed."""

    member: int


class FlushPacket(Packet, frozen=True):
    """What survivors tell each other of a crashed member.

    A driver must not leave these behind packets for which a protocol has no room: what fills its hold-back may wait for
    just the member that is to be closed.
    """

    member: int
    packets: tuple[Packet, ...]

    def payload_bytes(self) -> int:
        """How many of its bytes are the application's."""
        runs = (packet.carried() for packet in self.packets)
        return sum(len(run.body.payload) for run in runs if run is not None)


class Report(FlushPacket, frozen=True):
    """REPORT: what its sender holds of a crashed member."""

    name: ClassVar[str] = "REPORT"


class Union(FlushPacket, frozen=True):
    """UNION: what any survivor holds of a crashed member."""

    name: ClassVar[str] = "UNION"


def union_of(reports: Sequence[tuple[Packet, ...]]) -> tuple[Packet, ...]:
    """Links keep their order, so each report is the beginning of what was sent, and the longest has it all."""
    return max(reports, key=len)


class Survivor:
    """One member's protocol, and its part in closing those that crash."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.gone = [False] * protocol.members
        self.held: dict[int, tuple[Packet, ...]] = {}
        """Per fenced member what is held of it; after its union, all of it."""
        self.closed = [False] * protocol.members
        self.reports: dict[int, dict[int, tuple[Packet, ...]]] = {}
        self._reported_to: dict[int, int] = {}
        self._take = protocol.receive

    def receive(self, source: int, packet: Packet) -> Effects:
        """Take a packet of the protocol, a crash notice, or a packet of other survivors about a crash."""
        if type(packet) is Report:
            self.reports.setdefault(packet.member, {})[source] = packet.packets
            return self._unite(packet.member)
        if type(packet) is Union:
            return self._close(packet.member, packet.packets)
        if type(packet) is Crashed:
            return self._fence(packet.member)
        return self._take(source, packet)

    def coordinator(self) -> int:
        return self.gone.index(False)

    def _fence(self, member: int) -> Effects:
        self.gone[member] = True
        self.held[member] = tuple(self.protocol.fence(member))
        effects: list[Effect] = []
        to = self.coordinator()
        for crashed in sorted(self.held):
            if self._reported_to.get(crashed) == to:
                continue
            self._reported_to[crashed] = to
            if to == self.protocol.me:
                self.reports.setdefault(crashed, {})[to] = self.held[crashed]
            else:
                effects.append(Send(Report(crashed, self.held[crashed]), (to,)))
        # One that will never report is not waited for any longer, whichever crash it is about.
        for crashed in sorted(self.held):
            effects += self._unite(crashed)
        return effects

    def _unite(self, crashed: int) -> Effects:
        """As coordinator, close a member when every survivor has reported on it."""
        me = self.protocol.me
        reports = self.reports.get(crashed, {})
        survivors = [member for member, gone in enumerate(self.gone) if not gone]
        if crashed not in self.held or self.coordinator() != me or any(member not in reports for member in survivors):
            return NOTHING
        union = union_of([reports[member] for member in sorted(reports)])
        # Reports that come after a change of coordinator are answered once more; this one is settled.
        del self.reports[crashed]
        others = tuple(member for member in survivors if member != me)
        return [Send(Union(crashed, union), others), *self._close(crashed, union)]

    def _close(self, crashed: int, union: tuple[Packet, ...]) -> Effects:
        if self.closed[crashed] or not self.gone[crashed]:
            return NOTHING
        self.closed[crashed] = True
        self.held[crashed] = union
        return self.protocol.close(crashed, union)
