"""Clients that want the same few keys all the time, in virtual time: who gets through, and after how many tries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

import msgspec

from quire.protocols.node import Node
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.settings import Settings
from quire.simulation.delays import parse_delays
from quire.simulation.network import Network
from quire.simulation.transactions import add_store
from quire.simulation.world import World
from quire.transactions.codecs import JSON
from quire.transactions.store import Retries, Store, Transaction

REPLICAS = 3
SECOND = 1_000_000_000

Program = Callable[[Transaction], Awaitable[None]]
Draw = Callable[[Random], Program]
"""What a client does next."""


class Share(msgspec.Struct):
    """How it went for one client."""

    committed: int = 0
    tries_most: int = 0
    failed: list[str] = []


def draw_transfer(keys: int) -> Draw:
    """Read two of so many accounts, and write both."""

    def draw(random: Random) -> Program:
        one, other = (f"k{number}" for number in random.sample(range(keys), 2))

        async def transfer(t: Transaction) -> None:
            here, there = await t.read(one) or 0, await t.read(other) or 0
            await t.write(one, here - 1)
            await t.write(other, there + 1)

        return transfer

    return draw


def compete(
    replication: str, draws: Sequence[Draw], seconds: float, seed: int, *, tries: int = 16, loss: float = 0.0
) -> list[Share]:
    """Have each client run its programs one after the other for so long; returns how it went for each."""
    nodes, clients = REPLICAS + len(draws), range(REPLICAS, REPLICAS + len(draws))
    world = World(Network(nodes, parse_delays("uniform:0.3:0.7", nodes), Random(f"{seed}/network"), loss=loss))
    placement, until = Placement(REPLICAS), int(seconds * SECOND)

    def node(address: int) -> Node:
        draw = Random(f"{seed}/{address}").random
        if replication == "all":
            return Processor(address, placement, clients, Settings(), draw)
        return (QuorumReplica if address < REPLICAS else QuorumClient)(address, placement, Settings(), draw)

    for replica in range(REPLICAS):
        world.add(node(replica), lambda _place, _notice: None)
    stores = [add_store(world, node(client), seed, codec=JSON, retries=Retries(tries=tries)) for client in clients]
    shares, ended = [Share() for _ in stores], list[int]()

    async def work(store: Store, draw: Draw, share: Share, random: Random) -> None:
        while world.now < until:
            program = draw(random)

            async def counted(t: Transaction, program: Program = program) -> None:
                share.tries_most = max(share.tries_most, t.tries)
                await program(t)

            try:
                await store.run(counted)
                share.committed += 1
            except Exception as error:  # noqa: BLE001
                share.failed.append(repr(error))

    def start(number: int) -> None:
        def done(_: Any, error: BaseException | None) -> None:
            assert error is None
            ended.append(number)

        store = stores[number]
        store.runtime.start(work(store, draws[number], shares[number], Random(f"{seed}/work/{number}")), done)

    for number in range(len(stores)):
        world.at(0, start, number)
    assert world.run(until + 60 * SECOND, lambda: len(ended) == len(stores))
    return shares
