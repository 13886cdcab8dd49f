"""Termination of transactions whose clients are silent: a replica leads ballots until one, of any replica, succeeds."""

from __future__ import annotations

from quire.protocols.transactions.coordinator import Draw
from quire.protocols.transactions.quorum_packets import Promised
from quire.protocols.transactions.timestamps import Timestamp
from quire.protocols.transactions.votes import ABORT, Ballot, Decision, Incarnations, Stance, majority, valid

_BACKOFF_DOUBLINGS = 6


class Termination:
    """The termination of one transaction. It proposes the value that a majority may have accepted already; otherwise, abort."""

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


class Terminations:
    """The terminations of all undecided transactions of which this replica holds something."""

    def __init__(self, me: int, replicas: int, lease_ns: int, draw: Draw) -> None:
        self._rank = me / replicas
        self._lease_ns = lease_ns
        self._draw = draw
        self._open: dict[Timestamp, Termination] = {}

    def __contains__(self, t: Timestamp) -> bool:
        return t in self._open

    def __len__(self) -> int:
        return len(self._open)

    def get(self, t: Timestamp) -> Termination | None:
        return self._open.get(t)

    def hold(self, now: int, t: Timestamp) -> None:
        """This replica holds something of a transaction: give its client, or the replica that is ending it, time."""
        until = now + self._lease_ns + int(self._lease_ns * (self._rank + self._draw()) / 2)
        termination = self._open.get(t)
        if termination is None:
            self._open[t] = Termination(t, until)
        elif termination.ballot is None:
            termination.until_ns = until

    def start(self, now: int, termination: Termination, ballot: Ballot) -> None:
        """Try to end it with this ballot."""
        termination.start(ballot)
        # Two that try at once defeat each other; ever longer random pauses let one of them through.
        pause = self._lease_ns << min(termination.tries - 1, _BACKOFF_DOUBLINGS)
        termination.until_ns = now + int(pause * (0.5 + self._draw()))

    def drop(self, t: Timestamp) -> None:
        self._open.pop(t, None)

    def late(self, now: int) -> list[Termination]:
        """The transactions whose time is up."""
        return [termination for termination in self._open.values() if termination.until_ns <= now]

    def due(self) -> int | None:
        return min((termination.until_ns for termination in self._open.values()), default=None)
