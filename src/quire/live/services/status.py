"""The status of processes of services, for observers: what is special to each kind is in its tiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quire.live.metrics import Sample, exposition
from quire.live.observing.status import Condition, HeldBack, Kind, LinkStatus, Queue, Status, Tile, first_held, shown
from quire.live.services.nodes import Host
from quire.live.services.session import Session
from quire.protocols.node import Node
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.queue import ObjectQueue
from quire.protocols.sequencing import Sequencer
from quire.protocols.sequencing.combined_sequencer import CombinedSequencer
from quire.protocols.sequencing.failover import SequencerProcess
from quire.protocols.transactions.coordinator import Coordinator
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.replica import Replica
from quire.transactions.store import Store

_GROUPS_SHOWN = 8


def _status(
    host: Host,
    kind: Kind,
    tiles: Sequence[Tile],
    waiting: Sequence[HeldBack] = (),
    queues: dict[str, Queue] | None = None,
    sent: int = 0,
    delivered: dict[str, int] | None = None,
) -> Status:
    settings = host.settings
    condition: Condition = "failed" if host.failure is not None else "ended" if host.ended else "running"
    return Status(
        kind=kind,
        group=settings.group,
        me=str(settings.me),
        protocol=settings.protocol,
        condition=condition,
        why="" if host.failure is None else str(host.failure),
        members=tuple(map(str, range(len(settings.members)))),
        sent=sent,
        delivered=delivered or {},
        queues=queues or {},
        links=host.links(),
        waiting=first_held(waiting),
        waiting_in_all=len(waiting),
        tiles=(*tiles, Tile("packets dropped", host.dropped, "because their link was full, or they were on it already")),
    )


class ObservedNode:
    """A process with nothing beyond the common status."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def status(self) -> Status:
        return _status(self._host, "service", ())

    def metrics(self) -> str:
        return service_metrics(self.status())


class ObservedSequencer:
    def __init__(self, host: Host, node: Sequencer | CombinedSequencer) -> None:
        self._host, self._node = host, node

    def status(self) -> Status:
        node = self._node
        sequencer = node if isinstance(node, Sequencer) else node.sequencer
        tiles = _tiles([sequencer])
        if isinstance(node, CombinedSequencer):
            tiles.append(Tile("groups moved", node.directory.moved, "by the directory, so far"))
        return _status(self._host, "sequencer", tiles, _held_up(node), delivered={"all": sequencer.numbered})

    def metrics(self) -> str:
        return service_metrics(self.status())


class ObservedProcess:
    """A sequencer process of a service with failover: the units that are live here, and those of which it has copies."""

    def __init__(self, host: Host, node: SequencerProcess) -> None:
        self._host, self._node = host, node

    def status(self) -> Status:
        node = self._node
        primary = [each for each in node.replicas.values() if each.live and each.sequencer is not None]
        working = [each.sequencer for each in primary if each.sequencer is not None]
        backups = sum(each.sequencer is not None and not each.primary for each in node.replicas.values())
        tiles = [
            *_tiles(working),
            Tile("units run here", len(primary), ", ".join(f"{each.unit}: epoch {each.epoch}" for each in primary)),
            Tile("units backed up here", backups),
        ]
        return _status(
            self._host, "sequencer", tiles, _held_up(node), delivered={"all": sum(each.numbered for each in working)}
        )

    def metrics(self) -> str:
        return service_metrics(self.status())


def _tiles(sequencers: Sequence[Sequencer]) -> list[Tile]:
    groups = [state for each in sequencers for state in each.groups.values()]
    busiest = sorted(groups, key=lambda state: -state.numbered)[:_GROUPS_SHOWN]
    return [
        Tile("messages numbered", sum(each.numbered for each in sequencers)),
        Tile("groups here", len(groups), ", ".join(f"{state.group}: {state.numbered:,}" for state in busiest)),
        Tile(
            "messages that wait",
            sum(each.queue() for each in sequencers),
            "for a number, or for members to have delivered them",
        ),
        Tile("groups given", sum(len(each.moves.giving) for each in sequencers), "at the moment, to other sequencers"),
        Tile("groups taken", sum(len(each.moves.taking) for each in sequencers), "at the moment, from other sequencers"),
        Tile("clients evicted", max((len(each.evicted) for each in sequencers), default=0)),
    ]


def _held_up(node: Sequencer | CombinedSequencer | SequencerProcess) -> list[HeldBack]:
    return [
        HeldBack(origin=str(client), first=reached, count=0, waits_for=(str(client),), because=_laggard(client, group, reached))
        for client, (group, reached) in node.holding_up().items()
    ]


def _laggard(client: int, group: str, reached: int) -> str:
    return f"the history of group {group} is full of what client {client} has not delivered: it has reached {reached}"


