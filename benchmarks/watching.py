"""What being watched costs: the throughput of a group, observed and with a page open, beside one that is not.

Rounds take turns, so that all see the same machine; the ratio is of the medians. The page is in Chromium, if that is on the
PATH, once as it opens and once with the space-time diagram in sight, which moves; otherwise somebody reads what a page would be
sent.

    python -m benchmarks.watching [--seconds 3] [--rounds 5] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median

import msgspec
from tests.report.browser import Browser, find_browser

from benchmarks.tables import show
from quire.bench.assignment import Assignment
from quire.bench.measure import check
from quire.bench.processes import Processes
from quire.http.addresses import read_http_address
from quire.http.client import Client
from quire.live.runs.fleet import free_addresses
from quire.model.errors import QuireError

CONTENDER = "quire runs"
MEMBERS = 3
TARGET = 0.95
PLAIN, OPENED, DIAGRAM = "not watched", "observed, with a page open", "observed, with the diagram in sight"
_KEEP_THE_DIAGRAM_IN_SIGHT = """
  void setInterval(() => {
    const diagram = document.getElementById("diagram"), { top, bottom } = diagram.getBoundingClientRect();
    if (top < 0 || bottom > innerHeight) diagram.scrollIntoView({ behavior: "instant", block: "center" });
  }, 250)
"""
"""It is hidden until there is something to draw. A page that scrolls smoothly would draw itself sixty times a second."""


async def move_load(seconds: float, observe: tuple[str, ...]) -> tuple[float, float]:
    """Deliveries a second of each member, and what a second of the members' processors delivered. The second does not depend on
    what else the machine does, the page included."""
    addresses = tuple(free_addresses(MEMBERS))
    each = Assignment(contender=CONTENDER, me=0, members=MEMBERS, addresses=addresses, seconds=seconds, observe=observe)
    assignments = [msgspec.structs.replace(each, me=me) for me in range(MEMBERS)]
    reports = await Processes(assignments, seconds).run()
    check(CONTENDER, reports)
    delivered = reports[0].delivered
    return delivered / max(report.elapsed_s for report in reports), delivered / sum(report.cpu_s for report in reports)


@asynccontextmanager
async def page_open(observe: tuple[str, ...], *, diagram: bool) -> AsyncIterator[None]:
    """`quire watch` of these, and a page of it; `diagram`: whether that is in sight."""
    program = str(Path(sys.executable).with_name("quire"))
    watch = subprocess.Popen([program, "watch", *observe, "--no-browser"], stderr=subprocess.PIPE, text=True)
    assert watch.stderr is not None
    url = (await asyncio.to_thread(watch.stderr.readline)).split()[-1]
    browser = Browser() if find_browser() else None
    reading = None
    if browser is not None:
        await asyncio.to_thread(browser.open, url)
        if diagram:
            await asyncio.to_thread(browser.run, _KEEP_THE_DIAGRAM_IN_SIGHT)
    else:
        reading = asyncio.create_task(read(Client(read_http_address(url))))
    try:
        yield
    finally:
        if browser is not None:
            browser.__exit__(None, None, None)
        if reading is not None:
            reading.cancel()
        watch.terminate()
        watch.communicate()


async def read(client: Client) -> None:
    with suppress(QuireError):
        async for _ in client.stream("/now"):
            pass


async def one_round(name: str, seconds: float) -> tuple[float, float]:
    if name == PLAIN:
        return await move_load(seconds, ())
    observe = tuple(free_addresses(MEMBERS))
    async with page_open(observe, diagram=name == DIAGRAM):
        return await move_load(seconds, observe)


async def main(seconds: float, rounds: int) -> list[dict[str, object]]:
    measured: dict[str, list[tuple[float, float]]] = {PLAIN: [], OPENED: [], DIAGRAM: []}
    for turn in range(rounds):
        for name in (*measured,) if turn % 2 == 0 else (*measured,)[::-1]:
            measured[name].append(await one_round(name, seconds))
    return [
        {
            "what": f"{name}, a second of {of}",
            "deliveries": median(each),
            "ratio": median(each) / median(base),
            "target": TARGET,
        }
        for of, at in (("the clock", 0), ("the members' processors", 1))
        for base in ([one[at] for one in measured[PLAIN]],)
        for name, each in ((name, [one[at] for one in every]) for name, every in measured.items())
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    show(
        asyncio.run(main(given.seconds, given.rounds)),
        [f"{MEMBERS} members, 64 B, {given.rounds} rounds of {given.seconds:g} s", ""],
        lambda row: f"{row['what']:<71} {row['deliveries']:>12,.0f} deliveries   {row['ratio']:.2f}",
        as_json=given.json,
    )
