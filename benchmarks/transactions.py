"""Whether every client gets its turn: live stores whose clients transfer between few keys, each one transfer at a time.

Three replicas and three clients, each a process of its own. A transfer reads two accounts and writes both. The fewer accounts,
the more transfers meet, and all but one of those that meet must be tried again.

Beside them, in the same round, clients that have accounts of their own, so that no transfers meet (`own`): what the machine
gives. Shown is the median of the rounds, or the worst of them where something must not happen.

commits/s  of all clients together
to own     the same by the commits with own accounts
fairness   commits of the least busy client by those of the busiest: 1 is best, 0 is starvation
tries      of a transfer until it committed: mean, and the worst
longest    how long a transfer took, the worst
limit      transfers that were given up after too many tries (RetryLimit), in all rounds

    python -m benchmarks.transactions [--rounds 3] [--seconds 5] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from random import Random
from statistics import median
from typing import Any

import quire
from benchmarks.tables import Row, show
from quire.live.runs.fleet import free_addresses

REPLICAS, CLIENTS = 3, 3
KEYS = (2, 10, 100)
MODES = ("majority", "all")
JOIN_S = 60


async def transfer_until(store: quire.Store, accounts: list[str], until: float) -> dict[str, Any]:
    """One transfer after the other; returns how it went."""
    random = Random()
    committed = limits = retries = most = 0
    longest_s = 0.0
    while (began := time.monotonic()) < until:
        one, other = random.sample(accounts, 2)

        async def transfer(t: quire.Transaction, one: str = one, other: str = other) -> None:
            here, there = await t.read(one) or 0, await t.read(other) or 0
            await t.write(one, here - 1)
            await t.write(other, there + 1)

        before = store.counts.retries
        try:
            await store.run(transfer)
            committed += 1
        except quire.RetryLimit:
            limits += 1
        tries = store.counts.retries - before
        retries, most = retries + tries, max(most, tries + 1)
        longest_s = max(longest_s, time.monotonic() - began)
    return {"committed": committed, "limits": limits, "retries": retries, "most": most, "longest_s": longest_s}


async def take_part(me: int, mode: str, accounts: list[str], seconds: float, members: list[str]) -> None:
    options = {"replication": mode}
    member = quire.join_store(
        "fairness", me=me, members=members, replicas=REPLICAS, options=options, codec=quire.JSON, join_s=JOIN_S
    )
    async with member:
        if me >= REPLICAS:
            print(json.dumps(await transfer_until(member.store, accounts, time.monotonic() + seconds)), flush=True)


def play(mode: str, keys: int, seconds: float, *, apart: bool = False) -> dict[str, Any]:
    """One store, from its start to its end."""
    members, processes = free_addresses(REPLICAS + CLIENTS), []
    for me in range(REPLICAS + CLIENTS):
        accounts = [f"{me if apart else 'shared'}-{number}" for number in range(keys)]
        part = json.dumps({"me": me, "mode": mode, "accounts": accounts, "seconds": seconds, "members": members})
        command = [sys.executable, "-m", "benchmarks.transactions", "--part", part]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    said = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit("a process of the store failed")
    clients = [json.loads(each) for each in said[REPLICAS:]]
    commits = [client["committed"] for client in clients]
    return {
        "commits": commits,
        "commits_per_s": sum(commits) / seconds,
        "fairness": min(commits) / max(commits),
        "tries_mean": 1 + sum(client["retries"] for client in clients) / max(sum(commits), 1),
        "tries_most": max(client["most"] for client in clients),
        "longest_s": max(client["longest_s"] for client in clients),
        "limits": sum(client["limits"] for client in clients),
    }


def summarise(mode: str, keys: int | None, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    medians = ("commits_per_s", "to_own", "fairness", "tries_mean")
    return {
        "mode": mode,
        "keys": keys,
        **{measure: median(each[measure] for each in rounds) for measure in medians},
        "tries_most": max(each["tries_most"] for each in rounds),
        "longest_s": max(each["longest_s"] for each in rounds),
        "limits": sum(each["limits"] for each in rounds),
        "commits": [each["commits"] for each in rounds],
    }


def measure(rounds: int, seconds: float) -> list[dict[str, Any]]:
    """A row for each mode and number of keys; None: keys of their own."""
    table = []
    for mode in MODES:
        played: dict[int | None, list[dict[str, Any]]] = {keys: [] for keys in (None, *KEYS)}
        for _ in range(rounds):
            own = play(mode, max(KEYS), seconds, apart=True)
            for keys, rows in played.items():
                row = own if keys is None else play(mode, keys, seconds)
                rows.append({**row, "to_own": row["commits_per_s"] / own["commits_per_s"]})
        table += [summarise(mode, keys, rows) for keys, rows in played.items()]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether every client of a store gets its turn.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each store runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part is not None:
        asyncio.run(take_part(**json.loads(arguments.part)))
        return
    table = measure(arguments.rounds, arguments.seconds)
    heading = (
        f"{REPLICAS} replicas, {CLIENTS} clients, one transfer at a time each, {arguments.rounds} x {arguments.seconds:g} s",
        "mode      keys  commits/s  to own  fairness  tries mean  most  longest  limit",
    )
    show(table, heading, written, as_json=arguments.json)


def written(row: Row) -> str:
    return (
        f"{row['mode']:<9} {row['keys'] or 'own':>4} {row['commits_per_s']:>10,.0f} {row['to_own']:>7.2f}"
        f" {row['fairness']:>9.2f}"
        f" {row['tries_mean']:>11.2f} {row['tries_most']:>5} {row['longest_s']:>6.2f} s {row['limits']:>6}"
    )


if __name__ == "__main__":
    main()
