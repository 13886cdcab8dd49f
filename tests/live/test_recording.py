"""Applications that leave a trace: every kind of group, from `trace=` to the verdict, also where one crashes or disks fill."""

from __future__ import annotations

import asyncio
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import quire
from quire.live.runs.collecting import LiveSummary, collect
from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import serve
from quire.pipeline import audit
from quire.pipeline.source import register
from quire.trace.parts.reader import part_files
from quire.trace.store import read_info
from tests.kit.patience import PATIENCE_S
from tests.live.running import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMBERS = 3
MESSAGES = 40


async def talk(me: int, members: tuple[str, ...], trace: Path, **wanted: Any) -> None:
    """A member that multicasts some messages and leaves when it has everybody's."""
    async with quire.join("board", me=me, members=members, trace=trace, **wanted) as group:
        for number in range(MESSAGES):
            await group.multicast(f"{me} says {number}".encode())
        taken = 0
        async for _ in group:
            taken += 1
            if taken == MESSAGES * MEMBERS:
                break


async def group_of(trace: Path, **wanted: Any) -> None:
    members = free_addresses(MEMBERS)
    await asyncio.gather(*(talk(me, members, trace, **wanted) for me in range(MEMBERS)))


async def total(trace: Path) -> None:
    await group_of(trace, order="total")


async def causal(trace: Path) -> None:
    await group_of(trace, order="causal")


async def hierarchy(trace: Path) -> None:
    await group_of(trace, protocol="hierarchy")


async def store(trace: Path) -> None:
    members = free_addresses(5)

    async def process(me: int) -> None:
        async with quire.join_store("shop", me=me, members=members, replicas=3, codec=quire.JSON, trace=trace) as member:
            for _ in range(10 if me >= 3 else 0):
                await member.store.run(increment)

    async def increment(transaction: quire.Transaction) -> None:
        await transaction.write("sold", (await transaction.read("sold") or 0) + 1)

    await asyncio.gather(*(process(me) for me in range(5)))


class Counter(quire.Object):
    conflicts = frozenset({("add", "get"), ("get", "add")})

    def __init__(self) -> None:
        self.value = 0

    @quire.operation
    async def add(self, call: quire.Call, amount: int) -> None:
        self.value += amount

    @quire.operation
    async def get(self, call: quire.Call) -> int:
        return self.value


async def objects(trace: Path) -> None:
    members, placed = free_addresses(MEMBERS), {"sold": quire.place(Counter, 0, 1)}

    async def member(me: int) -> None:
        async with quire.join_objects("shop", me=me, members=members, objects=placed, trace=trace) as group:
            for _ in range(5):
                await group.invoke("sold", "add", me)
            await group.invoke("sold", "get")

    await asyncio.gather(*(member(me) for me in range(MEMBERS)))


async def service(trace: Path) -> None:
    sequencers = free_addresses(2)

    async def client() -> None:
        async with quire.connect(sequencers, trace=trace) as connected:
            await connected.create_group("tea")
            await connected.join_group("tea")
            for _ in range(MESSAGES):
                await connected.multicast("tea", b"one more")
            own = 0
            async for delivery in connected:
                own += isinstance(delivery, quire.GroupMessage) and delivery.origin == connected.me
                if own == MESSAGES:
                    break

    one, other = (serve(sequencers, me, trace=trace) for me in range(2))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(one.__aenter__())
        tasks.create_task(other.__aenter__())
    await asyncio.gather(*(client() for _ in range(3)))
    await asyncio.gather(one.__aexit__(None, None, None), other.__aexit__(None, None, None))


KINDS: tuple[Callable[[Path], Coroutine[Any, Any, None]], ...] = (total, causal, hierarchy, store, objects, service)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_group_leaves_a_trace_that_proves_what_it_promises(
    spark: SparkSession, tmp_path: Path, kind: Callable[[Path], Coroutine[Any, Any, None]]
) -> None:
    run(kind(tmp_path / "trace"))

    summary = collect(tmp_path / "trace", tmp_path / "run")

    assert summary.complete
    assert summary.notes == ()
    assert summary.deliveries > MESSAGES
    proof = audit(spark, tmp_path / "run")
    assert proof.verdict == "holds", proof
    assert set(proof.expected) == set(read_info(tmp_path / "run").promises)
    assert all(proof.checks[guarantee].verdict == "holds" for guarantee in proof.expected)


def test_clients_are_numbered_one_after_the_other_and_the_run_says_who_they_are(tmp_path: Path) -> None:
    run(service(tmp_path / "trace"))

    assert collect(tmp_path / "trace", tmp_path / "run").members == 5
    info = read_info(tmp_path / "run")
    assert info.groups == {"tea": (2, 3, 4)}
    clients = info.settings["clients"]
    assert isinstance(clients, dict)
    assert sorted(clients) == ["2", "3", "4"]


