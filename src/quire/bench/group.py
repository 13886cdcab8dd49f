"""Quire's contender in the benchmark: a member of a live group, used as an application would use it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final

from quire.bench.assignment import Assignment, Report
from quire.bench.load import Supply, Tally
from quire.bench.pipe import Pipe
from quire.journal.disk import Directory
from quire.live.dynamic.events import View
from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.joining import Delivery
from quire.live.groups.group import Group
from quire.live.groups.joining import join_fixed
from quire.live.joining import join
from quire.live.network_options import Network, NetworkOptions
from quire.protocols.registry import for_order

PROTOCOL: Final = "single-phase"
SECRET = "a secret for a benchmark on loopback"  # noqa: S105
TAKEN_MAX = 256
SETTLE_S = 0.005
TIMEOUT_S = 30.0
DURABLE_TRIPS_MAX = 100
"""Each takes as long as a disk does, which may be slow."""


def make_group(
    assignment: Assignment,
    *,
    secret: bool = False,
    delivery: Delivery | None = None,
    trace: bool = False,
    journal: bool = False,
) -> DynamicGroup:
    """A founder. Its part of a trace, or its journal, is where the assignment says."""
    network: NetworkOptions = {
        "trace": assignment.directory if trace else None,
        "secret": SECRET if secret else None,
        "observe": assignment.observe[assignment.me] if assignment.observe else None,
        "timeout_s": TIMEOUT_S,
    }
    return join(
        "bench",
        me=assignment.me,
        members=assignment.addresses,
        protocol=PROTOCOL,
        options=_options(assignment),
        journal=_own(assignment, "journal") if journal else None,
        delivery=delivery,
        **network,
    )


def _options(assignment: Assignment) -> Mapping[str, object]:
    """Those of a total order, unless the assignment says otherwise."""
    return for_order("total")[1] if assignment.lookahead is None else {"lookahead": assignment.lookahead}


def _own(assignment: Assignment, name: str) -> Path:
    assert assignment.directory is not None
    return Path(assignment.directory, f"{name}-{assignment.me}")


async def throughput(
    pipe: Pipe,
    *,
    messages: bool = False,
    calls: bool = False,
    secret: bool = False,
    delivery: Delivery | None = None,
    trace: bool = False,
    journal: bool = False,
) -> None:
    """Send at full speed and deliver everything, run by run or message by message. `calls`: each is sent by a call."""
    assignment = pipe.assignment
    async with make_group(assignment, secret=secret, delivery=delivery, trace=trace, journal=journal) as group:
        await _everybody_is_there(group, assignment.members)
        elapsed_s, sent, tally = await _move(pipe, group, messages=messages, calls=calls)
        batches, size = group.journalled()
        plain_s = await asyncio.to_thread(append_plainly, assignment, batches, size) if batches else None
        pipe.report(elapsed_s, sent, (tally,), plain_s)
        await group.close()


async def fixed_throughput(pipe: Pipe) -> None:
    """The same protocol in a group with fixed membership, without views to agree on: the baseline for the cost of changing
    membership."""
    assignment = pipe.assignment
    network = Network(timeout_s=TIMEOUT_S)
    options = _options(assignment)
    async with join_fixed("bench", assignment.me, assignment.addresses, PROTOCOL, options, None, network) as group:
        elapsed_s, sent, tally = await _move(pipe, group)
        pipe.report(elapsed_s, sent, (tally,))


async def _move(
    pipe: Pipe, group: Group | DynamicGroup, *, messages: bool = False, calls: bool = False
) -> tuple[float, int, Tally]:
    """Send everything and take everything: how long it took, how much was sent, and what came."""
    assignment = pipe.assignment
    supply, tally = Supply(assignment), Tally(assignment.size)
    await pipe.all_ready()
    sending = asyncio.create_task(_send_each(group, supply) if calls else _send(group, supply))
    telling = asyncio.create_task(_tell_progress(pipe, tally))
    take = _take_messages if messages else _take_runs
    await take(group, tally, assignment.members)
    elapsed_s = await pipe.all_done()
    await sending
    telling.cancel()
    return elapsed_s, supply.sent, tally


async def _everybody_is_there(group: DynamicGroup, members: int) -> None:
    """With journals a majority of the founders may have begun without the others."""
    async with aclosing(group.events()) as events:
        async for event in events:
            if isinstance(event, View) and len(event.members) == members:
                return


async def _send(group: Group | DynamicGroup, supply: Supply) -> None:
    for batch in supply.batches():
        await group.multicast_many(batch)


async def _send_each(group: Group | DynamicGroup, supply: Supply) -> None:
    for batch in supply.batches():
        for message in batch:
            await group.multicast(message)


async def _take_runs(group: Group | DynamicGroup, tally: Tally, members: int) -> None:
    async with aclosing(group.runs()) as deliveries:
        async for delivery in deliveries:
            tally.take_together(delivery.run.body.payload)
            if tally.senders_done == members:
                return


async def _take_messages(group: Group | DynamicGroup, tally: Tally, members: int) -> None:
    taken: list[bytes] = []

    def settle() -> None:
        tally.take_each(taken)
        taken.clear()

    async def take() -> None:
        append = taken.append
        async for message in group:
            append(message.payload)
            # Early, as an application is done with a message early: keeping thousands alive costs memory and time.
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


async def latency(pipe: Pipe, *, delivery: Delivery | None = None) -> None:
    """One member sends a message, waits until it is delivered to itself in its final position, and sends the next."""
    assignment = pipe.assignment
    payload = bytes(assignment.size)
    took: list[float] = []
    async with make_group(assignment, delivery=delivery) as group:
        await _everybody_is_there(group, assignment.members)
        taking = asyncio.create_task(_take_anything(group))
        await pipe.all_ready()
        for _ in range(assignment.own_round_trips()):
            began = time.perf_counter()
            await group.execute(payload)
            took.append((time.perf_counter() - began) * 1e6)
        await pipe.all_done()
        taking.cancel()
        pipe.say(Report(me=assignment.me, cpu_s=pipe.cpu_s(), round_trips_us=tuple(took)))
        await group.close()


async def durable_latency(pipe: Pipe) -> None:
    """One member sends a message, waits until it is delivered, which is when a majority has it on disk, and sends the next.
    In turn with that, the bare disk makes a message durable."""
    assignment = pipe.assignment
    payload = bytes(assignment.size)
    took, syncs = [], []
    async with make_group(assignment, journal=True) as group:
        await _everybody_is_there(group, assignment.members)
        taking = asyncio.create_task(_take_anything(group))
        await pipe.all_ready()
        if assignment.me == assignment.sender:
            with _Plain(assignment) as plain:
                for _ in range(min(assignment.round_trips, DURABLE_TRIPS_MAX)):
                    began = time.perf_counter()
                    await group.execute(payload)
                    took.append((time.perf_counter() - began) * 1e6)
                    syncs.append(plain.append(payload) * 1e6)
        await pipe.all_done()
        taking.cancel()
        pipe.say(Report(me=assignment.me, cpu_s=pipe.cpu_s(), round_trips_us=tuple(took), syncs_us=tuple(syncs)))
        await group.close()


async def _take_anything(group: DynamicGroup) -> None:
    async for _ in group.runs():
        pass


def append_plainly(assignment: Assignment, batches: int, size: int) -> float:
    """How long the bare disk takes for so many bytes in so many batches."""
    with _Plain(assignment) as plain:
        return sum(plain.append(bytes(size // batches)) for _ in range(batches))


class _Plain:
    """A file beside the journal."""

    def __init__(self, assignment: Assignment) -> None:
        self._file = Directory(_own(assignment, "plain").parent).open(_own(assignment, "plain").name)

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, data: bytes) -> float:
        """How long it takes until these bytes are durable."""
        began = time.perf_counter()
        self._file.write(data)
        self._file.sync()
        return time.perf_counter() - began
