"""Failure detector for clients: which of them a sequencer suspects because it hears nothing from them.

A sequencer that suspects a client may itself be the one that was cut off, and then the others ignore it. So a silent client is
neither dropped nor forgotten: it is suspected until the register has evicted it, or it is heard again. Time in which a
sequencer could not reach the others does not count as silence of clients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from quire.live import clock
from quire.live.network.peers import Peer


class Absences:
    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._sent_away: set[int] = set()
        """Clients that this sequencer has dropped."""
        self._missing: dict[int, float] = {}
        """Members of groups that have never connected here, and since when that is known."""
        self._looked_at = self._excused_at = clock.now()

    def sent_away(self, client: int) -> None:
        self._sent_away.add(client)

    def excuse(self) -> None:
        """This sequencer was cut off itself: all clients have the whole timeout to be heard again."""
        self._excused_at = clock.now()

    def look(self, visitors: Iterable[Peer], members: Collection[int], evicted: Collection[int]) -> list[int]:
        """The clients to suspect. `visitors`: those that have connected here; `members`: those that are in groups."""
        now = clock.now()
        if now - self._looked_at > self._timeout_s / 2:
            self._excused_at = now  # This process was stopped.
        self._looked_at = now
        self._sent_away.difference_update(evicted)
        known = {peer.member: peer for peer in visitors}
        self._missing = {
            client: self._missing.get(client, now)
            for client in members
            if client not in known and client not in self._sent_away and client not in evicted
        }
        since = self._missing | {client: peer.heard_at for client, peer in known.items() if peer.lost}
        late = [client for client, at in since.items() if now - max(at, self._excused_at) > self._timeout_s]
        ended = [client for client, peer in known.items() if peer.ended]
        return sorted({*late, *ended, *self._sent_away})