def test_sequencers_need_not_record_for_a_run_to_be_whole(tmp_path: Path) -> None:
    run(service(tmp_path / "trace"))
    for process in range(2):
        for path in part_files(tmp_path / "trace", process):
            path.unlink()

    assert collect(tmp_path / "trace", tmp_path / "run").complete


def test_a_group_that_is_run_twice_leaves_two_runs(tmp_path: Path) -> None:
    members = free_addresses(MEMBERS)
    for _ in range(2):
        run(together(members, tmp_path))

    assert len(part_files(tmp_path)) == 2 * MEMBERS
    summary = collect(tmp_path, tmp_path / "run")
    assert (summary.messages, summary.older) == (MESSAGES * MEMBERS, 1)


async def together(members: tuple[str, ...], trace: Path) -> None:
    await asyncio.gather(*(talk(me, members, trace, order="total") for me in range(MEMBERS)))


TALKER = """
import asyncio, sys, quire
from contextlib import suppress

async def main(me, members, trace):
    async with quire.join("board", me=me, members=members, protocol="matrix", timeout_s=2, trace=trace) as group:
        async def say():
            with suppress(quire.GroupFailed):
                while True:
                    await group.multicast(b"still here")
                    await asyncio.sleep(0.0005)
        saying = asyncio.create_task(say())
        async for message in group:
            if message.origin == 2 and message.seq == 300:
                print("heard", flush=True)

try:
    asyncio.run(main(int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3]))
except (quire.GroupFailed, quire.NotDelivered):
    print("failed", flush=True)
"""


def lose_a_member(trace: Path) -> LiveSummary:
    """Three processes talk all the time; one is killed, and the others notice."""
    members = ",".join(free_addresses(MEMBERS))
    processes = [
        subprocess.Popen([sys.executable, "-c", TALKER, str(me), members, str(trace)], stdout=subprocess.PIPE, text=True)
        for me in range(MEMBERS)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "heard\n"
        processes[2].send_signal(signal.SIGKILL)
        for process in processes[:2]:
            assert "failed\n" in process.communicate(timeout=PATIENCE_S)[0]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return collect(trace, trace / "run")


def test_what_a_killed_process_left_is_used_as_far_as_it_reaches_and_nobody_is_blamed(
    spark: SparkSession, tmp_path: Path
) -> None:
    summary = lose_a_member(tmp_path)

    assert summary.crashed == (0, 1, 2)
    assert "the part of process 2 does not reach to the end: it crashed, or is still running" in summary.notes[2]
    assert "unreachable" in summary.notes[0]
    assert summary.deliveries > 3 * 300
    proof = audit(spark, tmp_path / "run")
    assert proof.verdict == "holds"
    assert proof.notes == summary.notes


def test_spark_follows_an_application_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    """What members do is in Spark before they have ended."""
    register(spark)
    trace, members = tmp_path / "trace", free_addresses(MEMBERS)
    rows: list[int] = []

    async def main() -> None:
        done = asyncio.Event()

        async def member(me: int) -> None:
            async with quire.join("board", me=me, members=members, order="total", trace=trace) as group:
                for _ in range(MESSAGES):
                    await group.execute(b"again")
                await done.wait()

        tasks = [asyncio.create_task(member(me)) for me in range(MEMBERS)]
        while not (rows and rows[-1] == MEMBERS * MEMBERS * MESSAGES):
            await asyncio.to_thread(look)
        done.set()
        await asyncio.gather(*tasks)

    def look() -> None:
        if trace.is_dir() and len(part_files(trace)) == MEMBERS:
            frame = spark.read.format("quire").load(str(trace))
            rows.append(frame.filter("kind = 'deliver'").count())

    run(main())


def test_where_the_disk_is_full_the_group_goes_on_and_its_application_is_told(tmp_path: Path) -> None:
    """A file may not grow beyond some bytes, as on a disk that is full."""
    told: list[quire.Event] = []
    members = free_addresses(2)

    async def member(me: int) -> int:
        taken = 0
        async with quire.join("board", me=me, members=members, order="total", trace=tmp_path, on_event=told.append) as group:
            limit()
            for _ in range(200):
                await group.execute(b"on and on")
                taken += 1
            while not any(event.kind == "unrecorded" for event in told):
                await group.execute(b"and on")
        return taken

    async def main() -> None:
        first = asyncio.create_task(member(0))
        assert tuple(await asyncio.gather(first, member(1))) == (200, 200)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        run(main())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    said = [event for event in told if event.kind == "unrecorded"]
    assert 1 <= len(said) <= 2
    assert "is not complete: File too large" in said[0].why


def test_a_trace_that_cannot_be_begun_is_refused_before_anybody_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    began = time.monotonic()

    with pytest.raises(quire.BadInput, match=r"cannot write a trace to .*file/here: Not a directory"):
        quire.join("board", me=0, members=free_addresses(2), order="total", trace=tmp_path / "file" / "here")

    assert time.monotonic() - began < 5
