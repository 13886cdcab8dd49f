"""Reports, once each, that the application has taken nothing for long, and that it does again."""

from __future__ import annotations

import asyncio

from quire.live.dynamic.deliveries import Waiting
from quire.live.dynamic.node import Node
from quire.live.events import Reporter
from quire.live.inbox import Inbox


class Unread:
    def __init__(self, inbox: Inbox[Waiting], node: Node, report: Reporter) -> None:
        self._inbox, self._node, self._report = inbox, node, report
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """The member has stopped reading, because the application has not taken what was delivered."""
        if self._timer is None:
            patience_s = self._node.settings.network.timeout_s / 4
            self._timer = asyncio.get_running_loop().call_later(patience_s, self._look, patience_s)

    def _look(self, patience_s: float) -> None:
        self._timer = None
        if (news := self._inbox.news(self._node.settings.me, patience_s)) is not None:
            self._report(news)
        if self._node.paused:
            self.watch()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
