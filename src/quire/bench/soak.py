"""The soak test: runs a group under full load for a long time, and checks that memory stays flat and everything arrives."""

from __future__ import annotations

import time

import msgspec

from quire.bench.assignment import Assignment, Progress
from quire.bench.measure import MEMBERS_MAX, Say, check
from quire.bench.processes import Processes
from quire.live.runs.fleet import free_addresses
from quire.model.errors import BadInput

SECONDS_MAX = 24 * 3600.0
SAMPLES = 200
GROWTH_RATIO_MAX = 0.10
GROWTH_BYTES_MAX = 16 << 20
"""Memory is flat if it grows by no more than the larger of these after the first quarter of the time."""


class Sample(msgspec.Struct, frozen=True):
    at_s: float
    member: int
    delivered: int
    resident_bytes: int


class Soak(msgspec.Struct, frozen=True, kw_only=True):
    members: int
    size: int
    seconds: float
    sent: int
    deliveries: int
    deliveries_per_s: float
    """Of each member."""
    growth_bytes: int
    """Of the member whose memory grew most: the highest of the last quarter less the highest of the second."""
    flat: bool
    samples: tuple[Sample, ...]


async def soak(seconds: float, members: int, size: int, say: Say) -> Soak:
    """Run a group under full load for so long. Raises BenchFailed where something is lost or out of order."""
    if not 1.0 <= seconds <= SECONDS_MAX:
        raise BadInput(f"soak must be from 1 to {SECONDS_MAX:g} seconds, not {seconds:g}")
    if not 2 <= members <= MEMBERS_MAX:
        raise BadInput(f"members must be from 2 to {MEMBERS_MAX}, not {members}")
    samples: list[Sample] = []
    began = time.monotonic()

    def watch(member: int, progress: Progress) -> None:
        at_s = time.monotonic() - began
        samples.append(Sample(at_s, member, progress.delivered, progress.resident_bytes))
        say(f"{at_s:,.0f} s: member {member} has {progress.delivered:,} and {progress.resident_bytes >> 20} MiB")

    addresses = free_addresses(members)
    assignments = [
        Assignment(
            contender="quire runs",
            me=me,
            members=members,
            addresses=addresses,
            size=size,
            seconds=seconds,
            progress_s=max(0.1, seconds / SAMPLES),
        )
        for me in range(members)
    ]
    reports = await Processes(assignments, seconds, watch).run()
    check("quire runs", reports)
    growth, flat = judge_memory(samples)
    return Soak(
        members=members,
        size=size,
        seconds=seconds,
        sent=sum(report.sent for report in reports),
        deliveries=sum(report.delivered for report in reports),
        deliveries_per_s=reports[0].delivered / max(report.elapsed_s for report in reports),
        growth_bytes=growth,
        flat=flat,
        samples=tuple(samples),
    )


def judge_memory(samples: list[Sample]) -> tuple[int, bool]:
    """How much the memory of any member grew, and whether that still counts as flat."""
    growth, flat = 0, True
    for member in {sample.member for sample in samples}:
        resident = [sample.resident_bytes for sample in samples if sample.member == member]
        quarter = len(resident) // 4
        if not quarter:
            continue
        before, after = max(resident[quarter : 2 * quarter]), max(resident[-quarter:])
        growth = max(growth, after - before)
        flat = flat and after - before <= max(GROWTH_BYTES_MAX, GROWTH_RATIO_MAX * before)
    return growth, flat
