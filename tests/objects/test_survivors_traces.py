"""What hosts of objects record is judged across the loss of some of them, and what breaks the order there is found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pyarrow.dataset as ds
import pytest

import quire
from quire.live.runs.collecting import LiveSummary, collect
from quire.model.orders import Guarantee
from quire.pipeline.auditing.auditor import audit_here
from quire.pipeline.auditing.verdicts import Audit, Verdict
from quire.protocols.objects.departures import Departures
from quire.protocols.objects.exchange import Exchange
from tests.objects.faults import _always_stable
from tests.objects.test_surviving import LOST, Hosts, run

Act = Callable[[Hosts, quire.ObjectGroup], Awaitable[None]]


def record(act: Act, directory: Path, members: int = 3, lost: int = 1) -> tuple[LiveSummary, Audit]:
    """Have it happen; returns what was collected of it, and what the audit says."""
    run(act, members, lost, directory / "parts")
    collected = collect(directory / "parts", directory / "run")
    return collected, audit_here(directory / "run")


async def all_call_while_two_are_lost(hosts: Hosts, _: quire.ObjectGroup) -> None:
    """The members call objects that all have, that some have, and that call others; two are cut off on the way."""

    async def work(host: quire.ObjectGroup) -> None:
        for _ in range(12):
            for target in ("everywhere", "shared"):
                await host.invoke(target, "deposit", 1)
            await asyncio.sleep(0.1)

    working = [asyncio.create_task(work(host)) for host in hosts.groups]
    await asyncio.sleep(0.3)
    hosts.cut_off(4)
    await asyncio.sleep(0.4)
    hosts.cut_off(3)
    await asyncio.gather(*working[:3])
    for task in working[3:]:
        task.cancel()


async def the_last_call_of_a_lost_host_reaches_one(hosts: Hosts, _: quire.ObjectGroup) -> None:
    """Only when all agree about it, the other hears of it."""
    one, other, lost = hosts.groups
    hosts.part(LOST, 1)
    hosts.part(0, 1)
    lost._host.tick(1_000_000)  # Its logical time is far ahead, and no packet tells the other.
    last = asyncio.create_task(lost.invoke("board", "note", "so long"))
    await until(lambda: one.objects["board"].notes)  # type: ignore[attr-defined]
    hosts.cut_off(LOST)
    await until(lambda: all(LOST in group._node.departures.gone for group in (one, other)))
    hosts.mend(1)
    last.cancel()


async def until(happens: Callable[[], object]) -> None:
    while not happens():
        await asyncio.sleep(0.01)


def test_conflicting_calls_are_in_order_across_the_loss_of_hosts(tmp_path: Path) -> None:
    collected, audit = record(all_call_while_two_are_lost, tmp_path, members=5, lost=2)
    assert collected.crashed == (3, 4)
    assert {Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.SIGNIFICANT} == set(audit.expected)
    assert {audit.checks[each].verdict for each in audit.expected} == {Verdict.HOLDS}
    assert "left out" not in " ".join(collected.notes), "all that the lost hosts sent is recorded"


def test_hosts_that_do_not_wait_for_what_is_older_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Exchange, "is_stable", _always_stable)
    _, audit = record(all_call_while_two_are_lost, tmp_path, members=5, lost=2)
    found = audit.checks[Guarantee.SIGNIFICANT]
    assert found.verdict is Verdict.VIOLATED
    assert found.witness is not None
    assert set(found.witness.members) <= {0, 1, 2}, "only those who are left are judged"
    assert "began" in found.because


def test_what_one_host_was_told_by_a_lost_one_is_recorded_where_it_came_later(tmp_path: Path) -> None:
    _, audit = record(the_last_call_of_a_lost_host_reaches_one, tmp_path)
    assert {audit.checks[each].verdict for each in audit.expected} == {Verdict.HOLDS}
    rows = ds.dataset(tmp_path / "run", exclude_invalid_files=True).to_table(["kind", "origin", "seq", "lamport"]).to_pylist()
    sent = {(row["origin"], row["seq"]): row["lamport"] for row in rows if row["kind"] == "send"}
    delivered = [(sent[row["origin"], row["seq"]], row["lamport"]) for row in rows if row["kind"] == "deliver"]
    assert delivered
    assert all(before < after for before, after in delivered), "logical time goes with whatever tells of a message"


def test_hosts_that_do_not_tell_each_other_what_a_lost_one_sent_are_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Departures, "fence", lambda self, member, _held: self.fenced.add(member) or ())
    _, audit = record(the_last_call_of_a_lost_host_reaches_one, tmp_path)
    found = audit.checks[Guarantee.AGREEMENT]
    assert found.verdict is Verdict.VIOLATED
    assert found.witness is not None
    assert found.witness.members == (1,)
