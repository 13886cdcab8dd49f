"""Creates the nodes of a store from its options: replicas first, then their clients, each a process of its own."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from quire.model.errors import BadInput
from quire.protocols.node import Node
from quire.protocols.transactions.coordinator import Draw
from quire.protocols.transactions.durable import Durable
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.settings import MILLISECOND, Settings

Milliseconds = Annotated[int, msgspec.Meta(ge=1, le=600_000)]


class StoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a store; the same for all its processes."""

    replication: Literal["all", "majority"] = "majority"
    copies: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """How many replicas hold each key; 0: all."""
    order: Literal["receipt", "stable"] = "receipt"
    """With `all`: whether requests wait until they are stable, so that insignificant ones can be omitted."""
    beat_ms: Milliseconds = 20
    repeat_ms: Milliseconds = 100
    lease_ms: Milliseconds = 1000
    patience_ms: Milliseconds = 10_000


def placement(replicas: int, options: StoreOptions) -> Placement:
    """The placement of keys at replicas. Raises BadInput if the options contradict each other."""
    if options.order == "stable" and options.replication == "majority":
        raise BadInput("transactions can wait for stable requests only where all replicas must agree; choose replication=all")
    return Placement(replicas, options.copies or None)


def make_node(
    address: int,
    replicas: int,
    clients: int,
    options: StoreOptions,
    draw: Draw,
    *,
    state: Durable | None = None,
    lost: int | None = None,
    now: int = 0,
    kept: bool = False,
) -> Node:
    """The node of one process. `state`, `lost`, `now` and `kept` are for a replica that may be restarted (`majority`)."""
    replica_sets = placement(replicas, options)
    settings = Settings(
        order=options.order,
        beat_ns=options.beat_ms * MILLISECOND,
        repeat_ns=options.repeat_ms * MILLISECOND,
        lease_ns=options.lease_ms * MILLISECOND,
        patience_ns=options.patience_ms * MILLISECOND,
        gossip_ns=2 * options.repeat_ms * MILLISECOND,
    )
    if options.replication == "all":
        return Processor(address, replica_sets, range(replicas, replicas + clients), settings, draw)
    if address < replicas:
        return QuorumReplica(address, replica_sets, settings, draw, state, lost, now, kept=kept)
    return QuorumClient(address, replica_sets, settings, draw)
