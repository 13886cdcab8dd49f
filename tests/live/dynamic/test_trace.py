"""The trace of a group that changes: parts of processes that crash, come back, join and leave make one run that is audited."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

import quire
from quire.live import clock
from quire.live.runs.collecting import LiveSummary, collect
from quire.pipeline.auditing.auditor import audit_here
from quire.trace.parts.observing import Observed
from quire.trace.store import read_info
from quire.trace.views import ViewEvent
from tests.live.dynamic.kit import Member, crash, founded, places, run, talk, together

PROMISED = {"integrity", "agreement", "fifo", "causal", "total", "virtual-synchrony", "uniform", "once"}


def judge(parts: Path, out: Path) -> LiveSummary:
    """Everything that is promised holds."""
    summary = collect(parts, out)
    audit = audit_here(out)
    wrong = {name: check.because for name, check in audit.checks.items() if name in audit.expected and check.verdict != "holds"}
    assert not wrong
    assert set(audit.expected) >= PROMISED
    return summary


async def under_load(members: list[Member], act: Any) -> None:
    """Do something while these talk."""
    stop = asyncio.Event()
    talking = asyncio.ensure_future(talk(members, stop))
    await members[0].until(lambda member: len(member.payloads) > 30)
    await act()
    stop.set()
    await talking


async def close(*groups: quire.DynamicGroup) -> None:
    await asyncio.gather(*(group.close() for group in groups))


def test_a_crash_and_a_joiner_leave_a_trace_in_which_everything_holds(tmp_path: Path) -> None:
    async def main() -> None:
        async with founded("tcp", trace=tmp_path / "parts") as members:
            a, b, c = members.values()

            async def act() -> None:
                await crash(c.group)
                await a.is_in("a", "b")

            await under_load([a, b], act)
            at, contact = places("tcp", "d")["d"], str(a.group.settings.address)
            d = quire.join("test", me="d", at=at, contact=[contact], order="total", trace=tmp_path / "parts")
            async with together([d]) as more:
                await under_load([a, b, more["d"]], lambda: asyncio.sleep(0))
                await close(a.group, b.group, d)

    run("tcp", main())
    summary = judge(tmp_path / "parts", tmp_path / "run")
    info = read_info(tmp_path / "run")
    assert summary.members == 4
    assert sorted(info.settings["names"].values()) == ["a", "b", "c", "d"]  # type: ignore[attr-defined]
    assert len(summary.crashed) == 1
    assert summary.older == 0


def test_a_process_that_goes_on_with_its_journal_leaves_another_part_of_the_same_run(tmp_path: Path) -> None:
    async def main() -> None:
        where = places("tcp", "012")

        def member(name: str) -> quire.DynamicGroup:
            journal = tmp_path / f"journal-{name}"
            return quire.join("test", me=name, members=where, order="total", journal=journal, trace=tmp_path / "parts")

        async with together(map(member, where)) as members:
            first, second, third = members.values()

            async def act() -> None:
                await crash(third.group)
                await first.is_in("0", "1")
                async with together([member("2")]) as again:
                    await under_load([again["2"]], lambda: first.is_in("0", "1", "2"))
                    await crash(again["2"].group)

            await under_load([first, second], act)
            async with together([member("2")]) as again:
                await first.is_in("0", "1", "2")
                await again["2"].group.execute(b"here again")
                await close(first.group, second.group, again["2"].group)

    run("tcp", main())
    summary = judge(tmp_path / "parts", tmp_path / "run")
    assert summary.members == 3
    assert not summary.crashed
    assert summary.complete
    assert len(list((tmp_path / "parts").glob("p00002-*.events"))) == 3


@pytest.mark.parametrize("protocol", ["fifo", "causal-vector"])
def test_other_protocols_promise_in_views_what_they_promise_otherwise(tmp_path: Path, protocol: str) -> None:
    async def main() -> None:
        async with founded("tcp", protocol=protocol, trace=tmp_path / "parts") as members:
            a, b, c = members.values()
            await under_load([a, c], lambda: crash(b.group))
            await a.is_in("a", "c")
            await close(a.group, c.group)

    run("tcp", main())
    collect(tmp_path / "parts", tmp_path / "run")
    audit = audit_here(tmp_path / "run")
    assert {audit.checks[name].verdict for name in audit.expected} == {"holds"}
    assert {"fifo", "virtual-synchrony", "once"} <= set(audit.expected)


def test_what_somebody_else_saw_is_put_among_the_records_by_its_time(tmp_path: Path) -> None:
    seen: list[Observed] = []

    async def main() -> None:
        async with founded("tcp", names="012", trace=tmp_path / "parts") as members:
            first, second, third = members.values()

            async def act() -> None:
                seen.append(Observed(0, clock.wall_ns(), ViewEvent.CUT, (1,)))
                await crash(third.group)
                seen.append(Observed(2, clock.wall_ns(), ViewEvent.CRASH))
                await first.is_in("0", "1")
                seen.append(Observed(0, clock.wall_ns(), ViewEvent.HEALED, (1,)))
                seen.append(Observed(2, clock.wall_ns(), ViewEvent.CUT, (1,)))  # It is not there any more.

            await under_load([first, second], act)
            await close(first.group, second.group)

    run("tcp", main())
    collect(tmp_path / "parts", tmp_path / "run", observed=seen)
    audit = audit_here(tmp_path / "run")
    assert {audit.checks[name].verdict for name in audit.expected} == {"holds"}
    files = [str(path) for path in (tmp_path / "run").rglob("*.parquet")]
    rows = ds.dataset(files).to_table(["process", "pos", "lamport", "op"]).to_pylist()
    told = {0: ["install", "cut", "install", "healed"], 1: ["install", "install"], 2: ["install", "crash"]}
    for process, happened in told.items():
        own = sorted((row for row in rows if row["process"] == process), key=lambda row: row["pos"])
        assert [row["pos"] for row in own] == list(range(len(own)))
        assert all(before["lamport"] < after["lamport"] for before, after in pairwise(own))
        assert [row["op"] for row in own if row["op"]] == happened
