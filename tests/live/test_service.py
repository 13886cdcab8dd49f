"""A service in processes of its own: shares are done, parts become a run with what only the service can say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from quire.live.identity import identify
from quire.live.runs.collecting import collect
from quire.live.runs.fleet import free_addresses
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Progress, Running, Standing
from quire.live.runs.taking_part import take_part_in
from quire.live.services.nodes import Host
from quire.live.services.registry import SERVICES
from quire.live.services.service import NodeRole, Service
from quire.live.settings import Settings
from quire.model.orders import Guarantee
from quire.protocols.node import Notice
from quire.trace.log import Address
from quire.trace.parts.description import RunIdentity
from quire.trace.store import read_info
from tests.live.test_nodes import MEMBERS, Answered, Curious, CuriousOptions

ROUNDS = 10
TALK = Address("talk", tuple(range(MEMBERS)))


class Asking(NodeRole):
    """Asks all members everything, and records each answer as a message of its own to itself."""

    def make_node(self) -> Curious:
        return Curious(self.settings.me, ROUNDS)

    def on_notice(self, host: Host, notice: Notice) -> None:
        answer = cast(Answered, notice)
        me = self.settings.me
        host.record_send(me, self.sent, Address(None, (me,), op=f"by-{answer.by}"), 0)
        host.record_delivery(me, self.sent, Address(None, (me,), op=f"by-{answer.by}"), 0)
        self.sent += 1
        self.delivered += 1

    async def work(self, host: Host) -> None:
        while not host.node.idle() and host.failure is None:
            await asyncio.sleep(0.01)

    def details(self) -> dict[str, object]:
        return {"answers": self.sent, "kind": "curious"}


def identify_talk(settings: Settings, load: Mapping[str, object] | None) -> RunIdentity:
    return identify(settings, frozenset({Guarantee.FIFO}), {"talk": tuple(range(MEMBERS))}, load=load)


def test_shares_are_done_and_their_parts_become_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service("curious", "asks and answers", CuriousOptions, Asking, identify_talk)
    monkeypatch.setitem(cast(dict[str, Service], SERVICES), "curious", service)
    plan = Plan(members=free_addresses(MEMBERS), protocol="curious", options={"rounds": "3"}, messages=ROUNDS, timeout_s=10)
    told: list[Progress | Standing | Running] = []

    async def main() -> None:
        shares = (take_part_in(service, plan, me, tmp_path / "parts", told.append, lambda _stop: None) for me in range(MEMBERS))
        for ended in await asyncio.gather(*shares):
            assert (ended.sent, ended.error, ended.stopped) == (ROUNDS * MEMBERS, "", False)

    asyncio.run(main())
    assert told[-1] == Progress(ROUNDS * MEMBERS, ROUNDS * MEMBERS)
    summary = collect(tmp_path / "parts", tmp_path / "run")
    assert summary.details == {"answers": ROUNDS * MEMBERS * MEMBERS, "kind": "curious"}
    assert summary.complete
    assert summary.packets["QUESTION"] >= ROUNDS * MEMBERS
    info = read_info(tmp_path / "run")
    assert info.groups == {"talk": TALK.dests}
    assert info.promises == (Guarantee.FIFO,)
    assert info.options == {"rounds": 3}
