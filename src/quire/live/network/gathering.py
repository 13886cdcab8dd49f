"""The start of a fixed group: waits until all members are there, reports those that are missing, or gives up.

Members may be started by hand, on several hosts, so there is much time for it. Every few seconds a waiting member reports which
ones it waits for; it gives up as soon as it is certain that another member has settings that do not fit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from quire.live import clock
from quire.live.errors import MemberUnreachable
from quire.live.events import Event, Reporter
from quire.live.network.connection import Connection
from quire.live.network.peers import Peer
from quire.live.network.verdicts import Verdict
from quire.live.settings import Settings
from quire.model.errors import BadInput, QuireError

REMIND_S = 5.0
"""How often the missing members are reported."""
STAY_S = 1.0
"""How long a member that knows that the group cannot start stays, to tell those that are connecting."""


class Gathering:
    """One member's wait for its peers."""

    def __init__(self, settings: Settings, peers: Mapping[int, Peer], report: Reporter) -> None:
        self._settings = settings
        self._join_s = settings.join_s
        self._peers = peers
        self._report = report
        self.obstacle: QuireError | None = None
        """Why the group can never start."""
        self.verdict: Verdict | None = None
        """The same as a message to the others, if this member has found it out."""
        self.returns = False
        """Whether an earlier process of this member has taken part."""
        self._know: set[int] = set()
        self._over = asyncio.Event()
        self._news = asyncio.Event()

    def somebody_came(self) -> None:
        missing, enough = len(self._missing()), self._settings.enough
        if not missing or 0 < enough <= len(self._peers) - missing:
            self._over.set()

    def was_here_before(self) -> None:
        """The group started earlier, with an earlier process of this member: there is no need to wait for the others."""
        self.returns = True
        self._over.set()

    def cannot_be(self, error: QuireError) -> None:
        """The group can never start; the first reason counts."""
        self.obstacle = self.obstacle or error
        self._over.set()

    def knows(self, member: int) -> None:
        """A peer knows why the group cannot start."""
        self._know.add(member)
        self._news.set()

    async def until_all_know(self) -> None:
        """Stay a moment for members that are just connecting, which would otherwise wait for a group that will never start."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STAY_S):
                while not self._peers.keys() <= self._know:
                    self._news.clear()
                    await self._news.wait()

    def turned_away(self, connection: Connection, reason: str) -> None:
        """A connection ended before the peer was admitted: that may be why a member is missing and, where a mismatch is
        certain, means that the group can never start."""
        if connection.nameless:
            # It may be any of those that are to connect to this member.
            claimed = [peer for peer in self._missing() if peer.member > self._settings.me]
            claim = f"a connection from {connection.address} was refused: "
        else:
            claimed = [peer for peer in self._missing() if peer.member == connection.claimed]
            claim = f"a process at {connection.address} that claims to be this member was refused: "
        for peer in claimed:
            peer.why_down = reason if connection.initiator else claim + reason
            if connection.mismatch:
                self.verdict = self.verdict or Verdict("mismatch", peer.member, reason)
                self.knows(peer.member)
                self.cannot_be(BadInput(f"member {peer.member} ({peer.address}): {reason}"))

    async def wait(self) -> None:
        """Return when all members are there. Raises MemberUnreachable if that takes too long, or why the group cannot start."""
        began = clock.now()
        until = began + self._join_s
        self.somebody_came()
        while not self._over.is_set():
            if (now := clock.now()) >= until:
                raise self._too_late(now - began)
            try:
                async with asyncio.timeout_at(min(now + REMIND_S, until)):
                    await self._over.wait()
            except TimeoutError:
                self._remind(clock.now() - began)
        if self.obstacle is not None:
            raise self.obstacle

    def _remind(self, waited_s: float) -> None:
        missing = self._missing()
        if missing and waited_s < self._join_s:
            self._report(Event("awaited", tuple(peer.member for peer in missing), waited_s, missing[0].why_down))

    def _missing(self) -> list[Peer]:
        return [peer for peer in self._peers.values() if peer.connection is None]

    def _too_late(self, waited_s: float) -> MemberUnreachable:
        first, *others = self._missing()
        too = "".join(f"; member {peer.member} ({peer.address}) is missing too" for peer in others)
        why = f"{first.why_down}{too}; all members must join within join_s ({self._join_s:g} s)"
        return MemberUnreachable(first.member, first.address, waited_s, why)
