"""The sequencing service in the simulator: a ring of overlapping groups, whose members send to them.

Processes are numbered: first the members, then the sequencers, then the directory. The members are divided among the groups,
and each group also has the first `overlap` members of the next one. Everything goes through the service: groups are created and
joined, and once all members are in, they send, each to its own groups in turn; the last `strangers` members are in no group and
send to all. Meanwhile, clients leave and come back `changes` times, and groups are moved `moves` times.

Latency is measured from the send of a message, at the origin and elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from random import Random

from quire.model.messages import Body
from quire.model.orders import Guarantee
from quire.protocols.node import Node, Notice
from quire.protocols.sequencing import Client, Directory, Sequencer
from quire.protocols.sequencing.errors import Overload
from quire.protocols.sequencing.events import BLANK, LEAVE, OPS
from quire.protocols.sequencing.notices import Changed, Delivered, Failed, Found, Numbered, Skipped
from quire.protocols.sequencing.ring import RingOptions
from quire.simulation.config import SimulationConfig
from quire.simulation.delays import to_ns
from quire.simulation.randomness import stream
from quire.simulation.scenario import Scenario
from quire.simulation.workload import due_times, payload
from quire.simulation.world import SimulatedHost, World
from quire.trace.log import Address


class Member:
    """A client's application."""

    def __init__(self, host: SimulatedHost, client: Client, groups: tuple[str, ...]) -> None:
        self.host = host
        self.client = client
        self.groups = groups
        self.to_join = list(groups)
        self.views: dict[str, tuple[int, ...]] = {}
        self.left = 0
        """How many messages it still has to send."""
        self.due: Iterator[int] = iter(())
        self.targets: Iterator[str] = iter(())
        self.sent: dict[int, tuple[int, int]] = {}
        """Its own sends by first message number: the time and the record of each, until the destinations are known."""
        self.full = False
        self.returns: list[str] = []
        """Groups that it left and will join again."""


