"""Every transaction gets through: whoever was refused is not overtaken again, however many others want the same keys."""

from __future__ import annotations

from random import Random

import pytest

from quire.protocols.transactions.claims import Claims
from quire.transactions.store import Transaction
from tests.kit.effort import LONG, cases
from tests.transactions.contention import Program, Share, compete, draw_transfer

MODES = ["majority", "all"]
SEEDS = range(3 if LONG else 1)
TRIES_MOST = 8
"""Half of what makes a transaction fail."""


def fairness(shares: list[Share]) -> float:
    """The commits of the least busy client by those of the busiest."""
    commits = [share.committed for share in shares]
    return min(commits) / max(commits)


@pytest.mark.parametrize("replication", MODES)
@pytest.mark.parametrize(("clients", "keys"), cases([(3, 2), (24, 4)], [(3, 10), (8, 10)]))
def test_every_client_gets_its_share_in_few_tries(replication: str, clients: int, keys: int) -> None:
    for seed in SEEDS:
        shares = compete(replication, [draw_transfer(keys)] * clients, 1.0, seed)
        assert [share.failed for share in shares] == [[]] * clients, seed
        assert fairness(shares) >= 0.5, seed
        assert max(share.tries_most for share in shares) <= TRIES_MOST, seed


@pytest.mark.parametrize("replication", MODES)
def test_one_that_wants_everything_gets_through_among_many_that_want_little(replication: str) -> None:
    def draw_sum(_: Random) -> Program:
        async def add_all(t: Transaction) -> None:
            await t.write("sum", sum([await t.read(f"k{number}") or 0 for number in range(10)]))

        return add_all

    def draw_blind_write(random: Random) -> Program:
        key = f"k{random.randrange(10)}"

        async def write(t: Transaction) -> None:
            await t.write(key, 1)

        return write

    for seed in SEEDS:
        shares = compete(replication, [draw_sum, *[draw_transfer(10)] * 3, *[draw_blind_write] * 2], 1.0, seed)
        assert all(not share.failed for share in shares)
        assert shares[0].committed >= 5
        assert shares[0].tries_most <= TRIES_MOST


@pytest.mark.parametrize("replication", MODES)
def test_nobody_fails_where_packets_are_lost(replication: str) -> None:
    shares = compete(replication, [draw_transfer(10)] * 4, 10.0, 1, loss=0.02)
    assert all(not share.failed for share in shares)
    assert fairness(shares) >= 0.5


def test_a_seed_replays_the_same_competition() -> None:
    first, second = (compete("majority", [draw_transfer(4)] * 5, 0.5, 7) for _ in range(2))
    assert first == second
    assert first != compete("majority", [draw_transfer(4)] * 5, 0.5, 8)


@pytest.mark.parametrize("replication", MODES)
def test_without_claims_clients_starve(replication: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Claims, "hold_up", lambda *_, **__: False)
    shares = compete(replication, [draw_transfer(4)] * 8, 1.0, 1)
    assert any(share.failed for share in shares)
    assert fairness(shares) < 0.5
