"""The ballot that a member leads, from asking for promises to counting votes.

A ballot has three phases. While it is *asking*, members promise, and report which messages they hold. While it is *pulling*,
the leader fetches the messages that any of them holds and it lacks. Then it is *proposing* one value, which a quorum of votes
decides.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from quire.views.closure import closed
from quire.views.packets import Accepted, Promise, Report
from quire.views.unstable import UnstableRuns
from quire.views.view import Ballot, Joiner, Participant, Tie, Value, View

ASKING, PULLING, PROPOSING = "asking", "pulling", "proposing"


class Campaign:
    def __init__(self, ballot: Ballot, view: View, tie: Tie, *, everybody: bool = False) -> None:
        """`everybody`: whether the ballot needs the promises of all members of the view, not only of a quorum."""
        self.ballot = ballot
        self.phase = ASKING
        self.promises: dict[str, Promise] = {}
        self.votes: set[str] = set()
        self.value: Value | None = None
        self.asked: dict[int, tuple[str, int, int]] = {}
        """For each member whose runs are being fetched, which process was asked, and for which messages."""
        self.age = 0
        """How often the timer has run since the ballot began."""
        self._view, self._tie = view, tie
        self._everybody = everybody

    def is_backed(self) -> bool:
        if self._everybody and len(self.promises) < len(self._view.members):
            return False
        return self._view.is_quorum(self.promises, self._tie)

    def is_won(self) -> bool:
        return self._view.is_quorum(self.votes, self._tie)

    def has_all_of(self, names: Collection[str]) -> bool:
        return self.promises.keys() >= set(names)

    def accepted(self) -> Accepted | None:
        """The value that may have been decided already: among the promises, the one accepted in the highest ballot."""
        found = [promise.accepted for promise in self.promises.values() if promise.accepted is not None]
        return max(found, key=lambda accepted: accepted.ballot, default=None)

    def target(self) -> Sequence[int]:
        """How many messages of each member the leader must hold before it can propose a value."""
        accepted = self.accepted()
        if accepted is not None:
            return accepted.value.cut
        return [max(counts) for counts in zip(*(promise.report.held for promise in self.promises.values()), strict=True)]

    def holder(self, origin: int, count: int) -> str | None:
        """A process that has reported that it holds so many messages of a member."""
        for name, promise in self.promises.items():
            if promise.report.held[origin] >= count:
                return name
        return None


def choose(campaign: Campaign, view: View, unstable: UnstableRuns, leader: str, *, causal: bool) -> Value:
    """The value that a backed ballot proposes, once its leader holds the target: the one that may have been decided already
    or, if there is none, a new one, made from the reports."""
    accepted = campaign.accepted()
    if accepted is not None:
        return accepted.value
    reports = {name: promise.report for name, promise in campaign.promises.items()}
    cut = tuple(campaign.target())
    if causal:
        cut = closed(cut, unstable.within(cut))
    closing = any(report.closing for report in reports.values())
    requests = {joiner.participant.name: joiner for joiner in _requests(campaign, view)}
    everybody = len(reports) == len(view.members)
    if closing and everybody and not requests and all(report.drained and not report.leaving for report in reports.values()):
        return Value(view.members, cut, view.latest, closing=True, terminal=True)
    staying = [member for member in view.members if member.name in reports and not reports[member.name].leaving]
    if not staying:
        staying = [member for member in view.members if member.name == leader]
    members = [_as_reported(member, reports[member.name]) for member in staying]
    joiners = _admitted(members, requests)
    members += [joiner.participant for joiner in joiners]
    latest = dict(view.latest)
    for member in members:
        latest[member.name] = max(latest.get(member.name, 0), member.incarnation)
    return Value(tuple(members), cut, latest, joiners, closing=closing)


def _as_reported(member: Participant, report: Report) -> Participant:
    """A member that goes on, as it is now: it may have restarted, or moved to another cluster."""
    return Participant(member.name, report.incarnation, member.weight, report.cluster)


def _requests(campaign: Campaign, view: View) -> list[Joiner]:
    """The latest reported request to join of each name."""
    found: dict[str, Joiner] = {}
    for promise in campaign.promises.values():
        for joiner in promise.report.joiners:
            name, incarnation = joiner.participant.name, joiner.participant.incarnation
            known = found.get(name)
            if incarnation > view.latest.get(name, 0) and (known is None or incarnation > known.participant.incarnation):
                found[name] = joiner
    return [found[name] for name in sorted(found)]


def _admitted(survivors: Collection[Participant], requests: dict[str, Joiner]) -> tuple[Joiner, ...]:
    """The joiners that are admitted. They are fewer than the survivors (but at least one is admitted), and together have no
    more weight, so that a quorum of the next view always includes a survivor, who has the state. A joiner with too much weight
    is admitted with less, which it keeps until it joins again."""
    staying = {member.name for member in survivors}
    room, weight = max(1, len(survivors) - 1), sum(member.weight for member in survivors)
    admitted: list[Joiner] = []
    for name, joiner in requests.items():
        if name not in staying and len(admitted) < room:
            one = joiner.participant
            given = min(one.weight, weight)
            weight -= given
            admitted.append(Joiner(msgspec.structs.replace(one, weight=given), joiner.position))
    return tuple(admitted)
