"""Groups of 3 to 32 members that all send, each one message after the other, as soon as its own is delivered.

Shown are the processor time of a delivery, the packets for each message and how long a member waits for its own, with ratios to
the smallest group: the processor time of a delivery should not grow with the group, and the latency no faster than the group.

    python -m benchmarks.all_send [--members 3,8,16,32] [--messages 300] [--delivery uniform] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import mean
from typing import Literal

import uvloop

import quire
from benchmarks.tables import Row, show
from quire.live.runs.fleet import free_addresses

WARM_UP = 30
"""So many messages of each member come first."""
TIMEOUT_S = 30.0
"""Many processes share few processors."""


async def take_part(me: int, members: Sequence[str], messages: int, delivery: Literal["uniform", "fast"]) -> Row:
    """Send, and wait until everything of everybody is delivered here."""
    expected = len(members) * WARM_UP, len(members) * (WARM_UP + messages)
    async with quire.join("all-send", me=me, members=members, order="total", delivery=delivery, timeout_s=TIMEOUT_S) as group:
        delivered, moved = 0, asyncio.Event()

        async def read() -> None:
            nonlocal delivered
            async for run in group.runs():
                delivered += run.run.count
                if delivered in expected:
                    moved.set()

        async def send(count: int, until: int) -> list[float]:
            waited = list[float]()
            for _ in range(count):
                began = time.perf_counter()
                await group.execute(bytes(64))
                waited.append(time.perf_counter() - began)
            while delivered < until:
                await moved.wait()
                moved.clear()
            return waited

        reading = asyncio.create_task(read())
        await send(WARM_UP, expected[0])
        began, before = time.process_time(), packets(group.metrics())
        waited = await send(messages, expected[1])
        result = {
            "cpu_s": time.process_time() - began,
            "packets": (packets(group.metrics()) - before) / messages,
            "latency_s": mean(waited),
        }
        if me == 0:
            await group.close()
        await reading
    return result


def packets(metrics: str) -> float:
    """How many frames went to one of the others."""
    counts = re.findall(r"^quire_link_frames_sent_total\S* (\d+)", metrics, re.MULTILINE)
    return int(counts[0])


def measure(members: int, messages: int, delivery: str) -> Row:
    addresses = list(free_addresses(members))
    processes = []
    for me in range(members):
        part = json.dumps({"me": me, "members": addresses, "messages": messages, "delivery": delivery})
        command = [sys.executable, "-m", "benchmarks.all_send", "--part", part]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    results = [json.loads(process.communicate()[0]) for process in processes]
    return {
        "members": members,
        "cpu_us": sum(each["cpu_s"] for each in results) / (members * members * messages) * 1e6,
        "packets": mean(each["packets"] for each in results),
        "latency_ms": mean(each["latency_s"] for each in results) * 1e3,
    }


def main(sizes: Sequence[int], messages: int, delivery: str) -> list[Row]:
    rows = [measure(members, messages, delivery) for members in sizes]
    first = rows[0]
    for row in rows:
        row["cpu_ratio"] = row["cpu_us"] / first["cpu_us"]
        row["latency_ratio"] = row["latency_ms"] / first["latency_ms"] / (row["members"] / first["members"])
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", default="3,8,16,32")
    parser.add_argument("--messages", type=int, default=300)
    parser.add_argument("--delivery", default="uniform")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part is not None:
        print(json.dumps(uvloop.run(take_part(**json.loads(given.part)))))
    else:
        show(
            main(list(map(int, given.members.split(","))), given.messages, given.delivery),
            [f"{given.messages} messages of 64 B of each member, {given.delivery} delivery; ratios to the smallest group", ""],
            lambda row: (
                f"{row['members']:>3} members  {row['cpu_us']:>6.0f} us of a processor a delivery ({row['cpu_ratio']:.2f})"
                f"  {row['packets']:.2f} packets a message"
                f"  latency {row['latency_ms']:>8.2f} ms ({row['latency_ratio']:.2f} x the number of members)"
            ),
            as_json=given.json,
        )
