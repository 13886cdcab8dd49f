"""Failure detector: which processes are suspected, and why. A suspicion is a hint that may be wrong at any time.

A process is suspected when it is silent for too long; when its connection has ended and its address refuses new ones; when it
holds up the others; when it sends unreadable packets; or when another source reports it. Time in which this process itself did
not run, because it was stopped or busy, does not count as silence of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from quire.views.member import Member
from quire.views.peers import Peer
from quire.views.timing import Timing

Reason = Literal["silent", "gone", "slow", "spoilt", "reported"]


class Liveness:
    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._reasons: dict[str, dict[Reason, str]] = {}
        self.suspected: set[str] = set()
        """The suspicions that the member was told."""
        self.at = 0.0
        """When `watch` has to be called next."""
        self._progress: object = None
        self._moved_at = 0.0
        self._relays: dict[str, tuple[int, float]] = {}
        """For each relay of this member's messages, how many it has taken, and since when that number has not grown."""

    # What the member has to be told.

    def blame(self, name: str, reason: Reason, why: str) -> None:
        self._reasons.setdefault(name, {}).setdefault(reason, why)

    def absolve(self, name: str, *reasons: Reason) -> None:
        known = self._reasons.get(name)
        if known is not None:
            for reason in reasons:
                known.pop(reason, None)
            if not known:
                del self._reasons[name]

    def changes(self) -> Iterator[tuple[str, str | None]]:
        """The processes that have become suspected, each with the reason, and those that no longer are, each with None."""
        for name in sorted(self._reasons.keys() ^ self.suspected):
            if name in self.suspected:
                self.suspected.discard(name)
                yield name, None
            else:
                self.suspected.add(name)
                yield name, next(iter(self._reasons[name].values()))

    # Silence.

    def heard(self, peer: Peer, now: float) -> bool:
        """Something came from a peer; returns whether that ends a suspicion."""
        peer.heard_at = now
        if peer.name not in self.suspected:
            return False
        self.absolve(peer.name, "silent", "gone")
        return peer.name not in self._reasons

    def watch(self, peers: Iterable[Peer], now: float, *, founding: bool) -> list[Peer]:
        """Returns the peers that have become silent. `founding`: peers that never connected are given more time."""
        silent: list[Peer] = []
        self.at = now + self._timing.timeout_s
        for peer in peers:
            waits = founding and peer.life is None
            until = peer.heard_at + (self._timing.founding_s if waits else self._timing.timeout_s)
            if now < until:
                self.at = min(self.at, until)
            elif "silent" not in self._reasons.get(peer.name, ()):
                self.blame(peer.name, "silent", f"nothing was heard from it for {now - peer.heard_at:.1f} s")
                silent.append(peer)
        return silent

    def forgive(self, peers: Iterable[Peer], late_s: float, now: float) -> None:
        """This process did not run for so long, and has yet to read what came meanwhile: that is not silence of its peers."""
        for peer in peers:
            peer.heard_at = min(now, peer.heard_at + late_s)
        self._moved_at = min(now, self._moved_at + late_s)
        self._relays = {name: (count, min(now, since + late_s)) for name, (count, since) in self._relays.items()}

    # Lack of progress.

    def watch_progress(self, member: Member, now: float) -> None:
        """If something waits here and there was no progress for long, suspect the members that it waits for. Which these are is
        determined anew each time, and there are none as soon as there is progress."""
        progress = member.progress()
        if progress is None or progress != self._progress:
            self._progress, self._moved_at = progress, now
        slow = member.waits_for() if now - self._moved_at >= self._timing.stall_s else set()
        slow |= self._watch_relays(member.slow_relays(), now)
        for name in [name for name, reasons in self._reasons.items() if "slow" in reasons]:
            if name not in slow:
                self.absolve(name, "slow")
        for name in slow:
            self.blame(name, "slow", f"others have waited for it for {self._timing.stall_s:g} s")

    def _watch_relays(self, taken: dict[str, int], now: float) -> set[str]:
        """The relays that have taken nothing for long though others wait for them to relay it. The progress of deliveries here
        does not show that."""
        known = self._relays
        self._relays = {
            name: known[name] if name in known and known[name][0] == count else (count, now) for name, count in taken.items()
        }
        return {name for name, (_, since) in self._relays.items() if now - since >= self._timing.stall_s}
