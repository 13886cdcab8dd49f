"""Reports for operators: messages that are held back for long, and peers that acknowledge nothing.

Both are checked at intervals and reported once. The reports are information only: the group does not act on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from quire.views.effects import Report
from quire.views.peers import Peer
from quire.views.timing import Timing
from quire.views.waiting_run import WaitingRun


class StallReports:
    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._looked_at = 0.0
        self._since: dict[tuple[str, int], float] = {}
        """Since when messages are known to wait, by the key of their waiting_run."""
        self._told: tuple[str, int] | None = None
        self._arrived: dict[str, tuple[int, float]] = {}
        """For each peer, how many frames it has acknowledged, and since when that number has not grown."""
        self._stalled: set[str] = set()

    def is_due(self, now: float) -> bool:
        return now >= self._looked_at + self._timing.beat_s

    def look(self, now: float, held: Sequence[WaitingRun], peers: Iterable[Peer]) -> Iterator[Report]:
        self._looked_at = now
        yield from self._look_at_peers(now, peers)
        times = [(for_s, each) for each, for_s in self.how_long(now, held) if for_s >= self._timing.timeout_s]
        if not times:
            return
        for_s, oldest = max(times, key=lambda found: found[0])
        if oldest.key != self._told:
            self._told = oldest.key
            why = f"message {oldest.origin}:{oldest.first} is held back: {oldest.because}"
            yield Report("gap", oldest.origin, why, oldest.waits_for, for_s)

    def how_long(self, now: float, held: Iterable[WaitingRun]) -> list[tuple[WaitingRun, float]]:
        """How long each of these is known to have waited."""
        found = [(each, self._since.get(each.key, now)) for each in held]
        self._since = {each.key: since for each, since in found}
        return [(each, now - since) for each, since in found]

    def _look_at_peers(self, now: float, peers: Iterable[Peer]) -> Iterator[Report]:
        for peer in peers:
            arrived, sent = peer.outgoing.arrived, peer.outgoing.sent
            known, since = self._arrived.get(peer.name, (-1, now))
            if arrived != known or arrived == sent or not peer.is_ready:
                self._arrived[peer.name] = (arrived, now)
                if peer.name in self._stalled and (arrived != known or not peer.is_ready):
                    self._stalled.discard(peer.name)
                    if peer.is_ready:
                        yield Report("recovered", peer.name)
            elif now - since >= self._timing.timeout_s and peer.name not in self._stalled:
                self._stalled.add(peer.name)
                why = f"it has acknowledged nothing for {now - since:.1f} s, and {sent - arrived} frames wait for that"
                yield Report("stalled", peer.name, why, for_s=now - since)
