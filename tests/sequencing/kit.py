"""A sequencing service in a seeded world, what its clients do there, and what must be true of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from quire.model.messages import pack
from quire.protocols.node import Effects, Notice, Send
from quire.protocols.sequencing.client import Client
from quire.protocols.sequencing.directory import Directory
from quire.protocols.sequencing.errors import Overload
from quire.protocols.sequencing.events import MESSAGES, Event
from quire.protocols.sequencing.notices import Changed, Delivered, Failed, Numbered
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.sequencer import Sequencer
from quire.protocols.sequencing.state import GroupState
from quire.simulation.delays import parse_delays
from quire.simulation.network import Split
from quire.simulation.randomness import stream
from quire.simulation.world import SimulatedHost, World
from tests.kit.late import Lateness, LateNetwork

MS = 1_000_000
TICK_MS = 40
FOREVER_NS = 120_000 * MS


def found_long_ago(
    sequencer: Sequencer, directory: Directory, clients: Sequence[Client], group: str, unit: int, members: Sequence[int]
) -> None:
    """Everybody knows of a group as if it had been founded long ago."""
    sequencer.groups[group] = GroupState(group, members=dict.fromkeys(members, 0), reached=dict.fromkeys(members, 0))
    sequencer.founded.add(group)
    directory.locations[group] = unit
    directory.entries[group] = dict.fromkeys(members, 0)
    directory.over[group] = {}
    for client in clients:
        client.locations[group] = unit
    for member in members:
        clients[member].hold.delivered[group] = 0
        clients[member].views[group] = tuple(members)


class Action(NamedTuple):
    at_ms: int
    kind: str
    """send, join, leave or move"""
    client: int
    group: str
    amount: int = 1
    """How many messages; of a move, which sequencer."""


class Faults(msgspec.Struct, frozen=True):
    loss: float = 0.0
    duplicate: float = 0.0
    delay: str = "exponential:5"
    reorder: bool = True
    cuts: tuple[Split, ...] = ()
    lateness: Lateness = Lateness()


class Kinds(msgspec.Struct, frozen=True):
    """The classes of the nodes: tests put wrong ones in their places."""

    client: type[Client] = Client
    sequencer: type[Sequencer] = Sequencer
    directory: type[Directory] = Directory


GOOD_NETWORK, RIGHT = Faults(), Kinds()


class Seen(NamedTuple):
    """An event as a client delivered it."""

    group: str
    seq: int
    kind: int
    who: int
    first: int
    """Of messages: the number of the first at its sender."""
    size: int
    """How many messages, or 1."""


class Service:
    def __init__(
        self,
        options: SequencingOptions,
        initial: Mapping[str, tuple[int, Sequence[int]]],
        *,
        clients: int,
        sequencers: int,
        seed: int = 0,
        faults: Faults = GOOD_NETWORK,
        kinds: Kinds = RIGHT,
    ) -> None:
        """`initial` says for each group which sequencer (from 0) it has, and who founded it."""
        self.options = options
        size = clients + sequencers + 1
        network = LateNetwork(
            size, parse_delays(faults.delay, size), stream(seed, "network"), lateness=faults.lateness,
            reorder=faults.reorder, loss=faults.loss, duplicate=faults.duplicate, splits=faults.cuts,
        )  # fmt: skip
        self.world = World(network)
        self.log: dict[str, dict[int, Seen]] = defaultdict(dict)
        self.numbered_at: dict[tuple[str, int], int] = {}
        self.violations: list[str] = []
        self.delivered: list[list[Seen]] = [[] for _ in range(clients)]
        self.past: dict[tuple[int, int], int] = {}
        """Of each message, by sender and number: the messages that were sent before it, as bits."""
        self.bit: dict[tuple[int, int], int] = {}
        self.destination: dict[tuple[int, int], str] = {}
        self.dests: dict[tuple[int, int], tuple[int, ...]] = {}
        self.overloads = 0
        self.views: dict[tuple[int, str], tuple[int, ...]] = {}
        """By client and group: the members, as it was told."""
        self._knows = [0] * clients
        self._todo: list[list[Action]] = [[] for _ in range(clients)]
        self._unsent: list[list[Action]] = [[] for _ in range(clients)]
        self._actions_left = 0
        self._populate(kinds, clients, sequencers)
        for group, (unit, members) in initial.items():
            self._found(group, clients + unit, members)
        self.founders = {group: tuple(members) for group, (_, members) in initial.items()}

    def _populate(self, kinds: Kinds, clients: int, sequencers: int) -> None:
        """Clients come first, then sequencers, then the directory."""
        units, directory, options = range(clients, clients + sequencers), clients + sequencers, self.options
        self.clients = [kinds.client(address, units, directory, options) for address in range(clients)]
        self.sequencers = [self._watched(kinds.sequencer)(address, units, directory, options) for address in units]
        self.directory = kinds.directory(directory, units, options)
        self.hosts = [self.world.add(node, self._on_notice) for node in (*self.clients, *self.sequencers, self.directory)]

    def _found(self, group: str, unit: int, members: Sequence[int]) -> None:
        sequencer = self.world.hosts[unit].node
        assert isinstance(sequencer, Sequencer)
        found_long_ago(sequencer, self.directory, self.clients, group, unit, members)
        for member in members:
            self.views[member, group] = tuple(members)
            self.hosts[member].act(self.clients[member].wake(0))

    def _watched(self, kind: type[Sequencer]) -> type[Sequencer]:
        service = self

        class Watched(kind):  # type: ignore[misc, valid-type]
            def _emit(self, state: GroupState, *arguments: int, **more: object) -> Send:
                send = super()._emit(state, *arguments, **more)
                service._numbered(send.packet)
                return send  # type: ignore[no-any-return]

        return Watched

    def _numbered(self, event: Event) -> None:
        seen = _seen(event)
        before = self.log[event.group].get(event.seq)
        if before is not None:
            self.violations.append(f"fork: {event.group}{event.seq} is {before} and {seen}")
        if seen.kind == MESSAGES and any(
            other.kind == MESSAGES and (other.who, other.first) == (seen.who, seen.first)
            for other in self.log[event.group].values()
        ):
            self.violations.append(f"duplicate: {seen} was numbered twice")
        self.log[event.group][event.seq] = seen
        self.numbered_at[event.group, event.seq] = self.world.now

    def _on_notice(self, host: SimulatedHost, notice: Notice) -> None:
        me = host.node.address
        if isinstance(notice, Delivered):
            run = notice.run
            self.delivered[me].append(Seen(notice.group, notice.seq, MESSAGES, run.origin, run.first, run.count))
            if list(run.payloads()) != [b"%d" % number for number in range(run.first, run.end)]:
                self.violations.append(f"corrupt: {notice}")
            for number in range(run.first, run.end):
                message = (run.origin, number)
                self._knows[me] |= self.past[message] | self.bit[message]
                if run.origin == me:
                    self.dests[message] = self.views[me, notice.group]
        elif isinstance(notice, Changed):
            self.delivered[me].append(Seen(notice.group, notice.seq, notice.kind, notice.who, -1, 1))
            self.views[me, notice.group] = notice.members
            if notice.who == me:
                # The node has not ended its step yet.
                self.world.at(self.world.now, self._next_request, me)
        elif isinstance(notice, Numbered):
            if notice.members is not None:
                for number in range(notice.first, notice.first + notice.count):
                    self.dests[me, number] = notice.members
            self.world.at(self.world.now, self._send_again, me)
        elif isinstance(notice, Failed):
            self.violations.append(f"failed: {notice.error!r}")

    # What clients do.

    def play(self, actions: Iterable[Action]) -> Service:
        for action in actions:
            self._actions_left += 1
            self.world.at(action.at_ms * MS, self._act, action)
        return self

    def _act(self, action: Action) -> None:
        self._actions_left -= 1
        if action.kind == "move":
            client = self.clients[action.client]
            to = self.sequencers[action.amount % len(self.sequencers)].address
            self.hosts[action.client].act(client.move(self.world.now, action.group, to))
        elif action.kind == "send":
            self._unsent[action.client].append(action)
            self._send_again(action.client)
        else:
            self._todo[action.client].append(action)
            self._next_request(action.client)

    def _send_again(self, me: int) -> None:
        while self._unsent[me]:
            try:
                self._send(self._unsent[me][0])
            except Overload:
                self.overloads += 1
                return
            self._unsent[me].pop(0)

    def _send(self, action: Action) -> None:
        me, client = action.client, self.clients[action.client]
        first = client.next_number
        numbers = range(first, first + action.amount)
        effects = client.multicast(self.world.now, action.group, pack([b"%d" % number for number in numbers]), action.amount)
        for number in numbers:
            message = (me, number)
            self.past[message] = self._knows[me]
            self.bit[message] = 1 << len(self.bit)
            self.destination[message] = action.group
            self._knows[me] |= self.bit[message]
        self.hosts[me].act(effects)

    def _next_request(self, me: int) -> None:
        client, todo = self.clients[me], self._todo[me]
        while todo and client.request is None:
            action = todo.pop(0)
            inside = action.group in client.hold.delivered
            effects: Effects = ()
            if action.kind == "join" and not inside:
                effects = client.join(self.world.now, action.group)
            elif action.kind == "leave" and inside:
                effects = client.leave(self.world.now, action.group)
            self.hosts[me].act(effects)

    def is_blank(self, group: str, first: int, end: int) -> bool:
        """Whether nothing was ever known to have these numbers, so that nobody delivers anything there."""
        return False

    def quiet(self) -> bool:
        return not self._actions_left and not any(self._todo) and not any(self._unsent) and self.world.idle()

    def run(self, until_ns: int = FOREVER_NS) -> Service:
        self.ended = self.world.run(until_ns, self.quiet)
        return self


def _seen(event: Event) -> Seen:
    if event.kind == MESSAGES:
        return Seen(event.group, event.seq, event.kind, event.who, event.run.first, event.run.count)
    return Seen(event.group, event.seq, event.kind, event.who, -1, 1)
