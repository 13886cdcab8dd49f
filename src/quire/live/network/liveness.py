"""The timer of a member of a fixed group: heartbeats, acknowledgements, and detection of silent and stalled peers.

The connection to a peer that is silent for half of the timeout is made again, because the other end may have vanished; a peer
that is silent for longer than the timeout counts as lost. A link on which nothing is acknowledged is reported. Time in which
this process itself did not run, because it was stopped or busy, does not count as silence of others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol as Interface

from quire.live import clock
from quire.live.errors import GroupFailed, MemberUnreachable
from quire.live.events import Event, Reporter
from quire.live.network.peers import Peer


class Owner(Interface):
    def failed(self, error: GroupFailed) -> None: ...
    def time_passed(self) -> None: ...


class Liveness:
    def __init__(self, timeout_s: float, peers: Collection[Peer], report: Reporter, owner: Owner) -> None:
        self.started = False
        """Whether all members have joined, so that their silence counts from now on."""
        self.over = False
        """Whether the group has ended here, so that silence no longer counts."""
        self.unread = False
        """Whether this member has stopped reading, because its application does not take what was delivered."""
        self._timeout_s = timeout_s
        self._peers = peers
        self._report = report
        self._owner = owner
        self._now: Callable[[], float] = clock.now

    async def keep(self) -> None:
        self._now = clock.reader()
        period_s, looked_at = min(1.0, self._timeout_s / 5), self._now()
        while True:
            await asyncio.sleep(period_s)
            now = self._now()
            if (absent_s := now - looked_at - period_s) > period_s:
                self._forgive(absent_s, now)
            looked_at = now
            self.tell_all()
            for peer in self._peers:
                if not peer.gone:
                    self._watch_silence(peer, now)
                    self._watch_stall(peer, now)
            self._owner.time_passed()

    def tell_all(self) -> None:
        """Send each peer an acknowledgement or, if there is nothing to acknowledge, a heartbeat."""
        for peer in self._peers:
            if peer.connection is None:
                continue
            news = peer.incoming.unacknowledged()
            if news:
                peer.incoming.note_acknowledged()
                peer.connection.tell(peer.incoming.received)
            if self.unread or not news:
                peer.connection.say_alive(unread=self.unread)

    def _forgive(self, absent_s: float, now: float) -> None:
        """This process did not run for so long, and has yet to read what came meanwhile: that is not silence of its peers."""
        for peer in self._peers:
            peer.heard_at = min(now, peer.heard_at + absent_s)
            peer.progress_at = min(now, peer.progress_at + absent_s)

    def _watch_silence(self, peer: Peer, now: float) -> None:
        if peer.connection is not None and peer.connection.is_paused():
            # This member is not reading, so silence means nothing.
            peer.heard_at = now
        silent_s = now - peer.heard_at
        if silent_s > self._timeout_s and not peer.done and self.started:
            self.lose(peer)
        elif silent_s > self._timeout_s / 2 and peer.connection is not None:
            # The other end may have vanished without closing, or the network may have dropped the connection.
            peer.connection.close(f"nothing was received for {silent_s:.1f} s", at_once=True)

    def lose(self, peer: Peer) -> None:
        """A peer counts as lost; report it, once."""
        if not peer.lost and not self.over:
            peer.lost = True
            loss = unreachable(peer)
            self._report(Event("lost", (peer.member,), loss.silent_s, loss.why))
            self._owner.failed(loss)

    def heard(self, peer: Peer) -> None:
        """Something came from a peer."""
        before, peer.heard_at = peer.heard_at, self._now()
        if peer.lost and not peer.ended:
            peer.lost = peer.away = peer.stalled = False
            self._report(Event("recovered", (peer.member,), peer.heard_at - before))

    def _watch_stall(self, peer: Peer, now: float) -> None:
        stalled = peer.outgoing.bytes > 0 and now - peer.progress_at > self._timeout_s / 4
        if stalled != peer.stalled and not peer.lost:
            peer.stalled = stalled
            why = f"{peer.outgoing.bytes} bytes are not acknowledged" if stalled else ""
            why += "; it says that its application does not read" if stalled and peer.unread else ""
            self._report(Event("stalled" if stalled else "recovered", (peer.member,), now - peer.progress_at, why))


def unreachable(peer: Peer) -> MemberUnreachable:
    why = peer.why_down if peer.connection is None else "its connection is open, but nothing arrives"
    return MemberUnreachable(peer.member, peer.address, clock.now() - peer.heard_at, why)
