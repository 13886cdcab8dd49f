"""The one timer of a member: signs of life, acknowledgements, silence, stalls.

A member that is silent for half of the timeout is connected to anew, because the other end may be gone without a word;
one that is silent for longer than all of it counts as lost. A link on which nothing is acknowledged is reported.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Protocol as Interface

from quire.live.errors import GroupFailed, MemberUnreachable
from quire.live.events import Event, Reporter
from quire.live.network.peers import Peer


class Owner(Interface):
    def failed(self, error: GroupFailed) -> None: ...
    def time_passed(self) -> None: ...


class Vigil:
    def __init__(self, timeout_s: float, peers: Collection[Peer], report: Reporter, owner: Owner) -> None:
        self.started = False
        """Whether all members have been there, so that from now on their silence counts."""
        self._timeout_s = timeout_s
        self._peers = peers
        self._report = report
        self._owner = owner

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._timeout_s / 5))
            now = time.monotonic()
            self.tell_all()
            for peer in self._peers:
                self._watch_silence(peer, now)
                self._watch_stall(peer, now)
            self._owner.time_passed()

    def tell_all(self) -> None:
        """Tell each peer what has arrived or, where it knows, that this member is alive."""
        for peer in self._peers:
            if peer.connection is None:
                continue
            if peer.incoming.unacknowledged():
                peer.incoming.told()
                peer.connection.tell(peer.incoming.received)
            else:
                peer.connection.say_alive()

    def _watch_silence(self, peer: Peer, now: float) -> None:
        if peer.connection is not None and peer.connection.is_paused():
            # We do not listen, so its silence means nothing.
            peer.heard_at = now
        silent_s = now - peer.heard_at
        if silent_s > self._timeout_s and not peer.done and self.started:
            self._owner.failed(unreachable(peer))
        elif silent_s > self._timeout_s / 2 and peer.connection is not None:
            # The other end may be gone without a word, or the network may have forgotten the connection.
            peer.connection.close(f"nothing came for {silent_s:.1f} s", at_once=True)

    def _watch_stall(self, peer: Peer, now: float) -> None:
        stalled = peer.outgoing.bytes > 0 and now - peer.progress_at > self._timeout_s / 4
        if stalled != peer.stalled:
            peer.stalled = stalled
            why = f"{peer.outgoing.bytes} bytes are not acknowledged" if stalled else ""
            self._report(Event("stalled" if stalled else "recovered", (peer.member,), now - peer.progress_at, why))


def unreachable(peer: Peer) -> MemberUnreachable:
    why = peer.why_down if peer.connection is None else "its connection is open, but nothing comes"
    return MemberUnreachable(peer.member, peer.address, time.monotonic() - peer.heard_at, why)
