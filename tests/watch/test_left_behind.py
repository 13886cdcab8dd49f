"""A member that the others go on without, that runs on, and that does not come back: nobody waits for it with the verdict."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from quire.http.addresses import read_http_address
from quire.watch.server import Watching
from quire.watch.sources import ObservedProcess
from tests.kit.patience import PATIENCE_S
from tests.live.dynamic.kit import cut_off, mend
from tests.watch.watched import Parted

OUT = "127.0.0.1:7002"
FAR_BEHIND_S = 60.0
"""By the members' clocks; only a verdict that somebody holds back is so late."""


async def until(holds: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() < began + PATIENCE_S
        await asyncio.sleep(0.05)  # Nothing tells when something was judged.


async def call(act: Callable[[str], None]) -> None:
    act(OUT)


async def watch(parted: Parted) -> None:
    async with Watching([ObservedProcess(read_http_address(at)) for at in parted.observed.values()]) as watching:
        findings, incidents = watching.judge.findings, watching.scene.incidents

        def answers(name: str) -> bool:
            return any(each.name == name and not each.missing for each in watching.scene.processes.values())

        def happened(text: str) -> bool:
            return any(text in each.text for each in incidents.latest(200))

        await until(lambda: findings.verdict == "holds" and findings.deliveries > 100)
        parted.do(call(cut_off))
        await until(lambda: happened("without c"))
        parted.do(call(mend))
        await until(lambda: happened("went on without it"))
        judged = findings.deliveries
        await until(lambda: findings.deliveries > judged + 1000 or findings.lag_s > FAR_BEHIND_S)
        assert findings.deliveries > judged + 1000, "it is waited for"
        assert answers("c"), "it runs on"
        assert findings.verdict == "holds"


def test_the_verdict_goes_on_without_a_member_that_stays_excluded_and_reads_nothing() -> None:
    with Parted("a", "b", "c", stays_out="c") as parted:
        asyncio.run(watch(parted))
