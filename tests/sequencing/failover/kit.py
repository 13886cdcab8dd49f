"""A sequencing service that survives, in a seeded world where processes and clients crash, come back or are suspected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from quire.model.packets import Packet
from quire.protocols.node import Effects, Notice, Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.errors import Evicted
from quire.protocols.sequencing.events import MESSAGES, Event
from quire.protocols.sequencing.failover import Register, SequencerProcess, SurvivingClient
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import Name
from quire.protocols.sequencing.failover.notices import Unavailable
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.failover.unit_state import captured
from quire.protocols.sequencing.notices import Failed
from quire.protocols.sequencing.placement import components
from quire.protocols.sequencing.sequencer import Sequencer
from quire.protocols.sequencing.state import GroupState
from quire.simulation.network import Split
from quire.simulation.world import SimulatedHost
from tests.sequencing.kit import MS, TICK_MS, Action, Faults, Kinds, Seen, Service, _seen, found_long_ago

TICK_NS = TICK_MS * MS


class Fault(NamedTuple):
    at_ms: int
    kind: str
    """crash (of a process), cut (it reaches nobody for `for_ms`), or lost (a client crashes) and suspected (it does not)."""
    who: int
    """Which process or client, from 0."""
    for_ms: int = 0
    """How long a cut lasts; after which time a process that crashed is started again, if it is."""


class SurvivingService(Service):
    def __init__(
        self,
        options: SurvivingOptions,
        initial: Mapping[str, tuple[int, Sequence[int]]],
        *,
        clients: int,
        processes: int,
        units: int,
        seed: int,
        faults: Faults,
        happens: Iterable[Fault] = (),
    ) -> None:
        self.happens = tuple(happens)
        self.lives = [0] * processes
        self.first = clients
        self.units = tuple(range(clients, clients + units))
        self.random = Random(f"suspicions {seed}")
        self.tentative: dict[tuple[str, int, Seen], int] = {}
        """When something was first given a number by anybody, whether it became known or not."""
        self.acknowledged: dict[tuple[int, str, int], int] = {}
        self.sent: dict[tuple[int, str, int], tuple[int, int]] = {}
        """By client, group and counter: the number of the first message of a run at its client, and how many they are."""
        self._counters: Counter[tuple[int, str]] = Counter()
        self.evictions: dict[tuple[str, int], int] = {}
        """By group and client, the number of the leave of who was evicted."""
        self.promotions = 0
        self.away: dict[int, int] = {}
        """Since when each process that is cut off or crashed has been, as others see it."""
        self.dead: set[int] = set()
        """Clients that crashed or were suspected."""
        cuts = tuple(
            Split(((clients + each.who,), tuple(set(range(clients + processes + 1)) - {clients + each.who})),
                  each.at_ms * MS, (each.at_ms + each.for_ms) * MS)
            for each in self.happens if each.kind == "cut"
        )  # fmt: skip
        lossy = Faults(faults.loss, faults.duplicate, faults.delay, faults.reorder, (*faults.cuts, *cuts), faults.lateness)
        super().__init__(options, initial, clients=clients, sequencers=processes, seed=seed, faults=lossy)
        self._begin()

    # Setting up.

    def _populate(self, kinds: Kinds, clients: int, sequencers: int) -> None:
        self.addresses = tuple(range(clients, clients + sequencers))
        register = clients + sequencers
        options = self.options
        assert isinstance(options, SurvivingOptions)
        self.register = Register(register, self.addresses, self.units, options)
        self.directory = self.register.directory
        self.clients = [
            SurvivingClient(address, self.addresses, self.units, (register,), options) for address in range(clients)
        ]
        self.processes = [self._process(address, 0) for address in self.addresses]
        self.hosts = [self.world.add(node, self._on_notice) for node in (*self.clients, *self.processes, self.register)]
        for process in self.processes:
            self.register.succession.arrived(process.me)
        for process in self.processes:
            process.receive(0, register, self.register.configured())

    def _process(self, address: int, life: int) -> SequencerProcess:
        service = self

        class Watched(SequencerProcess):
            def receive(self, now: int, source: int, packet: Packet) -> Effects:
                return service._released(super().receive(now, source, packet))

            def wake(self, now: int) -> Effects:
                return service._released(super().wake(now))

        assert isinstance(self.options, SurvivingOptions)
        process = Watched(Name(address, life), self.addresses, self.units, self.register.address, self.options)
        for replica in process.replicas.values():
            replica._make = self._maker(replica._make)
        return process

    def _maker(self, make: Callable[[], Sequencer]) -> Callable[[], Sequencer]:
        def watched() -> Sequencer:
            sequencer = make()
            emit = sequencer._emit

            def emitting(state: GroupState, *arguments: int, **more: object) -> Send:
                send = emit(state, *arguments, **more)  # type: ignore[arg-type]
                assert isinstance(send.packet, Event)
                seen = _seen(send.packet)
                self.tentative.setdefault((seen.group, seen.seq, seen), self.world.now)
                return send

            sequencer._emit = emitting  # type: ignore[method-assign]
            return sequencer

        return watched

    def _found(self, group: str, unit: int, members: Sequence[int]) -> None:
        """As if it had been founded long ago: every copy knows it."""
        primary = self.register.succession.configurations[unit].primary.address
        process = self.processes[primary - self.first]
        sequencer = process.replicas[unit].sequencer
        assert sequencer is not None
        found_long_ago(sequencer, self.directory, self.clients, group, unit, members)
        for member in members:
            self.views[member, group] = tuple(members)
            self.hosts[member].act(self.clients[member].wake(0))

    def _begin(self) -> None:
        """Every unit is live before anything goes wrong."""
        for unit in self.units:
            found = self.register.succession.configurations[unit]
            primary = self.processes[found.primary.address - self.first]
            sequencer = primary.replicas[unit].sequencer
            assert sequencer is not None
            # Groups were founded since it was configured.
            snapshot = wire.Snapshot(unit, found.epoch, 0, 0, 1, captured(sequencer))
            for backup in found.backups:
                [answer] = self.processes[backup.address - self.first].receive(0, primary.address, snapshot)
                assert isinstance(answer, Send)
                primary.receive(0, backup.address, answer.packet)
            self.register.receive(0, primary.address, wire.InSync(unit, found.epoch))
            primary.receive(0, self.register.address, wire.Live(unit, found.epoch))
        for host in self.hosts:
            host.act(())
        for each in self.happens:
            self.world.at(each.at_ms * MS, self._happen, each)
        self._left_to_happen = len(self.happens)
        self.world.at(TICK_NS, self._look, None)

    # What is seen.

    def _released(self, effects: Effects) -> Effects:
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.packet, wire.Letter):
                packet = effect.packet.packet
                if isinstance(packet, Event):
                    self._became_known(_seen(packet), evicts=packet.kind != MESSAGES and packet.req < 0)
                elif isinstance(packet, inner.Ack):
                    self._acknowledge(effect.to[0], packet)
        return effects

    def _became_known(self, seen: Seen, *, evicts: bool = False) -> None:
        log = self.log[seen.group]
        before = log.get(seen.seq)
        if before is None:
            if seen.kind == MESSAGES and (seen.who, seen.first) in {(each.who, each.first) for each in log.values()}:
                self.violations.append(f"duplicate: {seen} was numbered twice")
            log[seen.seq] = seen
            self.numbered_at[seen.group, seen.seq] = self.tentative.get((seen.group, seen.seq, seen), self.world.now)
            if evicts:
                self.evictions[seen.group, seen.who] = seen.seq
        elif before != seen:
            self.violations.append(f"fork: {seen.group}{seen.seq} is {before} and {seen}")

    def _acknowledge(self, client: int, ack: inner.Ack) -> None:
        before = self.acknowledged.setdefault((client, ack.group, ack.counter), ack.seq)
        if before != ack.seq:
            self.violations.append(f"duplicate: {client}'s message {ack.counter} to {ack.group} is {before} and {ack.seq}")
        first, size = self.sent[client, ack.group, ack.counter]
        self._became_known(Seen(ack.group, ack.seq, MESSAGES, client, first, size))

    def _on_notice(self, host: SimulatedHost, notice: Notice) -> None:
        if isinstance(notice, Unavailable) or (isinstance(notice, Failed) and isinstance(notice.error, Evicted)):
            return
        super()._on_notice(host, notice)

    # What goes wrong.

    def _happen(self, fault: Fault) -> None:
        self._left_to_happen -= 1
        if fault.kind == "crash":
            self._crash(fault)
        elif fault.kind == "cut":
            self.away.setdefault(fault.who, self.world.now)
            self._left_to_happen += 1
            self.world.at(self.world.now + fault.for_ms * MS, self._back, fault)
        else:
            self.dead.add(fault.who)
            if fault.kind == "lost":
                self.world.crash(fault.who)

    def _crash(self, fault: Fault) -> None:
        """Unless nobody would be left of some unit, or too few to have backups."""
        name = self.processes[fault.who].me
        succession = self.register.succession
        left = {process.me for process in self.processes if not self.hosts[process.address].gone} - {name}
        enough = all(left.intersection(names) for names in succession.live.values())
        if not enough or len(left) < 2 or self.hosts[name.address].gone:
            return
        self.world.crash(name.address)
        self.away.setdefault(fault.who, self.world.now)
        if fault.for_ms:
            self._left_to_happen += 1
            self.world.at(self.world.now + fault.for_ms * MS, self._restart, fault)

    def _restart(self, fault: Fault) -> None:
        self._left_to_happen -= 1
        self.lives[fault.who] += 1
        self.processes[fault.who] = self._process(self.addresses[fault.who], self.lives[fault.who])
        self.away.pop(fault.who, None)
        self.world.restart(self.addresses[fault.who], self.processes[fault.who])

    def _back(self, fault: Fault) -> None:
        self._left_to_happen -= 1
        if not self.hosts[self.addresses[fault.who]].gone:
            self.away.pop(fault.who, None)

    def _look(self, _: object) -> None:
        """Once a tick everybody looks who is silent; and whatever must always be true is."""
        self._check()
        there = [process for number, process in enumerate(self.processes) if number not in self.away]
        for number, since in self.away.items():
            if self.world.now - since >= self.random.randint(1, 4) * TICK_NS and there:
                observer = self.random.choice(there)
                # What the register knows of may be an earlier life.
                names = [each for each in self.register.succession.there if each.address == self.addresses[number]]
                for name in names:
                    self.hosts[observer.address].act(observer.miss(name))
        for client in sorted(self.dead - self.directory.evicted):
            for process in there:
                self.hosts[process.address].act(self._released(process.suspect(client)))
        self.world.at(self.world.now + TICK_NS, self._look, None)

    def _check(self) -> None:
        """What the directory knows is never less than the truth, and what must be together is."""
        entries, operation, lost = self.directory.entries, self.directory.operation, self.directory.lost
        for sequencer in self.sequencers:
            for group, state in sequencer.groups.items():
                if group in lost:
                    continue  # It does not know yet that the group left, and then was lost elsewhere.
                if not state.effective() <= entries[group].keys() and self.directory.locations[group] == sequencer.address:
                    self.violations.append(f"entries: {group} has {state.effective()}, the directory {entries[group]}")
        if self.options.totally and operation is None:
            inside = {
                group: state.effective()
                for sequencer in self.sequencers for group, state in sequencer.groups.items() if group not in lost
            }  # fmt: skip
            for part in components(inside, 2):
                if len({self.directory.locations[group] for group in part}) > 1:
                    self.violations.append(f"place: {part} are apart")

    @property
    def sequencers(self) -> list[Sequencer]:
        """Those that work now, without any that do not know yet that they were replaced."""
        current = {unit: found.epoch for unit, found in self.register.succession.configurations.items()}
        return [
            replica.sequencer
            for process in self.processes if not self.hosts[process.address].gone
            for unit, replica in process.replicas.items()
            if replica.live and replica.epoch == current[unit] and replica.sequencer is not None
        ]  # fmt: skip

    @sequencers.setter
    def sequencers(self, _: object) -> None: ...

    def _act(self, action: Action) -> None:
        if action.client in self.dead:
            self._actions_left -= 1
        elif action.kind == "move":
            self._actions_left -= 1
            to = self.units[action.amount % len(self.units)]
            client = self.clients[action.client]
            self.hosts[action.client].act(client.move(self.world.now, action.group, to))
        else:
            super()._act(action)

    def _send(self, action: Action) -> None:
        me, group, first = action.client, action.group, self.clients[action.client].next_number
        super()._send(action)
        self.sent[me, group, self._counters[me, group]] = (first, action.amount)
        self._counters[me, group] += action.amount

    def _next_request(self, me: int) -> None:
        if me not in self.dead:
            super()._next_request(me)

    def _send_again(self, me: int) -> None:
        if me not in self.dead:
            super()._send_again(me)

    def quiet(self) -> bool:
        alive = [me for me in range(len(self.clients)) if me not in self.dead]
        return (
            not self._actions_left
            and not self._left_to_happen
            and not self.away.keys() - {number for number in range(len(self.processes)) if self._gone(number)}
            and not any(self._todo[me] or self._unsent[me] for me in alive)
            and self.dead <= self.directory.evicted
            and len(self.sequencers) == len(self.units)
            and self.world.idle([host for host in self.hosts if host.node.address not in self.dead])
        )

    def _gone(self, number: int) -> bool:
        return self.hosts[self.addresses[number]].gone
