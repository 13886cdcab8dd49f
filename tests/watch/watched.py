"""Groups in real processes, or in this one, and the page about them in a real browser."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import quire
from quire.live.runs.fleet import free_addresses
from quire.live.runs.hosts import Hosts
from tests.kit.patience import PATIENCE_S
from tests.report.browser import Browser

HOME = Path(__file__).parents[2]
QUIRE = str(Path(sys.executable).with_name("quire"))


PORTS = (7000, 9400)
"""Of members that have hosts of their own, and where these are observed."""


class Processes:
    """Members of a group, each in a process of its own, and on a host of its own, if there are `hosts`."""

    def __init__(self, hosts: Hosts | None = None, **how: str) -> None:
        names = list(how)
        places = free_addresses(2 * len(names)) if hosts is None else [f"{at}:{port}" for port in PORTS for at in hosts.ipv4]
        members = dict(zip(names, places, strict=False))
        self.observed = dict(zip(names, places[len(places) // 2 :], strict=False))
        self._started = {
            name: subprocess.Popen(
                [
                    *([] if hosts is None else hosts.on(number)),
                    *(sys.executable, "-m", "tests.watch.member", name, json.dumps(members), self.observed[name], how[name]),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=HOME,
            )
            for number, name in enumerate(names)
        }

    def __enter__(self) -> Processes:
        for process in self._started.values():
            assert process.stdout is not None
            assert process.stdout.readline() == b"in\n"
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started.values():
            process.kill()
            process.communicate()

    def kill(self, name: str) -> None:
        os.kill(self._started[name].pid, signal.SIGKILL)


class Parted:
    """Members in this process, whose network can be parted; they run in a thread of their own. `stays_out`: the one whose
    application reads and sends nothing, and which does not rejoin when the others have gone on without it."""

    def __init__(self, *names: str, stays_out: str = "") -> None:
        self._stays_out = stays_out
        self._members = {name: f"127.0.0.1:{7000 + number}" for number, name in enumerate(names)}
        self.observed = dict(zip(names, free_addresses(len(names)), strict=True))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._groups: list[quire.DynamicGroup] = []
        self._tasks: list[asyncio.Task[None]] = []

    def __enter__(self) -> Parted:
        self._thread.start()
        self.do(self._enter())
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self._leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(PATIENCE_S)

    async def _enter(self) -> None:
        self._groups = [
            quire.join(
                "board", me=name, members=self._members, order="total", transport="memory", timeout_s=0.5,
                observe=self.observed[name], rejoin=name != self._stays_out,
            )
            for name in self._members
        ]  # fmt: skip
        await asyncio.gather(*(group.__aenter__() for group in self._groups))
        for name, group in zip(self._members, self._groups, strict=True):
            if name == self._stays_out:
                continue
            self._tasks += [asyncio.create_task(self._send(group)), asyncio.create_task(self._read(group))]

    async def _leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(group.__aexit__(RuntimeError, None, None) for group in self._groups))

    async def _send(self, group: quire.DynamicGroup) -> None:
        while True:
            with suppress(quire.NoQuorum):
                await group.multicast(b"x")
            await asyncio.sleep(0.02)

    async def _read(self, group: quire.DynamicGroup) -> None:
        async for _ in group:
            pass


@contextmanager
def page_about(*what: str, browser: Browser, on: Sequence[str] = (), **look: Any) -> Iterator[Page]:
    """`quire watch` of this, and its page in the browser. `on`: what has a command run on the browser's host."""
    command = [*on, QUIRE, "watch", *what, "--no-browser"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=HOME)
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert "watching at http://" in first, first + process.stderr.read()
        page = Page(browser, first.split()[-1])
        page.open(**look)
        try:
            yield page
        finally:
            page.leave()
    finally:
        process.terminate()
        _, complaints = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, complaints


class Page:
    def __init__(self, browser: Browser, url: str) -> None:
        self.browser, self.url = browser, url

    def open(self, **look: Any) -> None:
        self.browser.open(self.url, **look)

    def leave(self) -> None:
        """So that the next page does not hear this one complain that its server is gone."""
        assert self.browser.complaints == [], self.browser.complaints
        self.browser.open("about:blank")

    def text(self, part: str) -> str:
        found: str = self.browser.run(f"document.getElementById({json.dumps(part)}).innerText")
        return found

    def cards(self) -> dict[str, str]:
        """The members' conditions."""
        script = "Object.fromEntries([...document.querySelectorAll('.card')].map((c) => [c.dataset.name, c.dataset.condition]))"
        found: dict[str, str] = self.browser.run(script)
        return found

    def state(self) -> dict[str, Any]:
        """What the page is told."""
        with urlopen(f"{self.url.rstrip('/')}/state") as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def until(self, holds: Callable[[Page], bool]) -> float:
        """Wait until the page shows this; returns for how long."""
        began = time.monotonic()
        while not holds(self):
            assert time.monotonic() < began + PATIENCE_S, (self.cards(), self.text("incidents"), self.text("verdict-body"))
            time.sleep(0.05)  # Nothing tells when a page has changed.
        return time.monotonic() - began


def judged(page: Page) -> str:
    """The verdict that the page shows; empty where there is none yet."""
    verdict: str = page.browser.run("document.querySelector('#verdict-body .banner')?.className ?? ''")
    return verdict.removeprefix("banner ")
