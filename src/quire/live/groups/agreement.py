"""What every member is known to have delivered: members tell each other now and then, and once more when their group fails.

A member that is told of a loss does not know what the others have delivered meanwhile. So it stops delivering, tells them how
far it came, and waits a moment for their last words, which they send as soon as they are told. Then what it knows of them is
exact; and where a word is lost, it is what they said before, which is less and still true.
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
"""How long the others may take to say how far they came, before the application is told that the group has failed."""


class Agreement:
    """`through`: of each member, the number after that of its last message that was delivered here; it goes on changing."""

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
        """Tell each peer what was delivered here, if it does not know."""
        through = tuple(self._through)
        body = counts_body(through)
        for peer in self._peers.values():
            if peer.connection is not None and peer.sent_delivered != (peer.connection, through):
                peer.sent_delivered = (peer.connection, through)
                peer.connection.write(control_frame(DELIVERED, body))

    def end(self, error: GroupFailed, then: Callable[[], None]) -> None:
        """The group has failed, and nothing more is delivered here: set what is common, and call `then` when that is known."""
        self._error, self._then = error, then
        self.tell()
        self._failure_notices.has_failed(error)
        lost = _lost(error)
        self._awaited = {member for member, peer in self._peers.items() if peer.connection is not None and member != lost}
        self._timer = asyncio.get_running_loop().call_later(LAST_WORDS_S, self._finish)
        self._error.common = self.common(lost)

    def peer_gave_up(self, by: int) -> None:
        """A peer has given the group up, after it has said how far it came."""
        self._awaited.discard(by)
        if not self._awaited:
            self._finish()

    def common(self, lost: int | None) -> Common:
        """What is known to be delivered at all but the one that was lost."""
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
