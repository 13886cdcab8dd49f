"""How far every member of a fixed group is known to have delivered: exchanged at intervals, and again when the group fails.

A member that learns of a failure does not know what the others have delivered meanwhile. So it stops delivering, tells them how
far it has delivered, and waits a moment for their final reports, which they send as soon as they learn of the failure. Then
its knowledge of them is exact; where a report is lost, it has their previous one, which is less but still true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from quire.live.common import Common
from quire.live.errors import GroupFailed, MemberUnreachable, PeerMisbehaved
from quire.live.network.failure_notices import FailureNotices
from quire.live.network.peers import Peer
from quire.wire.frames import DELIVERED, control_frame, counts_body

LAST_WORDS_S = 0.25
"""How long to wait for the others' final reports, before the application is told that the group has failed."""


class Agreement:
    """One member's part in it. `through`: for each member, the number after that of its last message delivered here; it is
    updated by its owner."""

    def __init__(self, me: int, through: Sequence[int], peers: Mapping[int, Peer], failure_notices: FailureNotices) -> None:
        self._me = me
        self._through = through
        self._peers = peers
        self._failure_notices = failure_notices
        self._awaited: set[int] = set()
        self._then: Callable[[], None] | None = None
        self._error = GroupFailed()
        self._timer: asyncio.TimerHandle | None = None

    def tell(self) -> None:
        """Tell each peer how far this member has delivered, unless it knows."""
        through = tuple(self._through)
        body = counts_body(through)
        for peer in self._peers.values():
            if peer.connection is not None and peer.sent_delivered != (peer.connection, through):
                peer.sent_delivered = (peer.connection, through)
                peer.connection.write(control_frame(DELIVERED, body))

    def end(self, error: GroupFailed, then: Callable[[], None]) -> None:
        """The group has failed, and nothing more is delivered here: set the error's `common`, then call `then`, once it is
        known."""
        self._error, self._then = error, then
        self.tell()
        self._failure_notices.has_failed(error)
        lost = _lost(error)
        self._awaited = {member for member, peer in self._peers.items() if peer.connection is not None and member != lost}
        self._timer = asyncio.get_running_loop().call_later(LAST_WORDS_S, self._finish)
        self._error.common = self.common(lost)

    def peer_gave_up(self, by: int) -> None:
        """A peer has given up on the group, after its final report."""
        self._awaited.discard(by)
        if not self._awaited:
            self._finish()

    def common(self, lost: int | None) -> Common:
        """What is known to be delivered at all members except the lost one."""
        survivors = tuple(member for member in range(len(self._through)) if member != lost)
        nothing = (0,) * len(self._through)
        known = [self._through if one == self._me else self._delivered_at(one) or nothing for one in survivors]
        return Common(survivors, tuple(map(min, zip(*known, strict=True))))

    def _delivered_at(self, member: int) -> Sequence[int]:
        return self._peers[member].delivered if member in self._peers else ()

    def _finish(self) -> None:
        if self._then is None:
            return
        then, self._then = self._then, None
        if self._timer is not None:
            self._timer.cancel()
        self._error.common = self.common(_lost(self._error))
        then()


def _lost(error: GroupFailed) -> int | None:
    return error.member if isinstance(error, MemberUnreachable | PeerMisbehaved) else None
