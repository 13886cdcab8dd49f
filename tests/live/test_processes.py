"""Every protocol in real processes: what each promises holds in the trace of a live group."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from quire.live.runs.collecting import LiveSummary, collect
from quire.live.runs.fleet import Fleet, FleetFailed, free_addresses
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Progress, Standing
from quire.model.errors import BadInput
from quire.pipeline import Verdict
from quire.pipeline.auditing.auditor import audit_here
from quire.protocols.registry import PROTOCOLS
from quire.trace.statistics import MULTICASTS
from tests.kit.patience import PATIENCE_S
from tests.kit.variants import Variant

VARIANTS = [
    *(Variant(protocol, {}) for protocol in PROTOCOLS),
    Variant("single-phase", {"acks": "basic", "ids": "rotating"}),
    Variant("single-phase", {"acks": "point-to-point", "batches": "run-length", "lookahead": 3}),
]
ENDLESS = 1_000_000_000


def run_fleet(plan: Plan, directory: Path) -> LiveSummary:
    parts = directory / "parts"
    parts.mkdir()
    asyncio.run(asyncio.wait_for(Fleet(plan, range(len(plan.members)), parts).run(), PATIENCE_S))
    return collect(parts, directory / "run")


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_what_a_protocol_promises_holds_among_processes(tmp_path: Path, variant: Variant) -> None:
    plan = Plan(
        members=free_addresses(3), protocol=variant.protocol, options=dict(variant.options), messages=1000, rate=2500, size=16
    )

    summary = run_fleet(plan, tmp_path)
    judged = audit_here(tmp_path / "run")

    assert judged.verdict is Verdict.HOLDS, judged.checks
    assert set(judged.expected) >= variant.promises
    assert ("virtual-synchrony" in judged.expected) == plan.is_dynamic()
    assert (summary.messages, summary.deliveries, summary.complete) == (3000, 9000, True)
    assert summary.packets[MULTICASTS] > 30, "messages that came one by one must not all have left together"


def test_a_flood_of_messages_arrives_in_one_order(tmp_path: Path) -> None:
    plan = Plan(members=free_addresses(3), order="total", messages=100_000, size=64, senders=(0, 2))

    summary = run_fleet(plan, tmp_path)

    assert audit_here(tmp_path / "run").verdict is Verdict.HOLDS
    assert (summary.messages, summary.deliveries) == (200_000, 600_000)
    assert summary.packets[MULTICASTS] < 2000, "under load messages must travel in runs"


class Interruption(Fleet):
    """A fleet that is disturbed as soon as every member has delivered something."""

    def __init__(self, plan: Plan, parts: Path) -> None:
        super().__init__(plan, range(len(plan.members)), parts)
        self.watch = self._note
        self.under_way = asyncio.Event()
        self._silent = set(range(len(plan.members)))

    def _note(self, member: int, progress: Progress | Standing) -> None:
        if progress.delivered:
            self._silent.discard(member)
        if not self._silent:
            self.under_way.set()

    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def is_gone(self) -> bool:
        return all(not _exists(pid) for pid in self.pids())


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_death_of_a_process_is_noticed_by_all_others_and_said_in_one_sentence(tmp_path: Path) -> None:
    plan = Plan(members=free_addresses(3), protocol="two-phase", messages=ENDLESS, rate=1000, timeout_s=2.0)

    async def main() -> None:
        fleet = Interruption(plan, tmp_path)
        running = asyncio.create_task(fleet.run())
        await asyncio.wait_for(fleet.under_way.wait(), PATIENCE_S)
        fleet._processes[1].kill()
        with pytest.raises(FleetFailed, match=r"^member 1 was lost: its process was ended by SIGKILL; .*0 and 2 noticed"):
            await asyncio.wait_for(running, PATIENCE_S)
        for survivor in (0, 2):
            assert f"member 1 ({plan.members[1]}) has been unreachable" in fleet.ended[survivor].error
            assert "may not be delivered everywhere" in fleet.ended[survivor].error
        assert fleet.is_gone()

    asyncio.run(main())


def test_a_run_ends_without_a_member_that_is_stopped_for_good_where_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.live.runs.fleet.DRAIN_S", 1.0)
    options: dict[str, object] = {"clients": 1, "replication": "majority"}
    plan = Plan(members=free_addresses(4), protocol="transactions", options=options, messages=20, rate=10, timeout_s=3.0)

    async def main() -> None:
        fleet, under_way = Interruption(plan, tmp_path), asyncio.Event()
        fleet.watch = lambda _, progress: under_way.set() if progress.sent else None
        running = asyncio.create_task(fleet.run())
        await asyncio.wait_for(under_way.wait(), PATIENCE_S)
        fleet._processes[1].send_signal(signal.SIGSTOP)
        with pytest.raises(FleetFailed, match=r"^member 1 was lost: it did not end when the others had$"):
            await asyncio.wait_for(running, PATIENCE_S)
        assert sorted(fleet.ended) == [0, 2, 3]
        assert fleet.is_gone()

    asyncio.run(main())


def test_a_group_goes_on_without_a_process_that_is_killed(tmp_path: Path) -> None:
    plan = Plan(members=free_addresses(3), protocol="single-phase", messages=1500, rate=500)

    async def main() -> Fleet:
        fleet = Interruption(plan, tmp_path)
        running = asyncio.create_task(fleet.run())
        await asyncio.wait_for(fleet.under_way.wait(), PATIENCE_S)
        fleet._processes[1].kill()
        await asyncio.wait_for(running, PATIENCE_S)
        assert fleet.is_gone()
        return fleet

    fleet = asyncio.run(main())
    assert fleet.lost == {1: "its process was ended by SIGKILL"}
    assert {member: (end.sent, end.error) for member, end in fleet.ended.items()} == {0: (1500, ""), 2: (1500, "")}
    assert fleet.ended[0].delivered == fleet.ended[2].delivered >= 3000
    assert [each.process for each in fleet.observed] == [1]


@pytest.mark.parametrize("protocol", ["single-phase", "two-phase"])
def test_members_that_are_told_to_stop_deliver_everything_first(tmp_path: Path, protocol: str) -> None:
    plan = Plan(members=free_addresses(3), protocol=protocol, messages=ENDLESS, timeout_s=10.0)

    async def main() -> Fleet:
        fleet = Interruption(plan, tmp_path)
        running = asyncio.create_task(fleet.run())
        await asyncio.wait_for(fleet.under_way.wait(), PATIENCE_S)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, PATIENCE_S)
        assert fleet.is_gone()
        return fleet

    ended = asyncio.run(main()).ended
    assert {member: (end.stopped, end.error) for member, end in ended.items()} == dict.fromkeys(range(3), (True, ""))
    assert {end.delivered for end in ended.values()} == {sum(end.sent for end in ended.values())}


def test_members_end_by_themselves_when_whoever_started_them_is_gone(tmp_path: Path) -> None:
    plan = Plan(members=free_addresses(2), protocol="single-phase", messages=ENDLESS, rate=1000, timeout_s=5.0)

    async def main() -> None:
        fleet = Interruption(plan, tmp_path)
        running = asyncio.create_task(fleet.run())
        await asyncio.wait_for(fleet.under_way.wait(), PATIENCE_S)
        for process in fleet._processes.values():
            assert process.stdin is not None
            process.stdin.close()
        await asyncio.wait_for(running, PATIENCE_S)
        assert {member: (end.stopped, end.error) for member, end in fleet.ended.items()} == {0: (True, ""), 1: (True, "")}

    asyncio.run(main())


def test_a_member_that_cannot_listen_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    address = free_addresses(1)[0]
    host, _, port = address.partition(":")

    async def main() -> None:
        server = await asyncio.start_server(lambda *_: None, host, int(port))
        async with server:
            plan = Plan(members=(address,), protocol="fifo", messages=1)
            with pytest.raises(BadInput, match=f"member 0 cannot listen at {address}"):
                await asyncio.wait_for(Fleet(plan, [0], tmp_path).run(), PATIENCE_S)

    asyncio.run(main())
