"""What replicated objects cost beside the messages that carry them.

Three processes on loopback. `submit` sends the bytes of a command as a plain message and waits until it is delivered here;
`command` calls the command, so that it is checked, encoded, read and executed at every member, and a result comes back.

pipelined    all members call 1,000 at once, again and again: calls/s of all together, and the processor time of all members
             for each call
closed loop  one member calls one after the other: the median time of a call
query        the same for a linearizable query, and for many at once, which share rounds

Then, in one process: what executing a command costs, by how its changes are noted in case that it fails, beside the copy of the
whole state that would do the same.

    python -m benchmarks.replicated [--rounds 20] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from statistics import median
from typing import Any

import msgspec
import uvloop

import quire
from quire.live.runs.fleet import free_addresses
from quire.replicated.machine import Machine

MEMBERS = 3
AT_ONCE = 1000
CLOSED_LOOP = 1000
LARGE = 100_000
HERE = b"here"


class Board(quire.Replicated):
    items: dict[str, int]
    lists: dict[str, list[int]]

    @quire.command
    def put(self, key: str, value: int) -> int:
        self.items[key] = value
        if value < 0:
            raise ValueError("too small")
        return len(self.items)

    @quire.command
    def append(self, key: str, value: int) -> int:
        self.lists.setdefault(key, [0] * 10)[0] = value
        return len(self.lists)

    @quire.query
    def get(self, key: str) -> int | None:
        return self.items.get(key)


def payload() -> bytes:
    """A command as it travels."""
    return Machine(Board()).command("", Board._commands["put"].encode(("some key", 12345), {}), 10**18)


async def pipelined(call: Callable[[int], Awaitable[Any]], rounds: int) -> float:
    began = time.perf_counter()
    for _ in range(rounds):
        await asyncio.gather(*map(call, range(AT_ONCE)))
    return time.perf_counter() - began


async def closed_loop(call: Callable[[int], Awaitable[Any]], count: int = CLOSED_LOOP) -> float:
    times = []
    for number in range(count):
        began = time.perf_counter()
        await call(number)
        times.append(time.perf_counter() - began)
    return median(times) * 1e6


async def measure(me: int, addresses: Sequence[str], rounds: int, kind: str) -> dict[str, float]:
    """One member of a group: all go through the same steps at the same time."""
    board = Board()
    found: dict[str, float] = {}
    state = board if kind == "command" else None
    async with quire.join(kind, me=me, members=addresses, order="total", state=state) as group:
        meeting = Meeting(group)
        reading = asyncio.ensure_future(meeting.read())
        data = payload()

        def call(number: int) -> Awaitable[Any]:
            return board.put("some key", number) if state is not None else group.submit(data)

        await pipelined(call, 2)
        cpu_s = time.process_time()
        found["pipelined"] = await pipelined(call, rounds)
        await meeting.meet()
        found["cpu_s"] = time.process_time() - cpu_s
        if me == 0:
            found["closed"] = await closed_loop(call)
            if state is not None:
                found["query"] = await closed_loop(lambda _: board.get("some key"))
                found["queries"] = await pipelined(lambda _: board.get("some key"), 5)
        await meeting.meet()
        await group.close()
        await reading
    return found


class Meeting:
    """Where members wait until all have come as far."""

    def __init__(self, group: quire.DynamicGroup) -> None:
        self._group = group
        self._heard = self._expected = 0
        self._changed = asyncio.Event()

    async def read(self) -> None:
        async for delivery in self._group.runs():
            if delivery.run.count == 1 and next(delivery.run.payloads()) == HERE:
                self._heard += 1
                self._changed.set()

    async def meet(self) -> None:
        self._expected += MEMBERS
        await self._group.multicast(HERE)
        while self._heard < self._expected:
            self._changed.clear()
            await self._changed.wait()


def run_members(rounds: int, kind: str) -> list[dict[str, float]]:
    addresses = free_addresses(MEMBERS)
    command = [sys.executable, "-m", "benchmarks.replicated", "--kind", kind, "--rounds", str(rounds), "--members", *addresses]
    started = [subprocess.Popen([*command, "--me", str(me)], stdout=subprocess.PIPE, text=True) for me in range(MEMBERS)]
    return [json.loads(each.communicate(timeout=600)[0]) for each in started]


def executing() -> dict[str, float]:
    """Microseconds that one execution takes at one member."""

    def timed(machine: Machine, name: str, *arguments: Any) -> float:
        board = machine.states[""]
        assert isinstance(board, Board)
        data = machine.command("", board._commands[name].encode(arguments, {}), 1)
        times = []
        for _ in range(5):
            began = time.perf_counter()
            for number in range(2000):
                with suppress(ValueError):
                    machine.execute(0, number, data)
            times.append((time.perf_counter() - began) / 2000)
        return min(times) * 1e6

    small = Machine(Board())
    large = Machine(
        Board(
            items={f"key {number}": number for number in range(LARGE)}, lists={f"key {number}": [0] for number in range(LARGE)}
        )
    )
    began = time.perf_counter()
    msgspec.msgpack.encode(vars(large.states[""])["items"])
    copy_us = (time.perf_counter() - began) * 1e6
    return {
        "put": timed(small, "put", "a", 1),
        "put, of 100,000": timed(large, "put", "key 7", 1),
        "put that fails": timed(large, "put", "key 7", -1),
        "change of a list in a dictionary": timed(large, "append", "key 7", 1),
        "copy of the whole state": copy_us,
    }


def report(rounds: int) -> dict[str, Any]:
    submit, command = run_members(rounds, "submit"), run_members(rounds, "command")
    calls = MEMBERS * AT_ONCE * rounds
    rates = {
        kind: calls / max(each["pipelined"] for each in found) for kind, found in (("submit", submit), ("command", command))
    }
    cpu_us = {
        kind: sum(each["cpu_s"] for each in found) / calls * 1e6 for kind, found in (("submit", submit), ("command", command))
    }
    return {
        "pipelined_per_s": rates,
        "cpu_us": cpu_us,
        "cpu_ratio": cpu_us["command"] / cpu_us["submit"],
        "pipelined_ratio": rates["command"] / rates["submit"],
        "closed_us": {"submit": submit[0]["closed"], "command": command[0]["closed"], "query": command[0]["query"]},
        "closed_ratio": command[0]["closed"] / submit[0]["closed"],
        "queries_per_s": 5 * AT_ONCE / command[0]["queries"],
        "executing_us": executing(),
    }


def show(found: dict[str, Any]) -> None:
    rates, cpu_us, closed = found["pipelined_per_s"], found["cpu_us"], found["closed_us"]
    rows = [
        ("pipelined, calls/s", rates["submit"], rates["command"], found["pipelined_ratio"], f"{found['queries_per_s']:12,.0f}"),
        ("  processor, us/call", cpu_us["submit"], cpu_us["command"], found["cpu_ratio"], ""),
        ("closed loop, us", closed["submit"], closed["command"], found["closed_ratio"], f"{closed['query']:12,.0f}"),
    ]
    print(f"{'':24}{'submit':>12}{'command':>12}{'ratio':>8}{'query':>12}")
    for what, submit, command, ratio, query in rows:
        print(f"{what:24}{submit:12,.0f}{command:12,.0f}{ratio:8.2f}{query}")
    print("\nexecuting one command, us")
    for what, cost_us in found["executing_us"].items():
        print(f"  {what:34}{cost_us:10,.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--me", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--members", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.kind is not None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(json.dumps(runner.run(measure(given.me, given.members, given.rounds, given.kind))))
        return
    found = report(given.rounds)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)


if __name__ == "__main__":
    main()
