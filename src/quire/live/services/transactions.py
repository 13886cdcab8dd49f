"""Live stores: the application's API, and the role of a process in `quire run --protocol transactions`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random, SystemRandom
from types import TracebackType
from typing import Any, Unpack

import msgspec

from quire.live import clock
from quire.live.errors import GroupClosed
from quire.live.events import Event, Listener
from quire.live.identity import identify, run_name
from quire.live.network_options import Network, NetworkOptions, takes_network_options
from quire.live.observing.observer import Observer, observer_of
from quire.live.observing.status import Status
from quire.live.recording import Recording
from quire.live.services.coroutines import LoopRuntime
from quire.live.services.disk import NodeDisk
from quire.live.services.nodes import Host
from quire.live.services.recorded import record_node
from quire.live.services.service import Role, Service
from quire.live.services.status import service_metrics, store_status
from quire.live.settings import Settings, read_settings
from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.protocols.node import Notice
from quire.protocols.registry import convert_options
from quire.protocols.transactions.cells import Cell
from quire.protocols.transactions.errors import ReplicaOutdated, TransactionError
from quire.protocols.transactions.notices import BeginAnew, GaveUp
from quire.protocols.transactions.omission import Counts
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.timestamps import UNWRITTEN
from quire.trace.parts.description import RunIdentity
from quire.transactions.codecs import BYTES, Codec
from quire.transactions.journal import checkpoint, entry, read_state
from quire.transactions.nodes import StoreOptions, make_node, placement
from quire.transactions.record import record
from quire.transactions.store import Retries, Store
from quire.transactions.workload import TransactionWorkloadOptions, random_program

NAME = "transactions"


class _Shown(StoreOptions, frozen=True, kw_only=True):
    """What processes compare before they start."""

    replicas: int


class StoreMember:
    """One process of a live store: a replica, or a client, which has a `store`. Use it in `async with`, which waits until all
    are there, and at a replica goes on until no client has anything more to do."""

    def __init__(
        self,
        settings: Settings,
        replicas: int,
        options: StoreOptions,
        *,
        codec: Codec = BYTES,
        retries: Retries | None = None,
        timeout_s: float | None = None,
        journal: Path | None = None,
        recording: Recording | None = None,
        on_event: Listener | None = None,
        observer: Observer | None = None,
    ) -> None:
        processes, survives = len(settings.members), options.replication == "majority"
        if survives:
            durable = None if settings.me >= replicas else journal is not None
            settings = msgspec.structs.replace(settings, restartable=replicas, durable=durable)
        self.settings = settings
        self.delivered = 0
        self._clients = range(replicas, processes)
        self._runtime = LoopRuntime()
        self._journal = journal
        self._make = partial(make_node, settings.me, replicas, processes - replicas, options, SystemRandom().random)
        node = self._make(lost=clock.wall_ns())
        self._store: Store | None = None
        if settings.me in self._clients:
            assert isinstance(node, Processor | QuorumClient)
            self._store = Store(node, self._runtime, codec=codec, retries=retries, timeout_s=timeout_s or settings.timeout_s)
        self._host = Host(
            settings, node, self._on_notice, recording=recording, survives=survives, on_event=on_event, observer=observer
        )
        self._host.observed = self
        self._runtime.host = self._host
        self._watch: asyncio.Task[None] | None = None

    @property
    def store(self) -> Store:
        """The store of a client."""
        if self._store is None:
            raise BadInput(
                f"process {self.settings.me} is a replica; only clients, which come after the replicas, run transactions"
            )
        return self._store

    @property
    def lost(self) -> frozenset[int]:
        """The processes that are currently silent."""
        return self._host.lost

    def status(self) -> Status:
        """The status of this process, as `observe` shows it."""
        return store_status(self._host, self._host.node, self._store)

    def metrics(self) -> str:
        """This process's counters in the text format of Prometheus."""
        return service_metrics(self.status())

    async def __aenter__(self) -> StoreMember:
        if self._journal is not None:
            self._open(self._journal)
        await self._host.__aenter__()
        node = self._host.node
        if self._journal is None and isinstance(node, QuorumReplica) and not self._host.returns:
            node.begin(self._host.now())
        self._watch = asyncio.create_task(self._give_up_at_the_end())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._store is None:
                await self.until_not_needed()
            await self._host.__aexit__(kind, error, trace)
        finally:
            if self._watch is not None:
                self._watch.cancel()
            await self._runtime.stop()

    async def until_not_needed(self) -> None:
        """Return when no client has anything more to do, as far as this replica knows."""
        await self._host.until_closing(self._clients)

    def _open(self, journal: Path) -> None:
        """Continue where the last process of this replica ended, if there was one."""
        blank = self._host.node
        assert isinstance(blank, QuorumReplica)
        disk = NodeDisk(journal, lambda found: read_state(found, blank.holds), entry)
        node = self._make(lost=clock.wall_ns(), state=disk.found, now=self._host.now(), kept=True)
        assert isinstance(node, QuorumReplica)
        disk.checkpoint = lambda: checkpoint(node.state)
        self._host.goes_on(node, disk, restarted=disk.found is not None)

    async def _give_up_at_the_end(self) -> None:
        await self._host.until_ended()
        if self._store is not None:
            self._store.give_up(self._host.failure or GroupClosed("the store is closed"))

    def _on_notice(self, host: Host, notice: Notice) -> None:
        record(host, notice)
        if isinstance(notice, GaveUp):
            host.report(Event("evicted", (notice.replica,), why="it was away for too long, and what it missed is not kept"))
        if isinstance(notice, BeginAnew):
            host.fail(ReplicaOutdated())
        if self._store is not None:
            self._store.on_notice(notice)