class ObservedClient:
    def __init__(self, host: Host, session: Session) -> None:
        self._host, self._session = host, session

    def status(self) -> Status:
        session, client = self._session, self._session.client
        views = client.views
        tiles = [
            Tile("groups joined", len(views), ", ".join(sorted(views)[:_GROUPS_SHOWN])),
            Tile("runs without a number", sum(1 for _ in client.outbox.sent()), "no sequencer has numbered their messages yet"),
        ]
        waiting, delivered = [*map(shown, session.waiting())], {"all": session.delivered}
        return _status(self._host, "client", tiles, waiting, session.queues(), client.next_number, delivered)

    def metrics(self) -> str:
        return service_metrics(self.status())


def store_status(host: Host, node: Node, store: Store | None) -> Status:
    if store is not None:
        coordinator = node.client if isinstance(node, Processor) else node
        assert isinstance(coordinator, Coordinator)
        reasons = ", ".join(f"{_words(name)}: {count:,}" for name, count in sorted(store.reasons.items()))
        tiles = [
            Tile("transactions open", coordinator.open_transactions()),
            Tile("committed", store.counts.committed),
            Tile("aborted", store.counts.aborted, reasons),
            Tile("tried again", store.counts.retries),
        ]
        return _status(host, "store", tiles, delivered={"all": store.counts.committed})
    replica = node.replica if isinstance(node, Processor) else node
    assert isinstance(replica, Replica | QuorumReplica)
    cells = replica.cells if isinstance(replica, Replica) else replica.state.cells
    queued = replica.waiting_keys()
    why = "reads and writes of it wait for an older transaction to end"
    waiting = [HeldBack(origin=key, first=0, count=count, waits_for=(), because=why) for key, count in queued.items()]
    return _status(host, "store", [Tile("keys", len(cells)), Tile("requests that wait", sum(queued.values()))], waiting)


def objects_status(host: Host, node: ObjectNode, delivered: int, retries: int) -> Status:
    waiting = [held for queue in node.queues.values() for held in _conflicts(queue)]
    tiles = [
        Tile("objects here", len(node.queues), ", ".join(sorted(node.queues)[:_GROUPS_SHOWN])),
        Tile("calls that run", sum(len(queue.active) for queue in node.queues.values())),
        Tile("calls that wait", sum(len(queue.copies) for queue in node.queues.values())),
        Tile("calls in conflict", len(waiting), "they wait for one that they conflict with"),
        Tile("roots open", node.roots),
        Tile("roots tried again", retries, "because they had to give way"),
    ]
    return _status(host, "objects", tiles, waiting, delivered={"all": delivered})


def _conflicts(queue: ObjectQueue) -> Iterator[HeldBack]:
    """The calls at an object that wait for one that they conflict with, running or older."""
    for copy in queue.copies:
        running = next(queue.in_the_way(copy), None)
        before = next(queue.before(copy), None)
        if running is not None:
            member, what = running.instance.origin, f"{running.op} that runs there, called by member {running.instance.origin}"
        elif before is not None:
            member, what = before.stamp.member, f"{before.op} that waits there and is older, of member {before.stamp.member}"
        else:
            continue
        origin, number = copy.request.id
        why = f"{copy.op} at {copy.object} conflicts with {what}"
        yield HeldBack(origin=str(origin), first=number, count=1, waits_for=(str(member),), because=why)


def _words(name: str) -> str:
    """The name of an error as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def service_metrics(status: Status) -> str:
    return exposition(_samples(status))


def _samples(status: Status) -> Iterator[Sample]:
    base = {"group": status.group, "process": status.me}
    for tile in status.tiles:
        if not isinstance(tile.value, str):
            name = f"quire_{status.kind}_{tile.name.replace(' ', '_')}"
            yield Sample(name, f"{tile.name.capitalize()}.", "gauge", tile.value, base)
    if status.kind in ("client", "objects"):
        yield Sample(
            "quire_messages_delivered_total", "What was delivered here.", "counter", sum(status.delivered.values()), base
        )
    yield Sample("quire_waiting", "What is held back here.", "gauge", status.waiting_in_all, base)
    for name, help_, value in (
        ("quire_link_up", "Whether the peer is connected.", lambda link: float(link.connected)),
        ("quire_link_bytes_unacknowledged", "Bytes sent and not yet acknowledged.", _unacknowledged),
        ("quire_link_silent_seconds", "Seconds since anything was received from the peer.", lambda link: link.silent_s),
    ):
        for link in status.links:
            yield Sample(name, help_, "gauge", value(link), {**base, "peer": link.peer})


def _unacknowledged(link: LinkStatus) -> float:
    return float(link.unacknowledged_bytes)
