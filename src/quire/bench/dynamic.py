"""Quire's part with members that come and go: a member of such a group, used as an application uses it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

from quire.bench.assignment import Assignment, Report
from quire.bench.group import TIMEOUT_S, send_all, take_anything, take_runs
from quire.bench.load import Supply, Tally
from quire.bench.pipe import Pipe
from quire.journal.disk import Directory
from quire.live.dynamic.events import View
from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.joining import Delivery, read_dynamic_settings
from quire.live.dynamic.recording import record_member
from quire.live.network_options import Network
from quire.live.observing.observer import observer_of

DURABLE_TRIPS_MAX = 100
"""Each takes as long as a disk does, which may be slow."""


def make_group(assignment: Assignment, delivery: Delivery) -> DynamicGroup:
    """A founder. Where the assignment has a directory, its journal is there."""
    observe = assignment.observe[assignment.me] if assignment.observe else None
    network = Network(timeout_s=TIMEOUT_S, observe=observe)
    settings = read_dynamic_settings(
        "bench",
        str(assignment.me),
        members={str(member): address for member, address in enumerate(assignment.addresses)},
        at=None,
        contact=(),
        order="total",
        protocol=None,
        options=None,
        journal=None if assignment.directory is None else _own(assignment, "journal"),
        delivery=delivery,
        weights=None,
        rejoin=True,
        network=network,
    )
    observer = observer_of(network)
    return DynamicGroup(settings, recording=record_member(settings, None, observer), observer=observer)


def _own(assignment: Assignment, name: str) -> Path:
    assert assignment.directory is not None
    return Path(assignment.directory, f"{name}-{assignment.me}")


async def throughput(pipe: Pipe, *, delivery: Delivery = "uniform") -> None:
    """Send at full speed and deliver everything, run by run."""
    assignment = pipe.assignment
    supply, tally = Supply(assignment), Tally(assignment.size)
    async with make_group(assignment, delivery) as group:
        await _everybody_is_there(group, assignment.members)
        await pipe.all_ready()
        sending = asyncio.create_task(send_all(group, supply))
        await take_runs(group, tally, assignment.members)
        elapsed_s = await pipe.all_done()
        await sending
        batches, size = group.journalled()
        plain_s = await asyncio.to_thread(append_plainly, assignment, batches, size) if batches else None
        pipe.report(elapsed_s, supply.sent, (tally,), plain_s)
        await group.close()


async def _everybody_is_there(group: DynamicGroup, members: int) -> None:
    """A majority of the founders may have begun without the others."""
    async with aclosing(group.events()) as events:
        async for event in events:
            if isinstance(event, View) and len(event.members) == members:
                return


async def latency(pipe: Pipe) -> None:
    """One member sends a message, waits until it is delivered, which is when a majority has it on disk, and sends the next.
    In turn with that, the bare disk makes a message durable."""
    assignment = pipe.assignment
    payload = bytes(assignment.size)
    took, syncs = [], []
    async with make_group(assignment, "uniform") as group:
        await _everybody_is_there(group, assignment.members)
        taking = asyncio.create_task(take_anything(group))
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
