"""Quire's own part: a member of a live group, used as an application uses it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from pathlib import Path

from quire.bench.assignment import Assignment, Report
from quire.bench.load import Supply, Tally
from quire.bench.pipe import Pipe
from quire.live.dynamic.group import DynamicGroup
from quire.live.groups.group import Group
from quire.live.groups.joining import record_group
from quire.live.network_options import Network
from quire.live.settings import read_settings

SECRET = "a secret for a benchmark on loopback"  # noqa: S105
TAKEN_MAX = 256
SETTLE_S = 0.005
TIMEOUT_S = 30.0


def make_group(assignment: Assignment, *, secret: bool = False) -> Group:
    settings = read_settings(
        "bench",
        assignment.me,
        assignment.addresses,
        order="total" if assignment.lookahead is None else None,
        protocol="single-phase" if assignment.lookahead is not None else None,
        options={"lookahead": assignment.lookahead} if assignment.lookahead is not None else None,
        network=Network(secret=SECRET if secret else None, timeout_s=TIMEOUT_S),
    )
    return Group(settings, None if assignment.directory is None else record_group(settings, Path(assignment.directory)))


async def throughput(pipe: Pipe, *, messages: bool = False, secret: bool = False) -> None:
    """Send at full speed and deliver everything, run by run or message by message."""
    assignment = pipe.assignment
    supply, tally = Supply(assignment), Tally(assignment.size)
    async with make_group(assignment, secret=secret) as group:
        await pipe.all_ready()
        sending = asyncio.create_task(send_all(group, supply))
        telling = asyncio.create_task(_tell_progress(pipe, tally))
        take = _take_messages if messages else take_runs
        await take(group, tally, assignment.members)
        elapsed_s = await pipe.all_done()
        await sending
        telling.cancel()
        pipe.report(elapsed_s, supply.sent, (tally,))


async def send_all(group: Group | DynamicGroup, supply: Supply) -> None:
    for batch in supply.batches():
        await group.multicast_many(batch)


async def take_runs(group: Group | DynamicGroup, tally: Tally, members: int) -> None:
    async with aclosing(group.runs()) as deliveries:
        async for delivery in deliveries:
            tally.take_together(delivery.run.body.payload)
            if tally.senders_done == members:
                return


async def _take_messages(group: Group, tally: Tally, members: int) -> None:
    taken: list[bytes] = []

    def settle() -> None:
        tally.take_each(taken)
        taken.clear()

    async def take() -> None:
        append = taken.append
        async for message in group:
            append(message.payload)
            # Soon, as an application is done with a message soon: thousands that live together cost memory and time.
            if len(taken) == TAKEN_MAX:
                settle()

    taking = asyncio.create_task(take())
    while tally.senders_done < members:
        # The last messages do not fill a batch.
        await asyncio.sleep(SETTLE_S)
        settle()
    taking.cancel()
    with suppress(asyncio.CancelledError):
        await taking


async def _tell_progress(pipe: Pipe, tally: Tally) -> None:
    while pipe.assignment.progress_s is not None:
        await asyncio.sleep(pipe.assignment.progress_s)
        pipe.progress(tally.delivered)


async def latency(pipe: Pipe) -> None:
    """One member sends a message, waits until it is delivered to itself in its final position, and sends the next."""
    assignment = pipe.assignment
    payload = bytes(assignment.size)
    took: list[float] = []
    async with make_group(assignment) as group:
        taking = asyncio.create_task(take_anything(group))
        await pipe.all_ready()
        for _ in range(assignment.round_trips if assignment.me == assignment.sender else 0):
            began = time.perf_counter()
            await group.execute(payload)
            took.append((time.perf_counter() - began) * 1e6)
        await pipe.all_done()
        taking.cancel()
        pipe.say(Report(me=assignment.me, cpu_s=pipe.cpu_s(), round_trips_us=tuple(took)))


async def take_anything(group: Group | DynamicGroup) -> None:
    async for _ in group.runs():
        pass
