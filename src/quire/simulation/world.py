"""The simulated world of a service: its nodes on a seeded network that may lose, duplicate and reorder packets.

It has one heap of future events in virtual time, like `engine`, but for nodes: they cope with the network themselves, so there
are no reliable connections in between; they have timers; and their applications are callbacks that may act at once. Every
packet carries the sender's Lamport time and is recorded, so that traces are like those of any other driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count as counter
from typing import Any, TypeVar

from quire.model.packets import header_bytes
from quire.protocols.node import Effect, Effects, Node, Notice, Send
from quire.simulation.network import Network
from quire.trace.event_recorder import EventRecorder
from quire.trace.log import EventLog

OnNotice = Callable[["SimulatedHost", Notice], None]
"""The application of a node: called with each notice, when everything before it in the same step was performed."""


class SimulatedHost(EventRecorder):
    """A node in the world, with its logical clock and its log."""

    log: EventLog

    def __init__(self, world: World, node: Node, on_notice: OnNotice) -> None:
        super().__init__(EventLog(node.address))
        self.world = world
        self.node = node
        self.on_notice = on_notice
        self.gone = False
        self.life = 0
        """How many processes were here before."""
        self._alarm: int | None = None

    def act(self, effects: Effects) -> None:
        """Perform the effects of one step of the node."""
        for effect in effects:
            self.perform(effect)
        self._set_alarm()

    def perform(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self.world.carry(self, effect)
        elif isinstance(effect, Notice):
            self.on_notice(self, effect)
        else:
            raise TypeError(f"node {self.node.address} has no disk for {type(effect.record).__name__}")

    def time_ns(self) -> int:
        return self.world.now

    def begin_again(self, node: Node, on_notice: OnNotice | None = None) -> None:
        """Replace a node that is gone by another, with its application if that is another one too."""
        if not self.gone or node.address != self.node.address:
            raise ValueError(f"only a node of address {self.node.address} can follow the one there, after it crashed")
        self.node, self.gone, self._alarm = node, False, None
        self.life += 1
        self.on_notice = on_notice or self.on_notice
        self.act(())

    def take(self, source: int, packet: Any, lamport: int) -> None:
        if not self.gone:
            self.heard(lamport)
            self.act(self.node.receive(self.world.now, source, packet))

    def _set_alarm(self) -> None:
        due = self.node.due()
        # An alarm that is already set for an earlier time sets the next one when it fires.
        if due is not None and not self.gone and (self._alarm is None or due < self._alarm):
            self._alarm = due = max(due, self.world.now)
            self.world.at(due, self._ring, due)

    def _ring(self, time_ns: int) -> None:
        if self._alarm != time_ns or self.gone:
            return
        self._alarm = None
        due = self.node.due()
        self.act(self.node.wake(self.world.now) if due is not None and due <= self.world.now else ())


Host = TypeVar("Host", bound=SimulatedHost)


class World:
    """Carries packets between nodes. Addresses are 0 … n-1 in the order in which nodes are added."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.now = 0
        self.hosts: list[SimulatedHost] = []
        self._heap: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._next_number = counter().__next__

    def add(self, node: Node, on_notice: OnNotice) -> SimulatedHost:
        return self.settle(SimulatedHost(self, node, on_notice))

    def settle(self, host: Host) -> Host:
        """Place a host at the next address."""
        if host.node.address != len(self.hosts):
            raise ValueError(f"the next address is {len(self.hosts)}, not {host.node.address}")
        self.hosts.append(host)
        host.act(())
        return host

    def at(self, time_ns: int, act: Callable[[Any], None], item: Any) -> None:
        """Call act(item) at that time, after everything that is already scheduled for it."""
        heappush(self._heap, (time_ns, self._next_number(), act, item))

    def carry(self, host: SimulatedHost, send: Send) -> None:
        source, packet, run = host.node.address, send.packet, send.packet.carried()
        host.tick()
        size = 0 if run is None else len(run.body.payload)
        host.record_packet(packet.name, len(send.to), header_bytes(packet), size)
        for address in send.to:
            parcel = (self.hosts[address], source, packet, host.clock)
            # What a node sends to itself does not touch the network.
            times = self.network.arrivals(source, address, self.now) if address != source else [self.now]
            for time in times:
                self.at(time, _arrive, parcel)

    def crash(self, address: int) -> None:
        """The node stops for good; what it sent is still on the way."""
        self.hosts[address].gone = True

    def restart(self, address: int, node: Node, on_notice: OnNotice | None = None) -> None:
        """Start a new node at the address of one that crashed, with another application if there is one."""
        self.hosts[address].begin_again(node, on_notice)

    def run(self, until_ns: int, done: Callable[[], bool] = lambda: False) -> bool:
        """Run until `done`, which is checked after every event, or until that time; returns whether it was done."""
        while self._heap and not done():
            time, _, act, item = self._heap[0]
            if time > until_ns:
                break
            heappop(self._heap)
            self.now = time
            act(item)
        return done()

    def busy(self) -> bool:
        """Whether anything is still going to happen."""
        return bool(self._heap)

    def idle(self, hosts: Iterable[SimulatedHost] | None = None) -> bool:
        """Whether nothing is unfinished at these nodes (by default all), regardless of packets in flight."""
        return all(host.gone or host.node.idle() for host in hosts or self.hosts)


def _arrive(parcel: tuple[SimulatedHost, int, Any, int]) -> None:
    host, source, packet, lamport = parcel
    host.take(source, packet, lamport)