class Ring(Scenario):
    instead_of_faults = "give it --backups, or leave them out"

    @classmethod
    def processes(cls, config: SimulationConfig, options: RingOptions) -> int:
        options.layout(config.members)
        return config.members + options.sequencers + 1

    def __init__(self, config: SimulationConfig, options: RingOptions, world: World) -> None:
        super().__init__(config, options, world)
        self._groups = options.layout(config.members)
        self.units = range(config.members, config.members + options.sequencers)
        """The sequencers' addresses; the directory has the next."""
        clients, others = self._nodes()
        self.members: list[Member] = []
        for address, client in enumerate(clients):
            own = tuple(group for group, inside in self._groups.items() if address in inside)
            self.members.append(Member(world.add(client, self._on_notice), client, own))
        for node in others:
            world.add(node, self._on_notice)
        self.longest_queue = 0
        self._random = stream(config.seed, "changes")
        self._body = payload(config.workload.size)
        self._outside = sum(len(inside) for inside in self._groups.values())
        """How many joins are outstanding before sending begins."""
        self._unsent = 0
        self._pending = 0
        """How many changes and moves are still to come."""
        self._sent_at: dict[tuple[int, int], int] = {}
        self._missing = 0
        """How many deliveries are known to be due and have not taken place."""

    def _nodes(self) -> tuple[Sequence[Client], Sequence[Node]]:
        """The clients, and everybody else."""
        units, options, directory = self.units, self.options, self.units[-1] + 1
        self._sequencers = [Sequencer(address, units, directory, options) for address in units]
        self.directory = Directory(directory, units, options)
        clients = [Client(address, units, directory, options) for address in range(self.config.members)]
        return clients, (*self._sequencers, self.directory)

    @property
    def sequencers(self) -> Sequence[Sequencer]:
        """Those that work now."""
        return self._sequencers

    # The run.

    def start(self) -> None:
        for member in self.members:
            for group in member.groups or self._groups:
                ask = member.client.create if member.groups else member.client.find
                member.host.act(ask(self.world.now, group))
        self._unsent = self.total()

    def done(self) -> bool:
        return not (self._unsent or self._pending or self._outside) and self.world.idle()

    def sent(self) -> int:
        return self.total() - self._unsent

    def total(self) -> int:
        return len(self.config.senders()) * self.config.workload.messages

    def complete(self) -> bool:
        return not self._missing and not any(member.sent for member in self.members)

    def promises(self) -> frozenset[Guarantee]:
        promised: frozenset[Guarantee] = self.options.promises()
        return promised

    def groups(self) -> Mapping[str, tuple[int, ...]]:
        return self._groups

    def details(self) -> dict[str, object]:
        return {
            "load": {f"sequencer {sequencer.address}": sequencer.numbered for sequencer in self.sequencers},
            "longest_queue": self.longest_queue,
            "groups_moved": self.directory.moved,
            "moves_called_off": sum(not committed for committed in self.directory.committed.values()),
        }

    # Getting in.

    def _on_notice(self, host: SimulatedHost, notice: Notice) -> None:
        member = self.members[host.node.address]
        match notice:
            case Found():
                self._join_next(member)
            case Failed():  # A stranger may look for a group before it is created.
                self.world.at(self.world.now + self.options.tick_ns, self._find_again, (member, notice.group))
            case Changed():
                self._changed(member, notice)
            case Delivered():
                self._delivered(member, notice)
            case Skipped():
                for number in range(notice.first, notice.last + 1):
                    member.host.record_view(0, number, Address(notice.group, member.views[notice.group], op=OPS[BLANK]))
            case Numbered():
                self._numbered(member, notice)

    def _find_again(self, who: tuple[Member, str]) -> None:
        member, group = who
        member.host.act(member.client.find(self.world.now, group))

    def _join_next(self, member: Member) -> None:
        """In the next step: the client has not ended this one yet."""
        self.world.at(self.world.now, self._join_now, member)

    def _join_now(self, member: Member) -> None:
        client = member.client
        if member.to_join and client.request is None and member.to_join[0] in client.locations:
            member.host.act(client.join(self.world.now, member.to_join[0]))

    def _changed(self, member: Member, notice: Changed) -> None:
        member.views[notice.group] = notice.members
        address = Address(notice.group, notice.members, op=OPS[notice.kind])
        member.host.record_view(notice.who, notice.seq, address)
        if notice.who != member.client.address:
            return
        if notice.kind == LEAVE:
            member.to_join.append(notice.group)
        else:
            member.to_join.remove(notice.group)
            if self._outside:
                self._outside -= 1
                if not self._outside:
                    self._begin()
            else:
                self._pending -= 1
        self._join_next(member)

    # Sending.

    def _begin(self) -> None:
        """Everybody is in: send from now on, and change what is to change meanwhile."""
        began, workload = self.world.now, self.config.workload
        for index, number in enumerate(self.config.senders()):
            member = self.members[number]
            member.left = workload.messages
            member.due = (
                began + time for time in due_times(self.config, index, stream(self.config.seed, f"workload/{number}"))
            )
            member.targets = cycle(member.groups or tuple(self._groups))
            self._schedule(member)
        span_ns = to_ns(workload.interval_ms, "the interval") * -(-workload.messages // workload.batch)
        for act, times in ((self._leave, self.options.changes), (self._move, self.options.moves)):
            self._pending += times
            for _ in range(times):
                self.world.at(began + int(self._random.random() * span_ns), act, self._random)

    def _schedule(self, member: Member) -> None:
        if member.left:
            self.world.at(max(next(member.due), self.world.now), self._submit, member)

    def _submit(self, member: Member) -> None:
        workload, client = self.config.workload, member.client
        count, group = min(workload.batch, member.left), next(member.targets)
        if not count:
            return
        if group not in client.locations:
            self._schedule(member)
            return
        first = client.next_number
        try:
            effects = client.multicast(self.world.now, group, Body(self._body * count, workload.size), count)
        except Overload:
            member.full = True
            return
        member.left -= count
        self._unsent -= count
        record = member.host.defer_send(client.address, first, Address(group, None), workload.size, count)
        member.sent[first] = (self.world.now, record)
        self._sent_at[client.address, first] = self.world.now
        member.host.act(effects)
        if workload.mode == "pipelined":
            self._schedule(member)

    def _numbered(self, member: Member, notice: Numbered) -> None:
        self.longest_queue = max([self.longest_queue, *(sequencer.queue() for sequencer in self.sequencers)])
        if notice.members is not None:
            self._settle(member, notice.group, notice.first, notice.members)
        if self.config.workload.mode == "blocking" or member.full:
            member.full = False
            self._schedule(member)

    def _settle(self, member: Member, group: str, first: int, members: tuple[int, ...]) -> None:
        _, record = member.sent.pop(first)
        member.host.settle(record, Address(group, tuple(sorted(members))))
        self._missing += len(members)

    def _delivered(self, member: Member, notice: Delivered) -> None:
        run, me = notice.run, member.client.address
        member.host.record_delivery(run.origin, run.first, Address(notice.group), run.body.size, run.count)
        waits = self.origin_waits if run.origin == me else self.remote_waits
        waits.extend([self.world.now - self._sent_at[run.origin, run.first]] * run.count)
        self._missing -= 1
        if run.origin == me:
            self._settle(member, notice.group, run.first, member.views[notice.group])

    # Changing.

    def _leave(self, random: Random) -> None:
        able = [member for member in self.members if member.client.request is None and member.client.hold.delivered]
        if not able:
            self._pending -= 1
            return
        member = random.choice(able)
        group = random.choice(sorted(member.client.hold.delivered))
        member.host.act(member.client.leave(self.world.now, group))

    def _move(self, random: Random) -> None:
        self._pending -= 1
        client = self.members[0].client
        group, to = random.choice(sorted(self._groups)), random.choice(self.units)
        self.members[0].host.act(client.move(self.world.now, group, to))
