"""Random stores in a world: clients with programs, on a network as bad as asked for, with crashes of whatever survives them.

A program is a list of keys to read or write. A client runs its programs one after the other, each again after a random
pause as long as it may try. Everything is kept for the checks of `histories`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import msgspec

from quire.protocols.node import Node, Notice
from quire.protocols.transactions.cells import Cell, Value
from quire.protocols.transactions.durable import Durable
from quire.protocols.transactions.errors import CommitUnknown, TransactionError
from quire.protocols.transactions.notices import Answered, Began, Failed, Traced
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.requests import Begin, Finish, Get, Put, Request
from quire.protocols.transactions.settings import MILLISECOND, Settings
from quire.protocols.transactions.timestamps import Timestamp, Version
from quire.simulation.delays import parse_delays
from quire.simulation.network import Network, Split
from quire.simulation.world import SimulatedHost, World
from tests.transactions.histories import Did, History, State, dirty_read, final_state, wrong_order

SECOND = 1_000_000_000
END_NS = 60 * SECOND

Program = Sequence[tuple[str, str]]
"""Each ("r" or "w", key)."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run depends on besides its seed."""

    replication: str = "all"
    replicas: int
    clients: int
    placement: Placement
    programs: list[list[Program]]
    """By client."""
    tries: int = 1
    loss: float = 0.0
    duplicate: float = 0.0
    settings: Settings = Settings()
    co_located: bool = False
    """Clients share the addresses of replicas, as in the paper."""
    client_crashes: dict[int, int] = {}
    """When a client vanishes."""
    replica_crashes: list[tuple[int, int, int, str]] = []
    """Replica, when, for how long, and how it comes back: intact, forgetful (read timestamps were in memory) or blank."""
    splits: list[Split] = []


class Driver:
    """The application of one client."""

    def __init__(self, store: Store, host: SimulatedHost, programs: Sequence[Program], random: Random) -> None:
        self.store = store
        self.host = host
        self.programs = list(programs)
        self.random = random
        self.tries = 0
        self.t: Timestamp | None = None
        self.step = 0
        self.calls = 0
        self.finished = not programs
        self.given_up = 0

    def ask(self, request: Request) -> None:
        self.calls += 1
        node, now = self.host.node, self.host.world.now
        assert isinstance(node, Processor | QuorumClient)
        self.host.act(node.submit(now, self.calls, request))

    def begin(self, _: object = None) -> None:
        if self.host.gone:
            return
        if not self.programs:
            self.finished = True
            return
        self.tries += 1
        pause = 0 if self.tries == 1 else int(self.random.random() * 20 * MILLISECOND * min(self.tries, 8))
        self.ask(Begin(pause, None if self.tries == 1 else self.t))

    def on_notice(self, notice: Notice) -> None:
        assert isinstance(notice, Began | Answered | Failed)
        if notice.call != self.calls:
            return
        # Applications act after the step that told them, not inside it.
        self.host.world.at(self.host.world.now, self._go_on, notice)

    def _go_on(self, notice: Began | Answered | Failed) -> None:
        if self.host.gone:
            return
        program = self.programs[0]
        if isinstance(notice, Failed):
            self.failed(notice.error)
            return
        if isinstance(notice, Began):
            self.t, self.step = notice.t, 0
            self.store.history[notice.t] = []
        else:
            assert self.t is not None
            if self.step == len(program):
                self.store.answered.add(self.t)
                self.next_program()
                return
            self.note(program[self.step], notice.value)
            self.step += 1
        assert self.t is not None
        if self.step == len(program):
            self.ask(Finish(self.t, True))
            return
        op, key = program[self.step]
        if op == "r":
            self.ask(Get(self.t, key))
        else:
            writes = sum(kind == "w" for kind, _ in program[: self.step + 1])
            version = Version(*self.t, writes)
            value = None if self.random.random() < 0.1 else f"{self.t}/{writes}".encode()
            # Noted when it is sent: from then on somebody else may commit it.
            self.store.history[self.t].append(Did("w", key, version, value))
            self.ask(Put(self.t, key, value))

    def note(self, step: tuple[str, str], value: Value) -> None:
        op, key = step
        if op == "r":
            assert self.t is not None
            self.store.history[self.t].append(Did("r", key, self.store.version_seen[self.host.node.address], value))

    def failed(self, error: TransactionError) -> None:
        assert self.t is not None
        self.store.errors.append(error)
        if isinstance(error, CommitUnknown) or self.tries >= self.store.plan.tries:
            self.given_up += 1
            self.next_program()
        else:
            self.begin()

    def next_program(self) -> None:
        self.programs.pop(0)
        self.tries = 0
        self.begin()


MakeReplica = Callable[..., QuorumReplica]


