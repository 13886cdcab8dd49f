"""How long a group stands still when a member is killed or stopped, and what a joiner with much state costs.

kill   a member is killed with SIGKILL while all send; what counts is the longest pause of deliveries at any survivor in
       the second after that. Then a new process takes its place, and the next round begins
stop   the same with SIGSTOP, where nothing ends the connection: the others notice it by silence, after the timeout of 1 s. Then
       the member goes on, learns that it was excluded, and comes back by itself
cut    one member is cut off from the others, each on a host of its own, until the network heals: the same as for stop; and the
       longest pause of the others from there until it is back. Needs root
join   a process joins a group of three that has 200 MB of state: how long until it is a member and has the state, how many
       messages the others deliver meanwhile beside before, and their longest pause

`before` is the longest pause in as long a time before each fault: what the machine does to everybody. All members are processes
of their own, on loopback, and each sends at a steady rate. Only processes that were started here are killed or stopped.

    python -m benchmarks.failover [--kills 20] [--stops 5] [--cuts 5] [--joins 3] [--rate 2000] [--megabytes 200] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.failover_member import TIMEOUT_S
from quire.live.runs.fleet import free_addresses
from quire.live.runs.hosts import Hosts, hosts

SIZES = (3, 5)
OBSERVED_S = 1.0
CALM_S = 0.5
PATIENCE_S = 60.0
KILL_P50_MS, KILL_P99_MS, MARGIN_MS = 50.0, 250.0, 250.0
HEAL_MS = 200.0
JOIN_S, JOIN_RATIO = 4.0, 0.5


class Member:
    """A process that was started here, as seen from here."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process
        self.view: list[str] = []
        self.joined_s: float | None = None
        self.restored_at: float | None = None
        self.changed = asyncio.Event()
        self.answers: asyncio.Queue[dict[str, float]] = asyncio.Queue()
        self.listening = asyncio.create_task(self.listen())

    async def listen(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            said = json.loads(line)
            if "view" in said:
                self.view = said["view"]
            elif "joined" in said:
                self.joined_s = said["joined"]
            elif "restored" in said:
                self.restored_at = said["restored"]
            else:
                self.answers.put_nowait(said)
            self.changed.set()

    async def between(self, start: float, stop: float) -> dict[str, float]:
        """The longest pause, and how much was delivered, in this time."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([start, stop]).encode() + b"\n")
        async with asyncio.timeout(PATIENCE_S):
            return await self.answers.get()

    async def until_view(self, names: Iterable[str]) -> None:
        wanted = sorted(names)
        async with asyncio.timeout(PATIENCE_S):
            while sorted(self.view) != wanted:
                self.changed.clear()
                await self.changed.wait()

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        self.listening.cancel()


class Fleet:
    """A group of processes."""

    def __init__(self, members: int, rate: int, megabytes: int | None = None, hosts: Hosts | None = None) -> None:
        self.names = [chr(ord("a") + number) for number in range(members)]
        own = free_addresses(members + 1) if hosts is None else [f"{address}:7000" for address in (*hosts.ipv4, hosts.ipv4[0])]
        self.addresses = dict(zip([*self.names, "z"], own, strict=True))
        self.hosts = hosts
        self.common = {"rate": rate, "insecure": hosts is not None} | ({} if megabytes is None else {"megabytes": megabytes})
        self.members: dict[str, Member] = {}

    async def __aenter__(self) -> Fleet:
        founders = {name: self.addresses[name] for name in self.names}
        for name in self.names:
            await self.start(name, members=founders)
        await self.all_there()
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in self.members.values():
            await member.end()

    async def start(self, name: str, **place: Any) -> Member:
        task = json.dumps({"me": name, **self.common, **place})
        prefix = [] if self.hosts is None else self.hosts.on(self.names.index(name))
        process = await asyncio.create_subprocess_exec(
            *prefix, sys.executable, "-m", "benchmarks.failover_member", task,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        self.members[name] = Member(name, process)
        return self.members[name]

    async def join(self, name: str) -> Member:
        contacts = [self.addresses[other] for other in self.names if other != name]
        return await self.start(name, at=self.addresses[name], contact=contacts)

    async def all_there(self, names: Iterable[str] | None = None) -> None:
        for member in list(self.members.values()):
            await member.until_view(self.members if names is None else names)

    async def longest(self, names: Iterable[str], start: float, stop: float) -> float:
        return max([(await self.members[name].between(start, stop))["pause_ms"] for name in names])


async def kills(size: int, rounds: int, rate: int, chance: random.Random) -> dict[str, Any]:
    """One member after the other is killed, and another process takes its place."""
    pauses, before = [], []
    async with Fleet(size, rate) as fleet:
        for _ in range(rounds):
            await asyncio.sleep(OBSERVED_S + CALM_S)
            victim = chance.choice(fleet.names)
            others = [name for name in fleet.names if name != victim]
            at = time.monotonic()
            fleet.members[victim].process.kill()
            await asyncio.sleep(OBSERVED_S)
            before.append(await fleet.longest(others, at - OBSERVED_S, at))
            pauses.append(await fleet.longest(others, at, at + OBSERVED_S))
            await fleet.members.pop(victim).end()
            await fleet.join(victim)
            await fleet.all_there()
    return figures(pauses, before, KILL_P50_MS, KILL_P99_MS)


async def stops(size: int, rounds: int, rate: int, chance: random.Random) -> dict[str, Any]:
    """One member after the other stands still for longer than the timeout."""
    pauses, before = [], []
    observed_s = TIMEOUT_S + OBSERVED_S
    async with Fleet(size, rate) as fleet:
        for _ in range(rounds):
            await asyncio.sleep(observed_s + CALM_S)
            victim = chance.choice(fleet.names)
            others = [name for name in fleet.names if name != victim]
            at = time.monotonic()
            fleet.members[victim].process.send_signal(signal.SIGSTOP)
            try:
                await asyncio.sleep(observed_s)
            finally:
                fleet.members[victim].process.send_signal(signal.SIGCONT)
            before.append(await fleet.longest(others, at - observed_s, at))
            pauses.append(await fleet.longest(others, at, at + observed_s))
            await fleet.all_there()
    limit_ms = TIMEOUT_S * 1e3 + MARGIN_MS
    return figures(pauses, before, limit_ms, limit_ms)


async def cuts(size: int, rounds: int, rate: int, chance: random.Random) -> dict[str, dict[str, Any]]:
    """One member after the other is cut off from the others, each on a host of its own, and the network heals again."""
    pauses, before, healed, calm = [], [], [], []
    observed_s = TIMEOUT_S + OBSERVED_S
    with hosts(size) as made:
        async with Fleet(size, rate, hosts=made) as fleet:
            for _ in range(rounds):
                await asyncio.sleep(observed_s + CALM_S)
                victim = chance.choice(fleet.names)
                others = [name for name in fleet.names if name != victim]
                number = fleet.names.index(victim)
                pairs = [pair for other in map(fleet.names.index, others) for pair in ((number, other), (other, number))]
                at = time.monotonic()
                await asyncio.to_thread(made.cut, pairs)
                await asyncio.sleep(observed_s)
                before.append(await fleet.longest(others, at - observed_s, at))
                pauses.append(await fleet.longest(others, at, at + observed_s))
                at = time.monotonic()
                await asyncio.to_thread(made.heal, pairs)
                await fleet.all_there()
                await asyncio.sleep(CALM_S)
                stop = time.monotonic()
                calm.append(await fleet.longest(others, at - CALM_S, at))
                healed.append(await fleet.longest(others, at, stop))
    limit_ms = TIMEOUT_S * 1e3 + MARGIN_MS
    return {
        f"cut off, {size} members": figures(pauses, before, limit_ms, limit_ms),
        f"healed, {size} members": figures(healed, calm, HEAL_MS, HEAL_MS),
    }


def figures(pauses: list[float], before: list[float], p50_most: float, p99_most: float) -> dict[str, Any]:
    ordered = sorted(pauses)
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return {
        "rounds": len(pauses), "p50_ms": p50, "p99_ms": p99, "before_p50_ms": sorted(before)[len(before) // 2],
        "before_worst_ms": max(before), "met": p50 <= p50_most and p99 <= p99_most,
    }  # fmt: skip


async def joins(rounds: int, rate: int, megabytes: int) -> dict[str, Any]:
    """A process joins a group of three that has so much state."""
    found: list[dict[str, float]] = []
    for _ in range(rounds):
        async with Fleet(3, rate, megabytes) as fleet:
            await asyncio.sleep(2 * OBSERVED_S)
            started = time.monotonic()
            joiner = await fleet.join("z")
            await fleet.all_there()
            stop = time.monotonic()
            in_s = joiner.joined_s or stop - started
            start = stop - in_s
            meanwhile = [await fleet.members[name].between(start, stop) for name in fleet.names]
            usual = [await fleet.members[name].between(started - OBSERVED_S, started) for name in fleet.names]
            rates = [
                during["count"] / in_s / (calm["count"] / OBSERVED_S) for during, calm in zip(meanwhile, usual, strict=True)
            ]
            pause_ms, memory = max(each["pause_ms"] for each in meanwhile), max(map(most_memory, fleet.members.values()))
            found.append({"in_s": in_s, "ratio": min(rates), "pause_ms": pause_ms, "megabytes": memory})
    worst = {"in_s": max, "ratio": min, "pause_ms": max, "megabytes": max}
    result: dict[str, Any] = {name: pick(each[name] for each in found) for name, pick in worst.items()}
    result["met"] = result["in_s"] <= JOIN_S and result["ratio"] >= JOIN_RATIO and result["pause_ms"] <= MARGIN_MS
    return result


def most_memory(member: Member) -> float:
    """How many megabytes a process has had at most."""
    status = Path(f"/proc/{member.process.pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) / 1e3


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    chance = random.Random(arguments.seed)
    found: dict[str, Any] = {"load": os.getloadavg()[0]}
    for size in SIZES if arguments.kills else ():
        found[f"kill -9, {size} members"] = await kills(size, arguments.kills, arguments.rate, chance)
    for size in SIZES if arguments.stops else ():
        found[f"SIGSTOP, {size} members"] = await stops(size, arguments.stops, arguments.rate, chance)
    for size in SIZES if arguments.cuts else ():
        found |= await cuts(size, arguments.cuts, arguments.rate, chance)
    if arguments.joins:
        found[f"joiner, {arguments.megabytes} MB"] = await joins(arguments.joins, arguments.rate, arguments.megabytes)
    found["load after"] = os.getloadavg()[0]
    return found


def show(found: dict[str, Any]) -> None:
    print(f"load average {found['load']:.1f} before and {found['load after']:.1f} after")
    for name, each in found.items():
        if "p50_ms" in each if isinstance(each, dict) else False:
            print(
                f"{name}: longest pause p50 {each['p50_ms']:,.0f} ms, p99 {each['p99_ms']:,.0f} ms of {each['rounds']}; "
                f"undisturbed {each['before_p50_ms']:,.0f} ms, at worst {each['before_worst_ms']:,.0f} ms; "
                f"{'met' if each['met'] else 'missed'}"
            )
        elif isinstance(each, dict):
            print(
                f"{name}: in after {each['in_s']:.1f} s, throughput meanwhile {each['ratio']:.2f}, "
                f"longest pause {each['pause_ms']:,.0f} ms, memory of a process up to {each['megabytes']:,.0f} MB; "
                f"{'met' if each['met'] else 'missed'}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="Members that are killed, stopped, and join with much state.")
    parser.add_argument("--kills", type=int, default=20, help="of 3 and of 5 members each")
    parser.add_argument("--stops", type=int, default=5)
    parser.add_argument("--cuts", type=int, default=0, help="of 3 and of 5 members each; needs root")
    parser.add_argument("--joins", type=int, default=3)
    parser.add_argument("--rate", type=int, default=2_000, help="messages that each member sends in a second")
    parser.add_argument("--megabytes", type=int, default=200, help="of state that a joiner is given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments))
    print(json.dumps(found)) if arguments.json else show(found)


if __name__ == "__main__":
    main()
