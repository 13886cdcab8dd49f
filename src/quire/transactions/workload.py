"""Random transactions, for simulated and live runs: how many clients, how much they read and write, on how many keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Annotated

import msgspec

from quire.transactions.nodes import StoreOptions
from quire.transactions.store import Transaction

Few = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class TransactionWorkloadOptions(StoreOptions, frozen=True, kw_only=True):
    """Members are the replicas; their clients are separate processes."""

    clients: Few = 3
    keys: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10
    operations: Few = 4
    """Reads and writes of a transaction."""
    writes: Annotated[int, msgspec.Meta(ge=0, le=100)] = 50
    """Of a hundred operations, those that write."""
    tries: Few = 16
    """How often a transaction is tried."""


def random_program(random: Random, options: TransactionWorkloadOptions, size: int) -> Callable[[Transaction], Awaitable[None]]:
    """What one transaction does: drawn now, and the same whenever it is retried."""
    steps = [(random.random() * 100 < options.writes, f"k{random.randrange(options.keys)}") for _ in range(options.operations)]
    value = random.randbytes(size)

    async def program(t: Transaction) -> None:
        for writes, key in steps:
            if writes:
                await t.write(key, value)
            else:
                await t.read(key)

    return program
