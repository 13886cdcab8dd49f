"""Gossip of decisions: each replica is told the decisions that it may lack, until it acknowledges them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from quire.protocols.node import Send
from quire.protocols.transactions.quorum_packets import Have
from quire.protocols.transactions.timestamps import Timestamp

AT_ONCE = 256
SILENT_ROUNDS = 4
"""A replica that said nothing for so many rounds is told less and less often."""


class Gossip:
    def __init__(self, me: int, replicas: Sequence[int], period_ns: int) -> None:
        self._period_ns = period_ns
        self._unsure: dict[int, dict[Timestamp, None]] = {replica: {} for replica in replicas if replica != me}
        self._rounds = dict.fromkeys(self._unsure, 0)
        self._at: dict[int, int] = {}

    def decided(self, now: int, t: Timestamp) -> None:
        """A decision is known here; who else knows it is not known yet."""
        for replica, unsure in self._unsure.items():
            unsure[t] = None
            self._at.setdefault(replica, now + self._period_ns)

    def heard(self, now: int, replica: int) -> None:
        """The replica is alive: if it had been silent, tell it soon what it may lack."""
        if self._rounds.get(replica, 0) > SILENT_ROUNDS:
            self._rounds[replica] = 0
            if replica in self._at:
                self._at[replica] = now + self._period_ns

    def owes(self, replica: int) -> bool:
        """Whether the replica may still lack a decision that is known here."""
        return bool(self._unsure.get(replica))

    def unsure(self) -> Iterator[Timestamp]:
        """For each replica, the oldest decision that it may lack."""
        return (min(unsure) for unsure in self._unsure.values() if unsure)

    def hopeless(self, kept: int) -> list[int]:
        """The replicas that are silent and lack more than this many decisions."""
        return [
            replica for replica, unsure in self._unsure.items() if len(unsure) > kept and self._rounds[replica] > SILENT_ROUNDS
        ]

    def gone(self, replica: int) -> None:
        """The replica will never come back."""
        for kept in (self._unsure, self._rounds, self._at):
            kept.pop(replica, None)

    def back(self, now: int, replica: int, decided: Iterable[Timestamp]) -> None:
        """The replica has started again, and may lack all of these decisions."""
        if replica not in self._unsure:
            self._unsure[replica], self._rounds[replica] = dict.fromkeys(decided), 0
            if self._unsure[replica]:
                self._at[replica] = now + self._period_ns

    def has(self, replica: int, decided: Iterable[Timestamp]) -> None:
        """The replica says that it has these decisions."""
        if replica not in self._unsure:
            return
        unsure = self._unsure[replica]
        self._rounds[replica] = 0
        for t in decided:
            unsure.pop(t, None)
        if not unsure:
            self._at.pop(replica, None)

    def wake(self, now: int) -> list[Send]:
        sends = []
        for replica, at in self._at.items():
            if at <= now:
                self._rounds[replica] += 1
                slower = 1 << min(max(self._rounds[replica] - SILENT_ROUNDS, 0), 6)
                self._at[replica] = now + self._period_ns * slower
                some = tuple(t for t, _ in zip(self._unsure[replica], range(AT_ONCE), strict=False))
                sends.append(Send(Have(some), (replica,)))
        return sends

    def due(self) -> int | None:
        return min(self._at.values(), default=None)

    def idle(self) -> bool:
        """Whether all replicas that answer have all decisions."""
        return all(self._rounds[replica] > SILENT_ROUNDS for replica in self._at)
