"""The web server of the live page, for browsers on this machine. It sends updates to every open page once a second, and news at
once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec

from quire.http.addresses import HttpAddress
from quire.http.guard import Refusal
from quire.http.server import Answer, Request, Server
from quire.watch.diagram import diagram
from quire.watch.page import watch_page
from quire.watch.scene import Scene
from quire.watch.snapshot import history, snapshot
from quire.watch.sources import Source
from quire.watch.verdict import LiveJudge

PAGE_S = 1.0
"""The least time between two updates of a page if nothing notable happens; it is longer where processes are looked at less
often."""
LEAST_S = 0.1
"""The least time between two updates, so that many news cost no more than few."""


class Watching:
    """Follows the sources. Use it in `async with`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self.judge = LiveJudge()
        self.scene = Scene(self.judge)
        self.judge.expects = self.scene.expects
        self._following: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Watching:
        loop = asyncio.get_running_loop()

        def violated(name: str, because: str) -> None:
            loop.call_soon_threadsafe(self._violated, name, because)

        self.judge.on_violation = violated
        self.judge.__enter__()
        self._following = [asyncio.create_task(source.follow(self.scene)) for source in self._sources]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        self.judge.__exit__()

    def _violated(self, name: str, because: str) -> None:
        self.scene.incidents.broken(name, time.time_ns(), because)
        self.scene.note()

    def is_new(self) -> bool:
        """Whether something that answers has not been heard from twice, or not been judged."""
        processes = self.scene.processes.values()
        return (
            not processes
            or self.scene.expects()
            or any(not each.missing and each.series["delivered"].last is None for each in processes)
            or (any(each.process is not None for each in processes) and not self.judge.has_judged)
        )

    def snapshot(self) -> dict[str, object]:
        return snapshot(self.scene, self.judge.findings)


class Made:
    """A value for pages, encoded once for all of them."""

    def __init__(self, scene: Scene, make: Callable[[], object]) -> None:
        self._scene, self._make = scene, make
        self._at, self._news, self._made = 0.0, 0, b""

    def latest(self) -> bytes:
        """The value, made anew where it is as old as two updates are apart, or older than the last news."""
        now = asyncio.get_running_loop().time()
        if not self._made or now - self._at >= PAGE_S * 0.9 or self._news != self._scene.news:
            self._at, self._news, self._made = now, self._scene.news, msgspec.json.encode(self._make())
        return self._made


class PageServer:
    """Serves the live page and its updates."""

    def __init__(self, watching: Watching, address: HttpAddress) -> None:
        self._watching = watching
        self._page = watch_page().encode()
        self._server = Server(address, self._answer)
        self._state = Made(watching.scene, watching.snapshot)
        self._diagram = Made(watching.scene, lambda: diagram(watching.scene))

    async def serve(self, ready: Callable[[HttpAddress], None]) -> None:
        """Serve until cancelled; calls `ready` once with the address. Raises BadInput if the address cannot be bound."""
        await self._server.start()
        ready(self._server.address)
        try:
            await asyncio.Event().wait()
        finally:
            await self._server.stop()

    async def _answer(self, request: Request) -> Answer:
        match request.path:
            case "/":
                return Answer(self._page, "text/html; charset=utf-8")
            case "/now":
                return Answer(self._now(), "text/event-stream")
            case "/state":
                return Answer(self._state.latest(), "application/json")
            case "/diagram":
                return Answer(self._diagram.latest(), "application/json")
            case "/history":
                return Answer(msgspec.json.encode(history(self._watching.scene)), "application/json")
            case _:
                raise Refusal(404, "there is one page: /")

    async def _now(self) -> AsyncGenerator[bytes, None]:
        scene = self._watching.scene
        while True:
            news = scene.news
            yield b"data: " + self._state.latest() + b"\n\n"
            await asyncio.sleep(LEAST_S)
            pace_s = max((each.pace_s for each in scene.processes.values()), default=0.0)
            await scene.wait_for_news(news, max(PAGE_S, pace_s) - LEAST_S)
