"""Whose silence counts, second by second: of a peer that says nothing, and not of one that was not listened to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from quire.live import clock
from quire.live.errors import GroupFailed
from quire.live.events import Event, Reporter
from quire.live.network.connection import Connection
from quire.live.network.liveness import Liveness
from quire.live.network.peers import Peer
from tests.kit.virtual_time import VirtualTimeLoop, run_in_virtual_time

TIMEOUT_S = 10.0
LOOK_S = 1.0
"""How often a member looks who is silent."""


class Open:
    """A connection over which nothing comes."""

    paused = False

    def is_paused(self) -> bool:
        return self.paused

    def tell(self, received: int) -> None: ...
    def say_alive(self, *, unread: bool) -> None: ...
    def close(self, reason: str, *, at_once: bool = False) -> None: ...


class Watched:
    """A member with one peer, which is silent from the beginning."""

    def __init__(self) -> None:
        self.peer = Peer(1, "", clock.now())
        self.connection = Open()
        self.peer.connection = cast(Connection, self.connection)
        self.errors: list[GroupFailed] = []
        self.events: list[Event] = []
        report = Reporter("g", 0)
        report.listener = self.events.append
        self.liveness = Liveness(TIMEOUT_S, [self.peer], report, self)
        self.liveness.started = True

    def failed(self, error: GroupFailed) -> None:
        self.errors.append(error)

    def time_passed(self) -> None: ...

    def lost(self) -> bool:
        return bool(self.errors)


def watch(act: Callable[[Watched], Awaitable[None]]) -> None:
    async def main() -> None:
        watched = Watched()
        keeping = asyncio.create_task(watched.liveness.keep())
        await act(watched)
        keeping.cancel()

    run_in_virtual_time(main())


def test_who_says_nothing_for_longer_than_the_timeout_is_lost_once() -> None:
    async def act(watched: Watched) -> None:
        await asyncio.sleep(TIMEOUT_S)
        assert not watched.lost()
        await asyncio.sleep(2 * LOOK_S)
        assert watched.lost()
        await asyncio.sleep(TIMEOUT_S)
        assert len(watched.errors) == 1
        assert [event.kind for event in watched.events] == ["lost"]

    watch(act)


def test_time_in_which_this_process_did_not_run_is_nobodys_silence() -> None:
    async def act(watched: Watched) -> None:
        await asyncio.sleep(5 * LOOK_S)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.let_pass(6 * TIMEOUT_S)
        await asyncio.sleep(2 * LOOK_S)
        assert not watched.lost(), "it had five seconds of its ten"
        await asyncio.sleep(5 * LOOK_S)
        assert watched.lost()

    watch(act)


def test_who_is_not_listened_to_is_not_silent() -> None:
    async def act(watched: Watched) -> None:
        watched.connection.paused = True
        await asyncio.sleep(3 * TIMEOUT_S)
        assert not watched.lost()
        watched.connection.paused = False
        await asyncio.sleep(TIMEOUT_S + 2 * LOOK_S)
        assert watched.lost()

    watch(act)