@takes_network_options
def join_store(
    group: str,
    *,
    me: int,
    members: Sequence[str],
    replicas: int,
    options: Mapping[str, object] | None = None,
    codec: Codec = BYTES,
    retries: Retries | None = None,
    journal: str | Path | None = None,
    **network: Unpack[NetworkOptions],
) -> StoreMember:
    """A process of a live store, to be used in `async with`. The first `replicas` of the members keep the keys, the others are
    their clients; the other arguments are as in `join`. `timeout_s` is also the default time limit of each call of the store.
    `journal` is the directory in which a replica keeps on disk what it must not forget; clients need none. Raises BadInput if
    the arguments are invalid and, on entering, if another process has other settings or uses the journal, and JournalCorrupt
    if the journal is damaged."""
    if not 1 <= replicas < len(members):
        raise BadInput(
            f"a store of {len(members)} processes needs 1 to {len(members) - 1} replicas and a client, not {replicas}"
        )
    plain = convert_options(NAME, StoreOptions, options or {})
    placement(replicas, plain)
    if journal is not None and plain.replication == "all":
        raise BadInput(
            "a journal is of no use with replication=all, where a crash of any process can block others for good; "
            "choose replication=majority"
        )
    given, shown = Network(**network), _Shown(**msgspec.structs.asdict(plain), replicas=replicas)
    settings = read_settings(group, me, members, protocol=NAME, options=shown, network=given)
    observer = observer_of(given)
    # A process that comes back goes on with what it had sent to others, so all of that must be in its trace.
    survives = plain.replication == "majority"
    recording = record_node(identify_store(settings, replicas), me, given.trace, observer, at_once=survives)
    return StoreMember(
        settings,
        replicas,
        plain,
        codec=codec,
        retries=retries,
        journal=None if journal is None or me >= replicas else Path(journal),
        recording=recording,
        on_event=given.on_event,
        observer=observer,
    )


