"""What backups of sequencers cost, and how long clients wait when a sequencer is killed or hangs.

speed  three clients of one group send messages of 64 B as fast as they can, with three sequencers that do not survive, that are
       rebuilt from what clients know (0 backups), and that have one backup each, round by round in turn
kill   the sequencer that numbers the group is killed with SIGKILL while the clients send at a steady rate; what counts is the
       longest pause of deliveries at any client in the second after that. Then it is started again, and the next round begins
kill 0 the same without backups
stop   the same with SIGSTOP, where nothing ends the connection: it is noticed by silence, after the timeout of 1 s
restart  the sequencers are ended with SIGTERM and started again, one after the other

`before` is the longest pause in as long a time before each fault: what the machine does to everybody. All sequencers and
clients are processes of their own, on loopback. Only processes that were started here are killed or stopped.

    python -m benchmarks.sequencers [--rounds 3] [--seconds 3] [--kills 10] [--stops 3] [--restarts 6] [--rate 1000] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from bisect import bisect_left
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import uvloop

import quire
from benchmarks.failover import CALM_S, OBSERVED_S, PATIENCE_S, figures
from benchmarks.failover_member import say
from quire.live.runs.fleet import free_addresses
from quire.protocols.sequencing.failover import SurvivingClient
from quire.protocols.sequencing.notices import Changed, Delivered

SEQUENCERS = CLIENTS = 3
SIZE = 64
BATCH = 512
BATCHES_PER_S = 200
TIMEOUT_S = 1.0
SPEED_RATIO = 0.6
KILL_MS, MARGIN_MS = 500.0, 500.0
GROUP = "bench"
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "restart": signal.SIGTERM}


class Part:
    """One client, in a process of its own. It does what its standard input says, and ends with it."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.times: list[float] = []
        self.counts = [0]

    async def run(self) -> None:
        task = self.task
        client = quire.connect(task["sequencers"], backups=task["backups"], timeout_s=TIMEOUT_S)
        client.on_delivered = self.take
        async with client:
            await client.create_group(GROUP)
            await client.join_group(GROUP)
            say(joined=True)
            sending = asyncio.create_task(self.send(client))
            try:
                await self.obey(client)
            finally:
                sending.cancel()

    async def send(self, client: quire.Connected) -> None:
        rate = self.task["rate"]
        batch = [bytes(SIZE)] * (max(1, rate // BATCHES_PER_S) if rate else BATCH)
        while True:
            began = time.monotonic()
            with suppress(quire.UnitUnavailable):
                await client.multicast_many(GROUP, batch)
            await asyncio.sleep(max(0.0, 1 / BATCHES_PER_S - (time.monotonic() - began)) if rate else 0)

    def take(self, notice: Delivered | Changed) -> None:
        if isinstance(notice, Delivered):
            self.times.append(time.monotonic())
            self.counts.append(self.counts[-1] + notice.run.count)

    async def obey(self, client: quire.Connected) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            start, stop = json.loads(line)
            first, last = bisect_left(self.times, start), bisect_left(self.times, stop)
            pause = max(after - before for before, after in pairwise([start, *self.times[first:last], stop]))
            node, unit = client.client, client.client.locations[GROUP]
            runs = node.routes.primaries[unit] if isinstance(node, SurvivingClient) else unit
            say(pause_ms=pause * 1e3, count=self.counts[last] - self.counts[first], runs=runs)
        os._exit(0)


class Service:
    """Sequencers and clients, each a process that was started here."""

    def __init__(self, backups: int | None, rate: int) -> None:
        """`backups`: None if it is not to survive."""
        addresses = free_addresses(2 * SEQUENCERS)
        self.addresses, self.register = addresses[:SEQUENCERS], addresses[SEQUENCERS:]
        self.backups = backups
        self.rate = rate
        self.sequencers: dict[int, asyncio.subprocess.Process] = {}
        self.clients: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Service:
        await asyncio.gather(*map(self.start, range(SEQUENCERS)))
        task = json.dumps({"sequencers": self.addresses, "backups": self.backups, "rate": self.rate})
        for _ in range(CLIENTS):
            client = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "benchmarks.sequencers", "--part", task,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            self.clients.append(client)
        for client in self.clients:
            assert "joined" in await said(client)
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in (*self.clients, *self.sequencers.values()):
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def start(self, number: int) -> None:
        """Returns when it serves: then all groups are backed up."""
        survives = self.backups is not None
        backups = ["--backups", str(self.backups), "--register", ",".join(self.register)] if survives else []
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("quire")), "serve", "--listen", self.addresses[number],
            "--peers", ",".join(self.addresses), "--timeout", str(TIMEOUT_S), *backups, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self.sequencers[number] = process
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            while b" serves " not in await process.stderr.readline():
                assert process.returncode is None
        asyncio.get_running_loop().create_task(process.stderr.read())

    async def between(self, start: float, stop: float) -> list[dict[str, Any]]:
        """What each client says of this time."""
        answers = []
        for client in self.clients:
            assert client.stdin is not None
            client.stdin.write(json.dumps([start, stop]).encode() + b"\n")
            answers.append(await said(client))
        return answers

    async def longest(self, start: float, stop: float) -> float:
        return max(float(each["pause_ms"]) for each in await self.between(start, stop))


async def said(client: asyncio.subprocess.Process) -> dict[str, Any]:
    assert client.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        found: dict[str, Any] = json.loads(await client.stdout.readline())
        return found


async def speed(rounds: int, seconds: float) -> dict[str, Any]:
    """Deliveries a second at each client: of a service that does not survive, without backups, and with one."""
    found: dict[int | None, list[float]] = {None: [], 0: [], 1: []}
    for _ in range(rounds):
        for backups, rates in found.items():
            async with Service(backups, 0) as service:
                await asyncio.sleep(CALM_S)
                start = time.monotonic()
                await asyncio.sleep(seconds)
                counts = [each["count"] for each in await service.between(start, start + seconds)]
                rates.append(min(counts) / seconds)
    without, rebuilt, backed = (sorted(rates)[rounds // 2] for rates in found.values())
    return {
        "rounds": rounds, "without": without, "rebuilt": rebuilt, "one_backup": backed,
        "ratio": backed / without, "ratio_rebuilt": rebuilt / without,
    }  # fmt: skip


async def faults(rounds: int, rate: int, kind: str, backups: int) -> dict[str, Any]:
    pauses, before = [], []
    observed_s = OBSERVED_S + (TIMEOUT_S if kind == "stop" else 0.0)
    async with Service(backups, rate) as service:
        for number in range(rounds):
            await asyncio.sleep(observed_s + CALM_S)
            at = time.monotonic()
            runs = (await service.between(at, at))[0]["runs"]
            victim = number % SEQUENCERS if kind == "restart" else runs
            process = service.sequencers[victim]
            at = time.monotonic()
            process.send_signal(SIGNALS[kind])
            if kind == "restart":
                await process.wait()
                await service.start(victim)
            await asyncio.sleep(observed_s)
            before.append(await service.longest(at - observed_s, at))
            pauses.append(await service.longest(at, time.monotonic()))
            if kind != "restart":
                # Whoever stood still comes back by itself; it is replaced like one that was killed, to begin from the same.
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
                await service.start(victim)
    limit_ms = TIMEOUT_S * 1e3 + MARGIN_MS if kind == "stop" else KILL_MS
    return figures(pauses, before, limit_ms, limit_ms)


async def main(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if arguments.rounds:
        found["speed"] = await speed(arguments.rounds, arguments.seconds)
        found["speed"]["met"] = found["speed"]["ratio"] >= SPEED_RATIO
    planned = {
        "kill": (arguments.kills, 1), "kill 0": (arguments.kills, 0), "stop": (arguments.stops, 1),
        "restart": (arguments.restarts, 1),
    }  # fmt: skip
    for name, (rounds, backups) in planned.items():
        if rounds:
            found[name] = await faults(rounds, arguments.rate, name.partition(" ")[0], backups)
    return found


def shown(name: str, row: dict[str, Any]) -> str:
    met = "met" if row["met"] else "missed"
    if name == "speed":
        rates = (
            f"{row['without']:,.0f} if it does not survive, {row['rebuilt']:,.0f} without backups: {row['ratio_rebuilt']:.2f}, "
            f"{row['one_backup']:,.0f} with one backup: {row['ratio']:.2f}"
        )
        return f"{name:<7} {row['rounds']:>3} rounds  deliveries a second {rates} (target {SPEED_RATIO}: {met})"
    pause = f"longest pause p50 {row['p50_ms']:,.0f} ms, p99 {row['p99_ms']:,.0f} ms"
    calm = f"before p50 {row['before_p50_ms']:,.0f} ms, worst {row['before_worst_ms']:,.0f} ms"
    return f"{name:<7} {row['rounds']:>3} rounds  {pause}; {calm} ({met})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--stops", type=int, default=3)
    parser.add_argument("--restarts", type=int, default=6)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part is not None:
        uvloop.run(Part(json.loads(given.part)).run())
    else:
        result = uvloop.run(main(given))
        if given.json:
            print(json.dumps(result, indent=2))
        else:
            print("\n".join(shown(name, row) for name, row in result.items()))
