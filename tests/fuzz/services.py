"""The services whose nodes are fuzzed, small, and what their applications may ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quire.model.messages import pack
from quire.protocols.node import NOTHING, Effects, Node
from quire.protocols.objects.declarations import Catalogue, Placed, declare
from quire.protocols.objects.node import ObjectNode
from quire.protocols.sequencing import Client, Directory, Sequencer, SequencingOptions
from quire.protocols.sequencing.combined_sequencer import CombinedSequencer
from quire.protocols.sequencing.failover import Register, SequencerProcess, SurvivingClient, SurvivingOptions
from quire.protocols.sequencing.failover.configurations import Name
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.requests import Begin, Finish, Get, Put
from quire.protocols.transactions.settings import Settings
from tests.fuzz.nodes import Cast
from tests.fuzz.source import Bytes

GROUPS = ("G", "H")

# The sequencing service: clients 0 and 1, sequencers 2 and 3, a directory at 4 or with the first sequencer.


def _sequencing(options: SequencingOptions, *, combined: bool) -> Mapping[int, Node]:
    directory = 2 if combined else 4
    nodes: dict[int, Node] = {client: Client(client, (2, 3), directory, options) for client in (0, 1)}
    nodes[2] = CombinedSequencer(2, (2, 3), options) if combined else Sequencer(2, (2, 3), 4, options)
    nodes[3] = Sequencer(3, (2, 3), directory, options)
    return nodes if combined else {**nodes, 4: Directory(4, (2, 3), options)}


def _ask_client(node: Node, now: int, source: Bytes) -> Effects:
    if not isinstance(node, Client):
        return NOTHING
    what, group = source.byte() % 8, GROUPS[source.byte() % 2]
    match what:
        case 0:
            return node.create(now, group)
        case 1:
            return node.find(now, group)
        case 2:
            return node.join(now, group)
        case 3:
            return node.leave(now, group)
        case 4:
            return node.move(now, group, 2 + source.byte() % 2)
    count = 1 + source.byte() % 3
    return node.multicast(now, group, pack([b"body"] * count), count)


CREATE, FIND, JOIN, LEAVE, MOVE, SEND = range(6)
_TEA_TIME = (
    (0, bytes([CREATE, 0])), (0, bytes([CREATE, 1])), (1, bytes([FIND, 0])), (1, bytes([FIND, 1])), (0, bytes([JOIN, 0])),
    (1, bytes([JOIN, 0])), (0, bytes([SEND, 0, 1])), (1, bytes([SEND, 0, 2])), (1, bytes([SEND, 1, 0])),
    (0, bytes([JOIN, 1])), (1, bytes([JOIN, 1])), (0, bytes([SEND, 1, 0])), (1, bytes([MOVE, 0, 1])),
    (0, bytes([SEND, 0, 0])), (1, bytes([SEND, 1, 1])), (1, bytes([LEAVE, 0])), (0, bytes([LEAVE, 1])),
    (1, bytes([JOIN, 0])), (0, bytes([SEND, 0, 0])),
)  # fmt: skip


def _sequencing_cast(name: str, target: int, options: SequencingOptions, *, combined: bool = False) -> Cast:
    return Cast(name, lambda: _sequencing(options, combined=combined), target, _ask_client, _TEA_TIME, (*GROUPS, "K"), 2)


def _surviving() -> Mapping[int, Node]:
    """The same with copies: sequencers 2 and 3 are each other's backups, and the register is at 4."""
    clients = {each: SurvivingClient(each, (2, 3), (2, 3), (4,), _BACKED) for each in (0, 1)}
    processes = {each: SequencerProcess(Name(each, 0), (2, 3), (2, 3), 4, _BACKED) for each in (2, 3)}
    return {**clients, **processes, 4: Register(4, (2, 3), (2, 3), _BACKED)}


_BACKED = SurvivingOptions(tick_ms=40, window=8, history=32)
_TOTAL = SequencingOptions(tick_ms=40, window=8, history=32)
_HYBRID = SequencingOptions(tick_ms=40, window=8, history=32, order="hybrid", pipelined=True, bodies="direct")
_BOTH = SequencingOptions(tick_ms=40, window=8, history=32, order="causal-total", pipelined=True)

# Objects: one that lives at member 1, one with replicas at 1 and 2.

_CATALOGUE = Catalogue(
    3,
    {
        "a": Placed(declare(("read", "write", "add"), (("read", "write"), ("write", "write")), undoable=("add",)), (1,)),
        "b": Placed(declare(("read", "write"), leaves=("read",)), (1, 2)),
    },
)


def _objects() -> Mapping[int, Node]:
    return {member: ObjectNode(member, _CATALOGUE) for member in range(3)}