def identify_store(settings: Settings, replicas: int, load: Mapping[str, object] | None = None) -> RunIdentity:
    groups = {"replicas": tuple(range(replicas))}
    assert isinstance(settings.options, StoreOptions)
    survives, promises = settings.options.replication == "majority", frozenset({Guarantee.SERIALISABLE})
    return identify(settings, promises, groups, about={"versions": "timestamp"}, load=load, restarts=survives)


def identify_run(settings: Settings, load: Mapping[str, object] | None) -> RunIdentity:
    assert isinstance(settings.options, TransactionWorkloadOptions)
    return identify_store(settings, len(settings.members) - settings.options.clients, load)


class TransactionRole(Role):
    """A replica serves until the clients are done; a client runs its transactions one after the other."""

    async def take_part(self) -> None:
        load, settings, options = self.load, self.settings, self.settings.options
        assert isinstance(options, TransactionWorkloadOptions)
        replicas = len(settings.members) - options.clients
        retries, timeout_s = Retries(tries=options.tries), options.patience_ms / 1000
        self.member = StoreMember(
            settings, replicas, options, retries=retries, timeout_s=timeout_s, recording=self.recording, observer=self.observer
        )
        self.given_up = 0
        async with self.member:
            if settings.me >= replicas:
                await self._work(options, Random(f"{run_name(settings, load.described())}/{settings.me}"))  # noqa: S311

    async def _work(self, options: TransactionWorkloadOptions, random: Random) -> None:
        began = clock.now()
        for number in range(self.load.messages or 0):
            if self.stopping:
                return
            if self.load.rate is not None:
                await asyncio.sleep(max(0.0, began + number / self.load.rate - clock.now()))
            try:
                await self.member.store.run(random_program(random, options, self.load.size or 0))
            except TransactionError:
                self.given_up += 1
            self.sent += 1

    def details(self) -> dict[str, object]:
        node = self.member._host.node
        if isinstance(node, QuorumReplica):
            return {"keys": self._digests(node.state.cells), "requests": msgspec.to_builtins(Counts())}
        if isinstance(node, Processor) and node.replica is not None:
            return {"keys": self._digests(node.replica.cells), "requests": msgspec.to_builtins(node.replica.counts)}
        return {**msgspec.to_builtins(self.member.store.counts), "given_up": self.given_up}

    def _digests(self, cells: Mapping[str, Cell]) -> dict[str, str]:
        """For each set of replicas, one digest of all keys that they hold."""
        assert isinstance(self.settings.options, TransactionWorkloadOptions)
        replica_sets = placement(len(self.settings.members) - self.settings.options.clients, self.settings.options)
        held: dict[str, list[object]] = {}
        for key, cell in sorted(cells.items()):
            if cell.wts != UNWRITTEN:
                digest = sha256(cell.value or b"").hexdigest()
                held.setdefault(str(replica_sets.of(key)), []).append([key, cell.wts, digest])
        return {group: sha256(msgspec.json.encode(keys)).hexdigest()[:16] for group, keys in held.items()}


def summarise(reports: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Counts of all clients together, what replicas omitted, and whether they are equal at the end."""
    replicas = [report for report in reports if "keys" in report]
    clients = [report for report in reports if "keys" not in report]
    counts, digests = Counts(), dict[str, set[str]]()
    for report in replicas:
        counts.add(msgspec.convert(report["requests"], Counts))
        for group, digest in report["keys"].items():
            digests.setdefault(group, set()).add(digest)
    equal = all(len(found) == 1 for found in digests.values())
    return {
        **{name: sum(report[name] for report in clients) for name in ("committed", "aborted", "retries", "given_up")},
        "ratio": round(counts.ratio, 6),
        "queue_depth": round(counts.depth, 6),
        "replicas_equal": equal,
        "complete": equal,
    }


TRANSACTIONS = Service(
    NAME,
    "transactions over replicated keys (Enokido, Tachikawa, Takizawa)",
    TransactionWorkloadOptions,
    TransactionRole,
    identify_run,
    processes=lambda members, options: members + options.clients,
    messages=200,
    summarise=summarise,
)
