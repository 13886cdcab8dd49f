"""Random transactions, for simulated and live runs: clients transfer between keys, read and write them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Annotated, Literal

import msgspec

from quire.model.errors import BadInput
from quire.protocols.node import Node
from quire.protocols.transactions.coordinator import Draw
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.settings import MILLISECOND, Settings
from quire.transactions.store import Transaction

Few = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Members are the replicas; their clients are processes of their own."""

    replication: Literal["all", "majority"] = "all"
    clients: Few = 3
    copies: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """How many replicas hold each key; 0: all."""
    keys: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10
    operations: Few = 4
    """Reads and writes of a transaction."""
    writes: Annotated[int, msgspec.Meta(ge=0, le=100)] = 50
    """Of a hundred operations, those that write."""
    tries: Few = 16
    """How often a transaction is tried."""
    order: Literal["receipt", "stable"] = "receipt"
    """With `all`: whether requests wait until they are stable, so that insignificant ones can be omitted."""
    beat_ms: Annotated[int, msgspec.Meta(ge=1, le=60_000)] = 20
    repeat_ms: Annotated[int, msgspec.Meta(ge=1, le=60_000)] = 100
    lease_ms: Annotated[int, msgspec.Meta(ge=1, le=600_000)] = 1000
    patience_ms: Annotated[int, msgspec.Meta(ge=1, le=600_000)] = 10_000


def placement(members: int, options: Options) -> Placement:
    """Raises BadInput where the options make no sense together."""
    if options.order == "stable" and options.replication == "majority":
        raise BadInput("transactions can wait for stable requests only where all replicas must agree; choose replication=all")
    return Placement(members, options.copies or None)


def settings(options: Options) -> Settings:
    return Settings(
        order=options.order,
        beat_ns=options.beat_ms * MILLISECOND,
        repeat_ns=options.repeat_ms * MILLISECOND,
        lease_ns=options.lease_ms * MILLISECOND,
        patience_ns=options.patience_ms * MILLISECOND,
        gossip_ns=2 * options.repeat_ms * MILLISECOND,
    )


def make_node(address: int, members: int, options: Options, draw: Draw) -> Node:
    """The node of one process: replicas come first, then clients."""
    places, how = placement(members, options), settings(options)
    if options.replication == "all":
        return Processor(address, places, range(members, members + options.clients), how, draw)
    kind = QuorumReplica if address < members else QuorumClient
    return kind(address, places, how, draw)


def random_program(random: Random, options: Options, size: int) -> Callable[[Transaction], Awaitable[None]]:
    """What one transaction does, drawn now, and the same whenever it is tried again."""
    steps = [(random.random() * 100 < options.writes, f"k{random.randrange(options.keys)}") for _ in range(options.operations)]
    value = random.randbytes(size)

    async def program(t: Transaction) -> None:
        for writes, key in steps:
            if writes:
                await t.write(key, value)
            else:
                await t.read(key)

    return program
