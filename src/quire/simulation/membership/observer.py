"""Checks the invariants of a group with changing membership at every step; each breach raises a Violation.

The observer sees the actions of every process, but not its internal state.
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.views.core import GroupSettings
from quire.views.member import Member
from quire.views.packets import Data, Entry
from quire.views.view import Position, View

Operation = tuple[str, int]


class Violation(AssertionError):
    """A promise was broken: which one, and how."""

    def __init__(self, rule: str, detail: object) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule


class _Seen:
    """What one process has done since it last received its state."""

    def __init__(self) -> None:
        self.epoch = 0
        """The view that it is in."""
        self.sent = 0
        """How many messages it has sent in this view."""
        self.counts: dict[int, list[int]] = {}
        """How many messages of each member it delivered, by epoch."""
        self.sessions: dict[str, int] = {}
        """The last operation of each session in its state."""

    def restored(self, position: Position, log: Sequence[Operation]) -> None:
        self.counts = {position.epoch: list(position.delivered)}
        self.sessions = dict(log)


class Observer:
    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.views: dict[int, View] = {}
        self.boundaries: dict[int, list[Operation]] = {}
        """The log with which each view begins."""
        self.sequence: list[Operation] = []
        """If the order is total and uniform, everything that was ever delivered anywhere, in order."""
        self.deliveries = 0
        self.reads = 0
        self._seen: dict[str, _Seen] = {}
        self._causes: dict[tuple[int, int, int], tuple[int, ...]] = {}
        """(epoch, member, first message number): how many messages of each member the sender had delivered."""
        self._identity: dict[tuple[int, int, int], Operation] = {}
        """(epoch, member, number): which operation that message is."""
        self._delivered: dict[int, set[Operation]] = {}
        """What was delivered anywhere, by epoch."""
        self._completed = 0
        self._reading: dict[tuple[str, int], int] = {}

    def _of(self, name: str) -> _Seen:
        return self._seen.setdefault(name, _Seen())

    def sent(self, name: str, data: Data) -> None:
        run, view = data.run, self.views.get(data.epoch)
        if view is None or view.members[run.origin].name == name:
            self._of(name).sent = run.end
        self._causes.setdefault((data.epoch, run.origin, run.first), data.causes)
        for step in range(run.count):
            operation = (data.session, data.number + step)
            known = self._identity.setdefault((data.epoch, run.origin, run.first + step), operation)
            if known != operation:
                raise Violation("one message, one operation", (name, known, operation))

    def voted(self, name: str, member: Member) -> None:
        accepted = member.membership.agreement.accepted
        if accepted is None or not member.membership.ordering.unstable.holds(accepted.value.cut):
            raise Violation("whoever votes holds the cut", (name, accepted))

    def kept(self, name: str, member: Member) -> None:
        """Check that what a member keeps for others is bounded: twice the window of each, while it is between two views."""
        settings, unstable = self.settings, member.membership.ordering.unstable
        room = settings.outstanding - 1 + settings.run_max
        most = room if member.core.mode == "normal" else 2 * room
        for origin in range(len(unstable.count)):
            if unstable.messages(origin) > most:
                raise Violation("memory is bounded", (name, member.core.mode, origin, unstable.messages(origin), most))

    def delivered(self, name: str, entry: Entry, index: int, log: Sequence[Operation]) -> None:
        seen = self._of(name)
        run = entry.run
        self.deliveries += run.count
        counts = seen.counts.setdefault(entry.epoch, [0] * entry.members)
        if self.settings.total and index != sum(counts):
            raise Violation("the index counts what was delivered in the epoch", (name, entry.epoch, index, sum(counts)))
        if run.first != counts[entry.rank]:
            raise Violation("sender order in a view", (name, entry.epoch, entry.rank, run.first))
        for step in range(run.count):
            known = self._identity.get((entry.epoch, entry.rank, run.first + step))
            if known is not None and known != (entry.session, entry.number + step):
                raise Violation("one message, one operation", (name, known))
        causes = self._causes.get((entry.epoch, entry.rank, run.first), ())
        if any(map(int.__lt__, counts, causes)):
            raise Violation("causes come first", (name, entry.epoch, entry.rank, run.first, causes, counts))
        counts[entry.rank] = run.end
        if seen.sessions.get(entry.session, 0) + 1 != entry.number:
            last = seen.sessions.get(entry.session, 0)
            raise Violation("each operation of a session once, in order", (name, entry.session, entry.number, last))
        seen.sessions[entry.session] = entry.number + run.count - 1
        if self.settings.uniform:
            self._check_uniform(name, entry.epoch, log[len(log) - run.count :])
            if self.settings.total:
                self._check_sequence(name, log, run.count)

    def _check_uniform(self, name: str, epoch: int, operations: Sequence[Operation]) -> None:
        self._delivered.setdefault(epoch, set()).update(operations)
        boundary = self.boundaries.get(epoch + 1)
        if boundary is not None and not set(operations) <= set(boundary):
            raise Violation("what anybody delivered, everybody has", (name, epoch, operations))

    def _check_sequence(self, name: str, log: Sequence[Operation], count: int) -> None:
        start = len(log) - count
        known = self.sequence[start : len(log)]
        if list(log[start:])[: len(known)] != known:
            raise Violation("one sequence at all", (name, start, log[start:], known))
        if start > len(self.sequence):
            raise Violation("one sequence at all", (name, "a gap", start, len(self.sequence)))
        self.sequence += log[len(self.sequence) :]
        self._completed = max(self._completed, len(self.sequence))

    def installed(self, name: str, view: View, log: Sequence[Operation], *, joined: bool) -> None:
        known = self.views.setdefault(view.epoch, view)
        if known != view:
            raise Violation("one view per epoch", (name, known, view))
        seen = self._of(name)
        if not joined and seen.epoch and seen.epoch != view.epoch - 1:
            raise Violation("views follow each other", (name, seen.epoch, view.epoch))
        before = self.views.get(view.epoch - 1)
        rank = None if before is None else before.rank(name)
        if not joined and rank is not None and seen.counts.get(view.epoch - 1, [0] * (rank + 1))[rank] < seen.sent:
            raise Violation("whoever goes on has delivered all that it sent", (name, view.epoch - 1, seen.sent))
        seen.epoch, seen.sent = view.epoch, 0
        self._check_boundary(name, view.epoch, log)

    def _check_boundary(self, name: str, epoch: int, log: Sequence[Operation]) -> None:
        """Check that all members begin a view with the same log: everything delivered in all earlier views."""
        boundary = self.boundaries.setdefault(epoch, list(log))
        if boundary != list(log) and (self.settings.total or sorted(boundary) != sorted(log)):
            raise Violation("the same log at a boundary", (name, epoch, boundary, list(log)))
        if len(log) != len(set(log)):
            raise Violation("no operation twice", (name, epoch))
        before = set(self.boundaries.get(epoch - 1, ())) | self._delivered.get(epoch - 1, set())
        if before - set(log):
            raise Violation("a boundary extends the one before", (name, epoch, before - set(log)))

    def restored(self, name: str, position: Position, log: Sequence[Operation]) -> None:
        self._of(name).restored(position, log)

    def crashed(self, name: str, *, journal: bool) -> None:
        if not journal:
            self._seen.pop(name, None)

    def restarted(self, name: str) -> None:
        """The process restarts, and its journal makes it repeat its deliveries."""
        self._seen[name] = _Seen()

    def closed(self, name: str, epoch: int, member: Member, log: Sequence[Operation]) -> None:
        """The group was closed in this view, with the process as a member."""
        self._check_boundary(name, epoch + 1, log)
        if member.core.operations.unsettled():
            raise Violation("nothing is lost by closing", (name, member.core.operations.unsettled()))

    # Reads.

    def read_began(self, name: str, token: int) -> None:
        self._reading[name, token] = self._completed

    def read_ended(self, name: str, token: int, log: Sequence[Operation]) -> None:
        began = self._reading.pop((name, token))
        self.reads += 1
        if len(log) < began:
            raise Violation("a read sees what was completed before it", (name, token, began, len(log)))
