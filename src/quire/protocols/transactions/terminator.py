"""One replica's attempts to end a transaction whose client is silent: ballots, until one of anybody's succeeds."""

from __future__ import annotations

from quire.protocols.transactions.quorum_packets import Promised
from quire.protocols.transactions.timestamps import Timestamp
from quire.protocols.transactions.votes import ABORT, Ballot, Decision, Incarnations, Stance, majority, valid


class Termination:
    """Of one transaction. A value that a majority may have accepted already is proposed again; else abort is presumed."""

    def __init__(self, t: Timestamp, until_ns: int) -> None:
        self.t = t
        self.until_ns = until_ns
        """When to try (again)."""
        self.tries = 0
        self.ballot: Ballot | None = None
        self.proposed: Decision | None = None
        self._promises: dict[int, Promised] = {}
        self._votes: dict[int, Stance] = {}

    def start(self, ballot: Ballot) -> None:
        self.tries += 1
        self.ballot, self.proposed = ballot, None
        self._promises, self._votes = {}, {}

    def promise(self, source: int, promised: Promised, replicas: int, known: Incarnations) -> Decision | None:
        """What to propose, once a majority has promised."""
        if promised.ballot != self.ballot or self.proposed is not None:
            return None
        self._promises[source] = promised
        counted = valid({each: Stance(vote.incarnation, vote.known) for each, vote in self._promises.items()}, known)
        if len(counted) < majority(replicas):
            return None
        accepted = [vote.accepted for each, vote in self._promises.items() if each in counted and vote.accepted is not None]
        self.proposed = max(accepted, key=lambda pair: pair[0])[1] if accepted else ABORT
        return self.proposed

    def accept(self, source: int, ballot: Ballot, stance: Stance, replicas: int, known: Incarnations) -> Decision | None:
        """The decision, once a majority has accepted it."""
        if ballot != self.ballot or self.proposed is None:
            return None
        self._votes[source] = stance
        return self.proposed if len(valid(self._votes, known)) >= majority(replicas) else None
