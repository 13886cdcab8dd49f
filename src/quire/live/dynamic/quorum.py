"""Whether a majority can be reached from here, and the events by which the application is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from quire.live import clock
from quire.live.dynamic.events import Blocked, GroupEvent, Unblocked
from quire.live.dynamic.node import Node
from quire.live.events import Event, Kind, Reporter
from quire.model.errors import NoQuorum, QuireError
from quire.views.effects import Report

AWAITED_EVERY_S = 5.0

_KINDS: dict[str, Kind] = {
    "connected": "connected",
    "disconnected": "disconnected",
    "replaced": "connected",
    "suspected": "lost",
    "trusted": "recovered",
    "refused": "disconnected",
    "stalled": "stalled",
    "recovered": "recovered",
    "gap": "gap",
}
_OF_MEMBERS = ("disconnected", "suspected", "trusted", "stalled", "recovered")
"""The reports that matter only about members of the view."""


class Quorum:
    def __init__(self, node: Node, tell: Callable[[GroupEvent], None]) -> None:
        self.is_blocked = False
        self._node = node
        self._tell = tell

    def reported(self, effect: Report, report: Reporter, *, is_member: bool) -> None:
        """Pass on a report about another process, or about the quorum. A process that is no member yet has none to lose."""
        core = self._node.process.member.core
        view, epoch = core.view, core.view.epoch
        is_over = core.mode in ("left", "closed") or core.leaving or (core.closing and effect.kind == "disconnected")
        if effect.kind in _OF_MEMBERS and (is_over or (is_member and view.rank(effect.name) is None)):
            return  # The peer has left, or its loss was already reported; or this member is leaving, or the group ends.
        if effect.kind == "disconnected" and not is_member:
            return  # Two processes may have connected to each other at the same time; then one connection, or both, end.
        if effect.kind not in ("no-quorum", "quorum"):
            peers = effect.others if effect.kind == "gap" else (effect.name,)
            report(Event(_KINDS[effect.kind], peers, effect.for_s, effect.why))
        elif effect.kind == "no-quorum" and is_member:
            self.is_blocked = True
            self._tell(Blocked(epoch, self.missing(), self.why()))
        elif self.is_blocked:
            self.is_blocked = False
            self._tell(Unblocked(epoch))

    def missing(self) -> tuple[str, ...]:
        """The members of the view that cannot be reached; before the first view, the founders that have not come."""
        process = self._node.process
        core = process.member.core
        names = [name for name in core.view.names() if name != core.me.name]
        return tuple(name for name in names if name in core.suspects or not process.is_connected(name))

    def why(self) -> str:
        """Why nothing is delivered, if no majority can be reached; otherwise empty."""
        core = self._node.process.member.core
        if not self.is_blocked:
            return ""
        return f"{', '.join(self.missing())} of view {core.view.epoch} cannot be reached, and without them there is no majority"

    def awaited(self) -> str:
        settings, addresses = self._node.settings, self._node.settings.addresses
        last = self._node.turned_down
        if not settings.founds:
            return f"no contact ({', '.join(settings.contacts)}) has admitted this member yet{f' ({last})' if last else ''}"
        missing = ", ".join(f"{name} ({addresses[name]})" if name in addresses else name for name in self.missing())
        return f"waiting for {missing}{f'; at {last}' if last else ''}" if missing else "waiting for the first view"

    async def until_member(self, is_member: asyncio.Event, failure: Callable[[], QuireError | None], report: Reporter) -> None:
        """Wait until this process is a member, and report now and then which processes it waits for. Raises the failure, if
        there is one, and NoQuorum if it takes longer than `join_s`."""
        began, join_s = clock.now(), self._node.settings.network.join_s
        while not is_member.is_set():
            pause_s = min(AWAITED_EVERY_S, began + join_s - clock.now())
            if pause_s <= 0:
                raise self._never_came(join_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await is_member.wait()
            if (error := failure()) is not None:
                raise error
            if not is_member.is_set():
                report(Event("awaited", self.missing(), clock.now() - began, self.awaited()))

    def check(self) -> None:
        """Raise NoQuorum where no majority can be reached."""
        if self.is_blocked:
            raise self._error(f"the queue is full: {self.why()}")

    def _never_came(self, join_s: float) -> NoQuorum:
        return self._error(f"this process did not become a member within join_s ({join_s:g} s): {self.awaited()}")

    def _error(self, why: str) -> NoQuorum:
        error = NoQuorum(why)
        error.silent = self.missing()
        return error