class Store:
    """One run."""

    def __init__(self, plan: Plan, seed: int, *, processor: type[Processor] = Processor,
                 replica: MakeReplica = QuorumReplica, client: type[QuorumClient] = QuorumClient) -> None:  # fmt: skip
        self.plan = plan
        self.random = Random(f"{seed}/store")
        self.history: History = {}
        self.answered: set[Timestamp] = set()
        self.errors: list[TransactionError] = []
        self.version_seen: dict[int, Version] = {}
        self.decisions: dict[Timestamp, set[bool]] = {}
        """What replicas, also those that crashed later, held to be decided."""
        self.make_replica = replica
        nodes = plan.replicas if plan.co_located else plan.replicas + plan.clients
        delays = parse_delays("exponential:5", nodes)
        network = Network(nodes, delays, Random(f"{seed}/network"), reorder=True, loss=plan.loss, duplicate=plan.duplicate,
                          splits=plan.splits)  # fmt: skip
        self.world = World(network)
        first = 0 if plan.co_located else plan.replicas
        clients = range(first, first + plan.clients)
        self.durable: dict[int, Durable] = {}
        self._away: dict[int, str] = {}
        self.incarnations: dict[int, int] = {}
        self.drivers: list[Driver] = []
        for address in range(nodes):
            if plan.replication == "all":
                node: Node = processor(address, plan.placement, clients, plan.settings, self.random.random)
            elif address in plan.placement.replicas:
                node = self.first_life(address)
            else:
                node = client(address, plan.placement, plan.settings, self.random.random)
            self.settle(node)
        self.by_address = {
            address: Driver(self, self.world.hosts[address], plan.programs[index], self.random)
            for index, address in enumerate(clients)
        }
        for address, driver in self.by_address.items():
            self.world.at(int(self.random.random() * 20 * MILLISECOND), driver.begin, None)
            if address in plan.client_crashes:
                self.world.at(plan.client_crashes[address], self.world.crash, address)
        for address, at, down, kind in plan.replica_crashes:
            self.world.at(at, self.crash_replica, (address, down, kind))

    def first_life(self, address: int) -> QuorumReplica:
        return self.make_replica(address, self.plan.placement, self.plan.settings, self.random.random)

    def settle(self, node: Node) -> None:
        self.world.add(node, self.hear)

    def hear(self, host: SimulatedHost, notice: Notice) -> None:
        address = host.node.address
        if isinstance(notice, Traced):
            if notice.kind == "view":
                self.version_seen[address] = version_of(notice)
            elif notice.op in ("commit", "abort") and isinstance(host.node, QuorumReplica):
                self.decisions.setdefault(notice.t, set()).add(notice.op == "commit")
            return
        self.by_address[address].on_notice(notice)

    def crash_replica(self, crash: tuple[int, int, str]) -> None:
        address, down, kind = crash
        host = self.world.hosts[address]
        if host.gone or any(other.gone or self._recovering(other.node) for other in self.world.hosts[: self.plan.replicas]):
            return  # One at a time.
        self.world.crash(address)
        node = host.node
        assert isinstance(node, QuorumReplica)
        self.durable[address] = node.state
        if down >= 0:
            self.world.at(self.world.now + down, self.restart_replica, (address, kind))

    @staticmethod
    def _recovering(node: Node) -> bool:
        return isinstance(node, QuorumReplica) and node.recovering

    def restart_replica(self, how: tuple[int, str]) -> None:
        address, kind = how
        plan, old = self.plan, self.durable[address]
        lost = None
        if kind == "forgetful":
            old = old.without_read_timestamps()
        elif kind == "blank":
            lost = self.incarnations[address] = self.incarnations.get(address, 0) + 1
        state = None if kind == "blank" else old
        node = self.make_replica(address, plan.placement, plan.settings, self.random.random, state, lost, self.world.now)
        self.world.restart(address, node)

    def run(self) -> str | None:
        """To the end; returns what is wrong with it."""
        if not self.world.run(END_NS, self.done):
            return "it got stuck"
        return self.wrong()

    def done(self) -> bool:
        """Whether all programs have ended, and every replica that is there knows all that is decided. One that was silent
        for long counts as lost to the others, until they hear of it again."""
        ended = all(driver.finished or driver.host.gone for driver in self.by_address.values())
        return ended and self.world.idle() and not self._somebody_lacks()

    def _somebody_lacks(self) -> bool:
        there = [host.node for host in self.world.hosts if isinstance(host.node, QuorumReplica) and not host.gone]
        return any(one.owes(other.address) for one in there for other in there)

    def committed(self) -> set[Timestamp]:
        return self.answered | {t for t, outcomes in self.decisions.items() if outcomes == {True}}

    def wrong(self) -> str | None:
        for t, outcomes in self.decisions.items():
            if len(outcomes) > 1 or (t in self.answered and outcomes != {True}):
                return f"disagreement on {t}"
        committed = self.committed()
        return (
            wrong_order(self.history, committed)
            or dirty_read(self.history, committed)
            or self._wrong_replica(final_state(self.history, committed))
        )

    def _wrong_replica(self, state: State) -> str | None:
        for host in self.world.hosts:
            cells = cells_of(host.node)
            if cells is None or host.gone:
                continue
            for key, (version, value) in state.items():
                if host.node.address in self.plan.placement.of(key):
                    cell = cells.get(key)
                    if cell is None or (cell.wts, cell.value) != (version, value):
                        return f"replica {host.node.address} holds {key} as {cell and cell.wts}, not {version}"
            for key, cell in cells.items():
                if key not in state and cell.value is not None:
                    return f"replica {host.node.address} holds {key}, which nobody committed"
        return None


def cells_of(node: Node) -> dict[str, Cell] | None:
    if isinstance(node, Processor):
        return None if node.replica is None else node.replica.cells
    return node.state.cells if isinstance(node, QuorumReplica) else None


def version_of(notice: Traced) -> Version:
    """The version that a read names by the message that wrote it; its own request: nobody wrote."""
    tid, number = divmod(notice.id.seq, 1 << 16)
    return Version(tid, notice.id.origin, number) if number < 1 << 15 else Version(0, 0, 0)
