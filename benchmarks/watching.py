"""What being watched costs: the throughput of a group, observed and with a page open, beside one that is not.

Variants take turns within each round, so that all see the same machine; a ratio compares two measurements of the same round,
and the median over the rounds is reported. The page is in Chromium, if that is on the PATH, once as it opens and once with the
space-time diagram in sight, which moves; otherwise somebody reads what a page would be sent. `quire watch` and the browser run
on the same processors as the members, so what they take is shown, too.

    python -m benchmarks.watching [--seconds 3] [--rounds 5] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from time import monotonic
from typing import NamedTuple

import msgspec
from tests.report.browser import Browser, find_browser

from benchmarks.tables import Row, show
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
PLAIN, OBSERVED = "not watched", "observed, without a page"
OPENED, DIAGRAM = "observed, with a page open", "observed, with the diagram in sight"
_KEEP_THE_DIAGRAM_IN_SIGHT = """
  void setInterval(() => {
    const diagram = document.getElementById("diagram"), { top, bottom } = diagram.getBoundingClientRect();
    if (top < 0 || bottom > innerHeight) diagram.scrollIntoView({ behavior: "instant", block: "center" });
  }, 250)
"""
"""It is hidden until there is something to draw. A page that scrolls smoothly would draw itself sixty times a second."""
IDLE = 0.05
"""Of one processor."""
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """What one variant did in one round. Shares are of all processors of the machine."""

    deliveries_per_s: float
    """Of each member."""
    deliveries_per_cpu_s: float
    """By a second of the members' processors, which does not depend on what else the machine does."""
    watch: float = 0.0
    browser: float = 0.0


async def move_load(seconds: float, observe: tuple[str, ...]) -> Cost:
    addresses = tuple(free_addresses(MEMBERS))
    each = Assignment(contender=CONTENDER, me=0, members=MEMBERS, addresses=addresses, seconds=seconds, observe=observe)
    assignments = [msgspec.structs.replace(each, me=me) for me in range(MEMBERS)]
    reports = await Processes(assignments, seconds).run()
    check(CONTENDER, reports)
    delivered = reports[0].delivered
    return Cost(delivered / max(report.elapsed_s for report in reports), delivered / sum(report.cpu_s for report in reports))


@asynccontextmanager
async def page_open(observe: tuple[str, ...], *, diagram: bool) -> AsyncIterator[Callable[[], tuple[float, float]]]:
    """`quire watch` of these, and a page of it; `diagram`: whether that is in sight. Tells how much processor time the two have
    taken, once they are ready."""
    program = str(Path(sys.executable).with_name("quire"))
    watch = subprocess.Popen([program, "watch", *observe, "--no-browser"], stderr=subprocess.PIPE, text=True)
    assert watch.stderr is not None
    url = (await asyncio.to_thread(watch.stderr.readline)).split()[-1]
    browser = Browser() if find_browser() else None
    client, reading = Client(read_http_address(url)), None
    if browser is not None:
        await asyncio.to_thread(browser.open, url)
        if diagram:
            await asyncio.to_thread(browser.run, _KEEP_THE_DIAGRAM_IN_SIGHT)
    else:
        reading = asyncio.create_task(read(client))
    try:
        while "kernels" in json.loads(await client.get("/state"))["verdict"]["why"]:
            await asyncio.sleep(0.1)

        def spent() -> tuple[float, float]:
            return cpu_s(watch.pid), 0.0 if browser is None else cpu_s(browser.pid)

        await settled(spent)
        yield spent
    finally:
        client.close()
        if browser is not None:
            browser.__exit__(None, None, None)
        if reading is not None:
            reading.cancel()
        watch.terminate()
        watch.communicate()


async def settled(spent: Callable[[], tuple[float, float]]) -> None:
    """Return when they are idle: a browser that has just started is busy with itself for some seconds."""
    now_s, before_s = sum(spent()), -math.inf
    while now_s - before_s > IDLE:
        await asyncio.sleep(1.0)
        now_s, before_s = sum(spent()), now_s


def cpu_s(process: int) -> float:
    """The processor time of a process and of those that it has started; of none where the system does not tell."""
    home = Path(f"/proc/{process}")
    try:
        own = (home / "stat").read_text().rpartition(")")[2].split()
        started = [int(child) for task in (home / "task").iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return 0.0
    return (int(own[11]) + int(own[12])) / _TICKS_A_SECOND + sum(map(cpu_s, started))


async def read(client: Client) -> None:
    with suppress(QuireError):
        async for _ in client.stream("/now"):
            pass


async def one_round(name: str, seconds: float) -> Cost:
    if name == PLAIN:
        return await move_load(seconds, ())
    observe = tuple(free_addresses(MEMBERS))
    if name == OBSERVED:
        return await move_load(seconds, observe)
    async with page_open(observe, diagram=name == DIAGRAM) as spent:
        began, before = monotonic(), spent()
        cost = await move_load(seconds, observe)
        machine_s = (monotonic() - began) * (os.cpu_count() or 1)
        watch, browser = ((late - early) / machine_s for late, early in zip(spent(), before, strict=True))
        return cost._replace(watch=watch, browser=browser)


async def main(seconds: float, rounds: int) -> list[Row]:
    measured: dict[str, list[Cost]] = {name: [] for name in (PLAIN, OBSERVED, OPENED, DIAGRAM)}
    for turn in range(rounds):
        for name in (*measured,) if turn % 2 == 0 else (*measured,)[::-1]:
            measured[name].append(await one_round(name, seconds))

    def ratio(costs: list[Cost], figure: Callable[[Cost], float]) -> float:
        return median(figure(mine) / figure(plain) for mine, plain in zip(costs, measured[PLAIN], strict=True))

    return [
        {
            "what": name,
            "deliveries_per_s": median(each.deliveries_per_s for each in costs),
            "ratio": ratio(costs, lambda each: each.deliveries_per_s),
            "ratio_of_their_processors": ratio(costs, lambda each: each.deliveries_per_cpu_s),
            "watch": median(each.watch for each in costs),
            "browser": median(each.browser for each in costs),
            "target": TARGET,
        }
        for name, costs in measured.items()
    ]


def line(row: Row) -> str:
    return (
        f"{row['what']:<36} {row['deliveries_per_s']:>12,.0f}  {row['ratio']:>6.3f}  {row['ratio_of_their_processors']:>14.3f}"
        f"  {row['watch']:>11.1%}  {row['browser']:>7.1%}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    heading = f"{'':<36} {'deliveries/s':>12}  {'ratio':>6}  {'of a processor':>14}  {'quire watch':>11}  {'browser':>7}"
    show(
        asyncio.run(main(given.seconds, given.rounds)),
        [f"{MEMBERS} members, 64 B, {given.rounds} rounds of {given.seconds:g} s", "", heading],
        line,
        as_json=given.json,
    )