def _ask_object(node: Node, now: int, source: Bytes) -> Effects:
    assert isinstance(node, ObjectNode)
    what, active = source.byte() % 4, [*node.activities]
    if what == 0 or not active:
        node.begin(now, pace=("parallel", "serial", "split")[source.byte() % 3])
        return NOTHING
    instance = active[source.byte() % len(active)]
    if what == 1:
        return node.finish(now, instance, ("ok", "aborted", "died")[source.byte() % 3])
    targets = (("a",), ("b",), ("a", "b"))[source.byte() % 3]
    return node.invoke(now, instance, source.byte(), targets, ("read", "write")[source.byte() % 2], b"payload")


_CALLS = (
    (0, bytes([0, 0])), (0, bytes([2, 0, 0, 1, 1])), (0, bytes([2, 0, 2, 2, 1])), (2, bytes([0, 1])),
    (2, bytes([2, 0, 2, 1, 1])),
    (1, bytes([0, 0])), (1, bytes([2, 0, 1, 7, 0])), (1, bytes([1, 1, 0])), (1, bytes([1, 1, 0])), (1, bytes([1, 1, 1])),
    (2, bytes([1, 1, 0])), (0, bytes([1, 0, 0])), (2, bytes([1, 0, 0])), (1, bytes([1, 0, 0])), (1, bytes([1, 0, 0])),
)  # fmt: skip

# Stores: replicas 0 to 2, clients 3 and 4 (or, where all must agree, 2 and 3: one is both).


def _draw() -> float:
    return 0.5


def _quorum() -> Mapping[int, Node]:
    placement = Placement(3, 2)
    replicas: dict[int, Node] = {each: QuorumReplica(each, placement, Settings(), _draw) for each in range(3)}
    return {**replicas, **{each: QuorumClient(each, placement, Settings(), _draw) for each in (3, 4)}}


def _recovering() -> Mapping[int, Node]:
    return {**_quorum(), 1: QuorumReplica(1, Placement(3, 2), Settings(), _draw, lost=1)}


def _processors(order: Any) -> Mapping[int, Node]:
    return {each: Processor(each, Placement(3, 2), (2, 3), Settings(order=order), _draw) for each in range(4)}


def _ask_store(node: Node, now: int, source: Bytes) -> Effects:
    if isinstance(node, QuorumClient):
        active = [*node._active]
    elif isinstance(node, Processor) and node.client is not None:
        active = [*node.client._active]
    else:
        return NOTHING
    what, call = source.byte() % 5, source.byte()
    if what == 0 or not active:
        return node.submit(now, call, Begin(source.byte() % 2 * 1_000_000))
    t, key = active[source.byte() % len(active)], ("x", "y", "z")[source.byte() % 3]
    return node.submit(now, call, (Get(t, key), Put(t, key, b"value"), Finish(t, True), Finish(t, False))[what - 1])


def _transactions(one: int, other: int) -> tuple[tuple[int, bytes], ...]:
    steps = (
        (0, 0, 0),
        (2, 1, 0, 0),
        (2, 2, 0, 1),
        (1, 3, 0, 2),
        (3, 4, 0, 0),
        (0, 5, 0),
        (1, 6, 0, 0),
        (2, 7, 0, 0),
        (4, 8, 0, 0),
    )
    return tuple((who, bytes(step)) for step in steps for who in (one, other))


_KEYS = ("x", "y", "z")

CASTS: tuple[Cast, ...] = (
    _sequencing_cast("a client", 0, _TOTAL),
    _sequencing_cast("a client with direct bodies", 1, _HYBRID),
    _sequencing_cast("a sequencer", 2, _BOTH),
    _sequencing_cast("the other sequencer, that only numbers", 3, _HYBRID),
    _sequencing_cast("a sequencer that gets groups", 3, _TOTAL),
    _sequencing_cast("the directory", 4, _TOTAL),
    _sequencing_cast("a combined sequencer", 2, _BOTH, combined=True),
    Cast("a client of sequencers that survive", _surviving, 0, _ask_client, _TEA_TIME, (*GROUPS, "K"), 2),
    Cast("a process of sequencers that survive", _surviving, 2, _ask_client, _TEA_TIME, (*GROUPS, "K"), 2),
    Cast("the register", _surviving, 4, _ask_client, _TEA_TIME, (*GROUPS, "K"), 2),
    Cast("an object's member", _objects, 1, _ask_object, _CALLS, ("a", "b", "read", "write", "add"), 3),
    Cast("a replica of a majority", _quorum, 0, _ask_store, _transactions(3, 4), _KEYS, 3),
    Cast("a replica that lost its disk", _recovering, 1, _ask_store, _transactions(3, 4), _KEYS, 3),
    Cast("a client of majorities", _quorum, 3, _ask_store, _transactions(3, 4), _KEYS, 3),
    Cast("a processor", lambda: _processors("receipt"), 1, _ask_store, _transactions(2, 3), _KEYS, 3),
    Cast("a processor that is a client too", lambda: _processors("stable"), 2, _ask_store, _transactions(2, 3), _KEYS, 3),
)
