"""Transactions in the simulator: stores in virtual time, and a random workload of transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.protocols.node import Node, Notice
from quire.protocols.transactions.errors import TransactionError
from quire.protocols.transactions.omission import Counts
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.simulation.config import SimulationConfig
from quire.simulation.randomness import stream
from quire.simulation.scenario import Scenario, Service
from quire.simulation.steps import SteppedRuntime
from quire.simulation.workload import due_times
from quire.simulation.world import SimulatedHost, World
from quire.transactions.codecs import BYTES, Codec
from quire.transactions.nodes import StoreOptions, make_node, placement
from quire.transactions.record import record
from quire.transactions.store import Retries, Store
from quire.transactions.workload import TransactionWorkloadOptions, random_program


class TransactionSimulationOptions(TransactionWorkloadOptions, frozen=True, kw_only=True):
    """As live, but for what is simulated if nobody says: the paper's protocol."""

    replication: Literal["all", "majority"] = "all"


def add_store(
    world: World,
    node: Node,
    seed: int,
    *,
    codec: Codec = BYTES,
    retries: Retries | None = None,
    timeout_s: float = StoreOptions().patience_ms / 1000,
) -> Store:
    """Put a client into a world, and hold its store. Its `runtime` starts programs; the world must run for them to end."""
    assert isinstance(node, Processor | QuorumClient)
    runtime = SteppedRuntime(world, stream(seed, f"retries/{node.address}"))
    store = Store(node, runtime, codec=codec, retries=retries, timeout_s=timeout_s)

    def on_notice(host: SimulatedHost, notice: Notice) -> None:
        record(host, notice)
        store.on_notice(notice)

    runtime.host = world.add(node, on_notice)
    return store


class TransactionScenario(Scenario):
    """Each client runs so many transactions one after the other; `messages` is how many."""

    survives_crashes = True
    options: TransactionSimulationOptions

    @classmethod
    def processes(cls, config: SimulationConfig, options: TransactionSimulationOptions) -> int:
        placement(config.members, options)
        if config.workload.senders is not None:
            raise BadInput("transactions are run by clients, not members; choose how many with --option clients=N")
        if options.replication == "all" and config.faults.crashes:
            raise BadInput("replication=all assumes that no process crashes; choose replication=majority, or leave crashes out")
        return config.members + options.clients

    def __init__(self, config: SimulationConfig, options: TransactionSimulationOptions, world: World) -> None:
        super().__init__(config, options, world)
        self.stores: dict[int, Store] = {}
        for address in range(config.members + options.clients):
            node = make_node(address, config.members, options.clients, options, stream(config.seed, f"node/{address}").random)
            if address < config.members:
                world.add(node, record)
            else:
                retries, timeout_s = Retries(tries=options.tries), options.patience_ms / 1000
                self.stores[address] = add_store(world, node, config.seed, retries=retries, timeout_s=timeout_s)
        self.begun = 0
        self.ended = dict.fromkeys(self.stores, 0)
        self.given_up = 0
        self.failed: list[BaseException] = []
        self._due: dict[int, Iterator[int]] = {}
        self._random = {client: stream(config.seed, f"programs/{client}") for client in self.stores}

    def start(self) -> None:
        for index, client in enumerate(self.stores):
            self._due[client] = due_times(self.config, index, stream(self.config.seed, f"workload/{client}"))
            self.world.at(next(self._due[client]), self._begin, client)

    def _begin(self, client: int) -> None:
        if self.world.hosts[client].gone:
            return
        self.begun += 1
        began, store = self.world.now, self.stores[client]

        def done(_result: Any, error: BaseException | None) -> None:
            self.ended[client] += 1
            self.origin_waits.append(self.world.now - began)
            if isinstance(error, TransactionError):
                self.given_up += 1
            elif error is not None:
                self.failed.append(error)
            if self.ended[client] < self.config.workload.messages:
                self.world.at(max(next(self._due[client]), self.world.now), self._begin, client)

        program = random_program(self._random[client], self.options, self.config.workload.size)
        store.runtime.start(store.run(program), done)

    def done(self) -> bool:
        wanted = self.config.workload.messages
        running = (client for client, ended in self.ended.items() if ended < wanted and not self.world.hosts[client].gone)
        return next(running, None) is None and self.world.idle() and not self._somebody_lacks()

    def _somebody_lacks(self) -> bool:
        """Whether a replica that was cut off for long, so that others wait for it no more, has to be told something."""
        there = [host.node for host in self.world.hosts if isinstance(host.node, QuorumReplica) and not host.gone]
        return any(one.owes(other.address) for one in there for other in there)

    def sent(self) -> int:
        return self.begun

    def total(self) -> int:
        return len(self.stores) * self.config.workload.messages

    def complete(self) -> bool:
        return not self.failed and not self._differing()

    def _differing(self) -> list[str]:
        """The keys whose replicas, of those that are still there, are not equal."""
        held: dict[str, set[object]] = {}
        for host in self.world.hosts[: self.config.members]:
            if not host.gone:
                for key, cell in cells(host.node).items():
                    held.setdefault(key, set()).add((cell.wts, cell.value))
        return sorted(key for key, versions in held.items() if len(versions) > 1)

    def promises(self) -> frozenset[Guarantee]:
        return frozenset({Guarantee.SERIALISABLE})

    def groups(self) -> Mapping[str, tuple[int, ...]]:
        return {"replicas": tuple(range(self.config.members))}

    def settings(self) -> dict[str, object]:
        return {"versions": "timestamp"}

    def details(self) -> dict[str, object]:
        stores, counts = self.stores.values(), omission_counts(self.world)
        return {
            "committed": sum(store.counts.committed for store in stores),
            "aborted": sum(store.counts.aborted for store in stores),
            "retries": sum(store.counts.retries for store in stores),
            "given_up": self.given_up,
            "ratio": round(counts.ratio, 6),
            "queue_depth": round(counts.depth, 6),
            "carried_out_late": counts.late,
            "replicas_differ": self._differing(),
        }


def cells(node: Node) -> Mapping[str, Any]:
    """What a replica holds."""
    if isinstance(node, QuorumReplica):
        return node.state.cells
    assert isinstance(node, Processor)
    return {} if node.replica is None else node.replica.cells


def omission_counts(world: World) -> Counts:
    """What came to all replicas, and what was carried out; nothing is counted where majorities decide."""
    counts = Counts()
    for host in world.hosts:
        if isinstance(host.node, Processor) and host.node.replica is not None:
            counts.add(host.node.replica.counts)
    return counts


TRANSACTIONS = Service(
    "transactions",
    "transactions over replicated keys (Enokido, Tachikawa, Takizawa)",
    TransactionScenario,
    TransactionSimulationOptions,
)
