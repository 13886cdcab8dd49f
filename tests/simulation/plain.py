"""The plainest protocol there is, and faulty relatives: to see the simulator do its part without any ordering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from quire.model.errors import HoldBackFull, ProtocolViolation, WindowFull
from quire.model.messages import Body, Run
from quire.model.orders import RELIABLE, Guarantee
from quire.model.packets import Packet
from quire.protocols.contract import NOTHING, Deliver, Effects, Links, Protocol, Send
from quire.simulation.config import FaultConfig, NetworkConfig, SimulationConfig
from quire.simulation.engine import Engine
from quire.simulation.runs import make_network


class Data(Packet, frozen=True, tag=1):
    name: ClassVar[str] = "DATA"
    run: Run

    def carried(self) -> Run:
        return self.run


class Go(Packet, frozen=True, tag=2):
    name: ClassVar[str] = "GO"


class Plain(Protocol):
    """Delivers whatever comes as it comes; a gap on a link is a violation."""

    promises = RELIABLE | {Guarantee.FIFO}
    links = Links.FIFO
    packets = (Data, Go)

    def __init__(self, me: int, members: int) -> None:
        super().__init__(me, members)
        self.next = [0] * members

    def submit(self, run: Run) -> Effects:
        return (Send(Data(run)), Deliver(run))

    def receive(self, source: int, packet: Packet) -> Effects:
        assert isinstance(packet, Data)
        if packet.run.first != self.next[source]:
            raise ProtocolViolation(source, f"message {packet.run.first} came before {self.next[source]}")
        self.next[source] = packet.run.end
        return (Deliver(packet.run),)

    def waiting(self) -> Sequence[tuple[()]]:  # type: ignore[override]
        return ()


class Loose(Plain):
    """Takes anything, however often and in whatever order."""

    links = Links.RELIABLE

    def receive(self, source: int, packet: Packet) -> Effects:
        assert isinstance(packet, Data)
        return (Deliver(packet.run),)


class Narrow(Plain):
    """Has one of its own runs outstanding at a time: member 1 lets it go on."""

    def __init__(self, me: int, members: int) -> None:
        super().__init__(me, members)
        self.mine: Run | None = None

    def submit(self, run: Run) -> Effects:
        if self.mine is not None:
            raise WindowFull("one at a time")
        self.mine = run
        return (Send(Data(run)),)

    def receive(self, source: int, packet: Packet) -> Effects:
        if isinstance(packet, Data):
            effects = super().receive(source, packet)
            return (Send(Go(), (source,)), *effects) if self.me == 1 else effects
        assert self.mine is not None
        run, self.mine = self.mine, None
        return (Deliver(run),)


class Choosy(Plain):
    """Member 2 takes the first message of member 0 only after one of member 1."""

    def receive(self, source: int, packet: Packet) -> Effects:
        if self.me == 2 and source == 0 and not self.next[1]:
            raise HoldBackFull("member 1 first")
        return super().receive(source, packet)


class Halving(Plain):
    """Delivers the first half of a run when it comes and the rest with the next packet."""

    def __init__(self, me: int, members: int) -> None:
        super().__init__(me, members)
        self.rest: list[Run] = []

    def receive(self, source: int, packet: Packet) -> Effects:
        if not isinstance(packet, Data):
            return NOTHING
        half = packet.run.count // 2
        effects = [Deliver(rest) for rest in self.rest] + [Deliver(packet.run.part(0, half))]
        self.rest = [packet.run.part(half, packet.run.count)]
        return effects


def engine(
    protocol: type[Plain],
    members: int = 3,
    network: NetworkConfig | None = None,
    faults: FaultConfig | None = None,
    seed: int = 0,
) -> tuple[Engine, list[list[tuple[int, int]]]]:
    """An engine for the protocol, and the (origin, number) of what each member delivers, as it does."""
    network = network or NetworkConfig()
    config = SimulationConfig(members=members, seed=seed, network=network, faults=faults or FaultConfig())
    made = Engine([protocol(me, members) for me in range(members)], make_network(config), raw=network.links == "raw")
    log: list[list[tuple[int, int]]] = [[] for _ in range(members)]

    def observe(member: int, effect: Deliver) -> None:
        log[member] += [(effect.run.origin, effect.run.first + step) for step in range(effect.run.count)]

    made.observe = observe
    return made, log


def later(made: Engine, member: int, count: int, body: Body) -> Callable[[Any], None]:
    """Something to schedule: the member submits."""

    def act(_: Any) -> None:
        made.submit(member, count, body)

    return act
