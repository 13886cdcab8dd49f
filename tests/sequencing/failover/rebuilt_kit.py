"""A sequencing service that may lose groups: without backups, where units are rebuilt from what clients know, or all of whose
copies of a unit may be lost.

What counts here is what clients take: a primary that was replaced and does not know it may number what it wants.
"""

from __future__ import annotations

from collections.abc import Callable

from quire.protocols.node import Effects, Notice, Send
from quire.protocols.sequencing.errors import Evicted, GroupLost
from quire.protocols.sequencing.events import BLANK, LEAVE, MESSAGES, Event
from quire.protocols.sequencing.failover import SequencerProcess
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.replica import Replica
from quire.protocols.sequencing.notices import Changed, Delivered, Failed, Numbered
from quire.protocols.sequencing.sequencer import Sequencer
from quire.protocols.sequencing.state import GroupState
from quire.simulation.world import SimulatedHost
from tests.sequencing.failover.kit import Fault, SurvivingService
from tests.sequencing.kit import MS, Action, Seen


class RebuiltService(SurvivingService):
    def _begin(self) -> None:
        self.told: dict[tuple[int, int], tuple[str, int, tuple[int, ...] | None]] = {}
        """By client and its own number of the first: which group and number messages were said to have, and for whom."""
        self._evicting: set[Seen] = set()
        self.rebuilt = 0
        """How many groups went on from what their members knew."""
        self.blanks = 0
        """How many numbers were left that nobody knew of."""
        super()._begin()

    # What is seen.

    def _process(self, address: int, life: int) -> SequencerProcess:
        process = super()._process(address, life)
        for replica in process.replicas.values():
            replica.rebuild = self._watched_rebuild(replica)  # type: ignore[method-assign, assignment]
        return process

    def _watched_rebuild(self, replica: Replica) -> Callable[[wire.Witnesses | wire.Testimony, int], list[Send]]:
        rebuild = replica.rebuild

        def rebuilding(packet: wire.Witnesses | wire.Testimony, source: int) -> list[Send]:
            before = replica.sequencer
            effects = rebuild(packet, source)
            if replica.sequencer is not before:
                assert replica.sequencer is not None
                groups = replica.sequencer.groups.values()
                self.rebuilt += len(groups)
                # Each begins with one.
                self.blanks += sum(event.kind == BLANK for state in groups for event in state.history.values()) - len(groups)
            return effects

        return rebuilding

    def _released(self, effects: Effects) -> Effects:
        return effects

    def _maker(self, make: Callable[[], Sequencer]) -> Callable[[], Sequencer]:
        watched = super()._maker(make)

        def watching() -> Sequencer:
            sequencer = watched()
            emit = sequencer._emit

            def emitting(state: GroupState, *arguments: int, **more: object) -> Send:
                send = emit(state, *arguments, **more)  # type: ignore[arg-type]
                assert isinstance(send.packet, Event)
                if send.packet.kind == LEAVE and send.packet.req < 0:
                    self._evicting.add(Seen(send.packet.group, send.packet.seq, LEAVE, send.packet.who, -1, 1))
                return send

            sequencer._emit = emitting  # type: ignore[method-assign]
            return sequencer

        return watching

    def _on_notice(self, host: SimulatedHost, notice: Notice) -> None:
        me = host.node.address
        match notice:
            case Delivered(group, seq, run):
                self._became_known(Seen(group, seq, MESSAGES, run.origin, run.first, run.count))
            case Changed(group, seq, kind, who):
                seen = Seen(group, seq, kind, who, -1, 1)
                self._became_known(seen, evicts=seen in self._evicting)
            case Numbered(group, first, _, seq, members):
                self.told[me, first] = (group, seq, members)
            case Failed(_, Evicted()):
                self.dead.add(me)
            case Failed(_, GroupLost()):
                self.world.at(self.world.now, self._next_request, me)
                self.world.at(self.world.now, self._send_again, me)
                return
        super()._on_notice(host, notice)

    def is_blank(self, group: str, first: int, end: int) -> bool:
        return not any(seen.seq < end and seen.seq + seen.size > first for seen in self.log[group].values())

    # What goes wrong.

    def _crash(self, fault: Fault) -> None:
        """Unless nobody would be left."""
        address = self.addresses[fault.who]
        left = [each for each in self.addresses if not self.hosts[each].gone and each != address]
        if self.hosts[address].gone or not (left or fault.for_ms):
            return
        self.world.crash(address)
        self.away.setdefault(fault.who, self.world.now)
        if fault.for_ms:
            self._left_to_happen += 1
            self.world.at(self.world.now + fault.for_ms * MS, self._restart, fault)

    # What clients do.

    def _send(self, action: Action) -> None:
        if action.group in self.clients[action.client].locations:
            super()._send(action)

    def _next_request(self, me: int) -> None:
        known = self.clients[me].locations
        self._todo[me] = [action for action in self._todo[me] if action.group in known]
        super()._next_request(me)


class LosingService(RebuiltService):
    """With backups, and groups are lost only when no copy of their unit is left."""

    def _begin(self) -> None:
        succession = self.register.succession
        begin_anew = succession.begin_anew

        def watched(unit: int, settled: int) -> None:
            running = {process.me for process in self.processes if not self.hosts[process.address].gone}
            if left := running.intersection(succession.live[unit]):
                self.violations.append(f"lost: unit {unit} begins anew though {sorted(left)} had its state")
            begin_anew(unit, settled)

        succession.begin_anew = watched  # type: ignore[method-assign]
        super()._begin()
