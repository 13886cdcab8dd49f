"""A simulated run of a group with changing membership: the processes of live groups on virtual connections, with faults.

Faults and the load begin when all members are in the group. The group is closed when the last fault is over, all running
members are in one view, and every message of the workload was delivered. Packet loss shows as delay, because connections
retransmit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.model.faults import (
    Disconnection,
    Fault,
    Full,
    Kill,
    Partition,
    Restart,
    Stop,
    check_faults,
    end_ms,
    parse_faults,
    unreachable,
)
from quire.model.moments import Happened, Moment, describe_moment, moments
from quire.model.orders import Guarantee, implied_by
from quire.protocols import registry
from quire.simulation.config import FaultConfig, SimulationConfig, fill_shares
from quire.simulation.connections import Connections
from quire.simulation.delays import parse_delays
from quire.simulation.membership.timed import TimedWorld
from quire.simulation.network import Network
from quire.simulation.randomness import stream
from quire.simulation.runs import Progress, Run
from quire.simulation.workload import due_times, payload
from quire.trace.kinds import DELIVER, SEND
from quire.trace.membership_recorder import GROUP, promises
from quire.trace.parts.reader import Piece
from quire.trace.parts.rewriting import Counting, Rewriting
from quire.trace.records import COUNT, FIRST, KIND, LAMPORT, ORIGIN, TIME_NS
from quire.trace.schema import Outcome
from quire.trace.store import RunWriter
from quire.trace.tables import Integers, as_records
from quire.views.core import IN_VIEWS, GroupSettings, check_may_change
from quire.views.timing import Timing
from quire.views.view import Participant, View

DETECT_MS_MIN = 10

PATIENCE_S = 120.0
"""How much simulated time members may take to form one view, at the start and after the last fault."""


class DynamicRun(Run):
    def __init__(self, config: SimulationConfig) -> None:
        _check(config)
        options = registry.read_options(config.protocol, config.options)
        check_may_change(options)
        workload = fill_shares(config.workload, addressed=False)
        super().__init__(msgspec.structs.replace(config, workload=workload), options, config.members)
        self._faults = _all_faults(config.faults)
        check_faults(self._faults, config.members)
        guarantees = implied_by(registry.find(config.protocol).protocol.promises)
        people = tuple(Participant(str(member), 1) for member in range(config.members))
        total = Guarantee.TOTAL in guarantees
        self._rules = GroupSettings(
            founders=people,
            protocol=config.protocol,
            options=self.config.options,
            uniform=total,
            journal=True,
            causal=Guarantee.CAUSAL in guarantees,
            total=total,
        )
        self._connections = _make_connections(config)
        self._world = TimedWorld(self._rules, people, _timing(config.faults), self._delay_s)
        self._world.on_event = self._note
        self._draw = stream(config.seed, "crashes").random
        self._began = 0.0
        self._complete = False
        self._happened: list[Happened] = []
        self._views: set[int] = set()
        self._body = payload(config.workload.size)

    def go(self, writer: RunWriter | None, progress: Progress | None) -> None:
        world = self._world
        for name in world.processes:
            world.start(name, founds=True)
        self._complete = world.run_until(self._are_together, PATIENCE_S)
        if self._complete:
            self._began = world.now
            self._happened = [msgspec.structs.replace(each, at_s=0.0) for each in self._happened]
            for moment in moments(self._faults):
                world.at(self._began + moment.at_ms / 1000, lambda moment=moment: self._perform(moment))  # type: ignore[misc]
            for index, member in enumerate(self.config.senders()):
                self._submit_later(member, due_times(self.config, index, stream(self.config.seed, f"workload/{member}")))
            workload = self.config.workload
            load_s = workload.messages / workload.batch * workload.interval_ms / 1000
            end = self._began + end_ms(self._faults) / 1000
            self._complete = world.run_until(lambda: world.now > end and self._is_done(progress), end + load_s + PATIENCE_S)
        for name in world.processes:
            if world.processes[name].running:
                world.close(name)
        self._complete &= world.run_until(self._are_closed, world.now + PATIENCE_S)
        self._write(writer)

    def _delay_s(self, source: int, target: int) -> float:
        now_ns = self._world.time_ns()
        return (min(self._connections.arrivals(source, target, now_ns)) - now_ns) / 1e9

    # The load.

    def _submit_later(self, member: int, times: Iterable[int]) -> None:
        due = iter(times)
        self._world.at(self._began + next(due) / 1e9, lambda: self._submit(member, due))

    def _submit(self, member: int, due: Iterable[int]) -> None:
        """Submit now; a member that is not running at the moment submits later."""
        world, workload, name = self._world, self.config.workload, str(member)
        host = world.processes[name]
        if host.running and not host.paused:
            operations = world.member(name).core.operations
            count = min(workload.batch, workload.messages - operations.last)
            if count > 0 and not (workload.mode == "blocking" and operations.unsettled()):
                world.submit(name, [self._body] * count)
        if self._unsent(member):
            self._submit_later(member, due)

    def _unsent(self, member: int) -> int:
        host = self._world.processes[str(member)]
        if host.member is None:
            return int(any(isinstance(fault, Restart | Full) and fault.member == member for fault in self._faults))
        operations = host.member.core.operations
        return self.config.workload.messages - min(operations.last, operations.settled)

    # Faults.

    def _perform(self, moment: Moment) -> None:
        world, fault = self._world, moment.fault
        self._tell(*describe_moment(moment))
        match fault:
            case Kill():
                world.kill(str(fault.member), lambda waiting: int(self._draw() * (waiting + 1)))
            case Restart():
                world.restart(str(fault.member))
            case Full():
                (world.fill if moment.begins else world.make_room)(str(fault.member))
            case Stop():
                (world.pause if moment.begins else world.resume)(str(fault.member))
            case _:
                assert isinstance(fault, Disconnection)
                (world.cut if moment.begins else world.heal)(unreachable(fault))

    def _note(self, name: str, what: str | View) -> None:
        if isinstance(what, str):
            self._tell(what, name)
        elif what.epoch not in self._views:
            self._views.add(what.epoch)
            self._tell(f"view {what.epoch}", ", ".join(what.names()))

    def _tell(self, what: str, about: str) -> None:
        self._happened.append(Happened(round(self._world.now - self._began, 6), what, about))

    # The end.

    def _running(self) -> list[str]:
        return [name for name, host in self._world.processes.items() if host.running]

    def _are_together(self) -> bool:
        running, views = self._running(), set()
        for name in running:
            core = self._world.member(name).core
            views.add(core.view.epoch if core.mode == "normal" and set(core.view.names()) == set(running) else 0)
        return len(views) == 1 and 0 not in views

    def _is_done(self, progress: Progress | None) -> bool:
        senders = self.config.senders()
        unsent = sum(map(self._unsent, senders))
        if progress is not None:
            total = len(senders) * self.config.workload.messages
            progress(total - unsent, total)
        return not unsent and self._are_together()

    def _are_closed(self) -> bool:
        return all(self._world.processes[name].is_over() for name in self._running())

    def _write(self, writer: RunWriter | None) -> None:
        logs = self._world.logs
        taken = {log.process: as_records(log.take()) for log in logs.values()}
        sends = {process: records[records[:, KIND] == SEND] for process, records in taken.items()}
        counting, everybody = Counting(sends), {process: process for process in taken}
        before = min((int(records[0, LAMPORT]) for records in taken.values() if len(records)), default=1) - 1
        for log in logs.values():
            rewritten = Rewriting(log.process, everybody, counting, before)(Piece(log.names, taken[log.process]))
            self.statistics.absorb(log.process, rewritten.names, rewritten.records)
            self._time_deliveries(log.process, taken[log.process], sends)
            if writer is not None:
                writer.write(log.process, rewritten.names, rewritten.records)
                writer.close(log.process)

    def _time_deliveries(self, process: int, records: Integers, sends: Mapping[int, Integers]) -> None:
        deliveries = records[records[:, KIND] == DELIVER]
        for origin, sent in sends.items():
            own = deliveries[deliveries[:, ORIGIN] == origin]
            if len(own):
                at_ns = sent[np.searchsorted(sent[:, FIRST], own[:, FIRST], side="right") - 1, TIME_NS]
                latencies = self.statistics.origin if origin == process else self.statistics.remote
                latencies.add(np.maximum(own[:, TIME_NS] - at_ns, 0), own[:, COUNT])

    def outcome(self) -> Outcome:
        return Outcome(
            complete=self._complete,
            messages=int(self.statistics.sent.sum()),
            deliveries=int(self.statistics.delivered.sum()),
            crashed=tuple(sorted(set(range(self.config.members)) - set(map(int, self._running())))),
        )

    def promises(self) -> Iterable[Guarantee]:
        return promises(self._rules)

    def groups(self) -> Mapping[str, tuple[int, ...]]:
        return {GROUP: tuple(range(self.config.members))}

    def happened(self) -> tuple[Happened, ...]:
        return tuple(self._happened)

    def link_packets(self) -> dict[str, int]:
        return dict(self._connections.counts) if self.config.network.loss else {}


def _all_faults(given: FaultConfig) -> tuple[Fault, ...]:
    """The faults of all options. What lasts for no time does not happen."""
    words = parse_faults(given.words) if given.words else ()
    crashes = [Kill(crash.member, _whole_ms(crash.at_ms)) for crash in given.crashes]
    pauses = [Stop(pause.member, _whole_ms(pause.at_ms), _whole_ms(pause.for_ms)) for pause in given.pauses if pause.for_ms]
    partitions = [
        Partition(partition.sides, _whole_ms(partition.at_ms), _whole_ms(partition.for_ms))
        for partition in given.partitions
        if partition.for_ms
    ]
    return (*words, *crashes, *pauses, *partitions)


def _whole_ms(time_ms: float) -> int:
    if time_ms != round(time_ms):
        raise BadInput(f"the time {time_ms:g} of a fault is not a whole number of milliseconds")
    return round(time_ms)


def _timing(given: FaultConfig) -> Timing:
    if given.detect_ms is None:
        return Timing()
    if given.detect_ms < DETECT_MS_MIN:
        raise BadInput(f"members need at least {DETECT_MS_MIN} ms to detect that another is silent, not {given.detect_ms:g}")
    return Timing(timeout_s=given.detect_ms / 1000)


def _make_connections(config: SimulationConfig) -> Connections:
    """Connections keep order by themselves here, so the network need not."""
    given, members = config.network, config.members
    delays, random = parse_delays(given.delay, members), stream(config.seed, "network")
    network = Network(members, delays, random, reorder=True, loss=given.loss, duplicate=given.duplicate)
    return Connections(network, ordered=False)


def _check(config: SimulationConfig) -> None:
    """Raise BadInput where a group that changes cannot be simulated so."""
    if config.protocol not in IN_VIEWS:
        known = ", ".join(IN_VIEWS)
        raise BadInput(f"groups of {config.protocol} are fixed and end with their first fault; choose one of {known}")
    if config.network.links != "auto":
        raise BadInput("a group that survives faults does so over connections; leave out --links, or the faults")
    if config.receipts:
        raise BadInput("receipts are not recorded in a group that survives faults; leave out --receipts, or the faults")
