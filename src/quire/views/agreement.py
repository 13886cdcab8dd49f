"""The agreement that ends a view: its members decide, once, on the next view and on what is delivered before it.

Any member may lead a ballot at any time, and several may do so at once; at most one value is ever decided. From its first
promise on, a member is frozen: it takes, sends and delivers nothing in this view any more, so that what it has reported stays
true. Timers and suspicions influence only when a ballot is tried, never the value that is decided.
"""

from __future__ import annotations

from quire.views.ballots import ASKING, PROPOSING, PULLING, Campaign, choose
from quire.views.core import Core
from quire.views.effects import Block
from quire.views.ordering import Ordering
from quire.views.packets import (
    Accept,
    Accepted,
    Data,
    Decide,
    Fetch,
    Fill,
    Prepare,
    Promise,
    Refuse,
    Report,
    Vote,
)
from quire.views.records import Promised, Voted
from quire.views.view import Ballot, Joiner, Value

_NO_BALLOT = Ballot(0, "", 0)


class Agreement:
    """One member's part in ending one view."""

    def __init__(self, core: Core, ordering: Ordering) -> None:
        self.promised = _NO_BALLOT
        self.accepted: Accepted | None = None
        self.campaign: Campaign | None = None
        self.decided: Value | None = None
        """The decision, while runs of its cut are missing here."""
        self.joiners: dict[str, Joiner] = {}
        """The processes that ask to join, by name."""
        self.waited = 0
        """How often the timer has run since there is a cause for a ballot, without this member leading one."""
        self._voted_at = 0
        self._round = 0
        """The highest round that was seen."""
        self._core, self._ordering = core, ordering

    # Leading a ballot.

    def start(self, *, hasty: bool = False) -> None:
        core = self._core
        self._round += 1
        ballot = Ballot(self._round, core.me.name, core.me.incarnation)
        self._promise(ballot)
        everybody = core.settings.found_together and core.view.epoch == 1
        self.campaign = Campaign(ballot, core.view, core.settings.tie, everybody=everybody)
        core.send_when_durable(Prepare(core.view.epoch, ballot, core.closing), core.view.names())
        self.promise_came(core.me.name, Promise(core.view.epoch, ballot, self.accepted, self._report()), hasty=hasty)

    def ask_again(self, name: str) -> None:
        """A process has connected: a ballot that still waits for promises asks it, too."""
        campaign, core = self.campaign, self._core
        if campaign is not None and self.is_asking() and name not in campaign.promises and core.view.rank(name) is not None:
            core.send_when_durable(Prepare(core.view.epoch, campaign.ballot, core.closing), (name,))

    def promise_came(self, name: str, promise: Promise, *, hasty: bool) -> None:
        campaign = self.campaign
        if campaign is None or promise.ballot != campaign.ballot:
            return
        campaign.promises[name] = promise
        if campaign.phase == PROPOSING:
            # Too late for the value of this ballot, which may be without this member; but its vote counts.
            assert campaign.value is not None
            self._propose_to(name, promise, campaign.value)
        elif campaign.phase == PULLING or (campaign.is_backed() and (hasty or campaign.has_all_of(self._core.awaited()))):
            self.pull()

    def pull(self) -> None:
        """Fetch the messages that any member that promised holds and this one lacks; when none are missing, propose."""
        campaign, unstable = self.campaign, self._ordering.unstable
        assert campaign is not None
        campaign.phase = PULLING
        missing = [(origin, count) for origin, count in enumerate(campaign.target()) if unstable.count[origin] < count]
        if not missing:
            self._propose()
        for origin, count in missing:
            holder = campaign.holder(origin, count)
            if holder is not None and campaign.asked.get(origin) != (holder, unstable.count[origin], count):
                campaign.asked[origin] = (holder, unstable.count[origin], count)
                self._core.send(Fetch(self._core.view.epoch, origin, unstable.count[origin], count), (holder,))

    def drop_silent_holders(self) -> None:
        """If a member that was asked for runs is suspected, drop its promise. If the others are still a quorum, what they hold
        together is enough; otherwise the ballot has failed, and another one has to be tried."""
        campaign, core = self.campaign, self._core
        if campaign is None or campaign.phase != PULLING:
            return
        silent = {holder for holder, _, _ in campaign.asked.values()} & core.suspects - {core.me.name}
        if not silent:
            return
        for name in silent:
            campaign.promises.pop(name, None)
        campaign.asked.clear()
        if campaign.is_backed():
            self.pull()
        else:
            self.campaign = None

    def _propose(self) -> None:
        campaign, core = self.campaign, self._core
        assert campaign is not None
        campaign.phase = PROPOSING
        value = campaign.value = choose(campaign, core.view, self._ordering.unstable, core.me.name, causal=core.settings.causal)
        for name, promise in campaign.promises.items():
            if name != core.me.name:
                self._propose_to(name, promise, value)
        if campaign.ballot >= self.promised:
            self._vote(campaign.ballot, value)
        self.count_own_vote()

    def _propose_to(self, name: str, promise: Promise, value: Value) -> None:
        unstable, held = self._ordering.unstable, promise.report.held
        runs = tuple(data for origin, last in enumerate(value.cut) for data in unstable.between(origin, held[origin], last))
        self._core.send(Accept(self._core.view.epoch, promise.ballot, value, runs), (name,))

    def count_own_vote(self) -> None:
        """The leader's own vote counts like any other: once it is durable."""
        campaign = self.campaign
        if campaign is None or campaign.phase != PROPOSING or self.accepted is None:
            return
        if self.accepted.ballot == campaign.ballot and self._core.is_durable(self._voted_at):
            self.vote_came(self._core.me.name, campaign.ballot)

    def vote_came(self, name: str, ballot: Ballot) -> None:
        campaign = self.campaign
        if campaign is None or campaign.ballot != ballot or campaign.phase != PROPOSING:
            return
        campaign.votes.add(name)
        if campaign.is_won() and self.decided is None:
            assert campaign.value is not None
            self._core.send(Decide(self._core.view.epoch, campaign.value), self._core.view.names())
            self.decided = campaign.value

    def refused(self, round_: int) -> None:
        self._round = max(self._round, round_)
        if self.campaign is not None and self.campaign.ballot.round < round_:
            self.campaign = None

    # Following a ballot.

    def prepare_came(self, name: str, packet: Prepare) -> None:
        core = self._core
        self._round = max(self._round, packet.ballot.round)
        if packet.ballot <= self.promised:
            core.send(Refuse(core.view.epoch, self.promised.round), (name,))
            return
        core.closing = core.closing or packet.closing
        self._promise(packet.ballot)
        promise = Promise(core.view.epoch, packet.ballot, self.accepted, self._report())
        core.send_when_durable(promise, (name,))

    def accept_came(self, name: str, packet: Accept) -> None:
        core = self._core
        self._round = max(self._round, packet.ballot.round)
        self.keep(packet.runs)
        if packet.ballot < self.promised:
            core.send(Refuse(core.view.epoch, self.promised.round), (name,))
        elif self._ordering.unstable.holds(packet.value.cut):
            self._vote(packet.ballot, packet.value)
            core.send_when_durable(Vote(core.view.epoch, packet.ballot), (name,))

    def keep(self, runs: tuple[Data, ...]) -> None:
        """Hold runs that were sent to this member because it lacked them. They are delivered at the end of the view."""
        if runs:
            self.freeze()
        for data in runs:
            self._ordering.keep(data, data.run)

    def fill_came(self, packet: Fill) -> None:
        self.keep(packet.runs)
        if self.campaign is not None and self.campaign.phase == PULLING:
            self.campaign.asked.clear()
            self.pull()

    def fetch_came(self, name: str, packet: Fetch) -> None:
        runs = tuple(self._ordering.unstable.between(packet.origin, packet.first, packet.last))
        self._core.send(Fill(packet.epoch, runs), (name,))

    def freeze(self) -> None:
        core = self._core
        if core.mode == "normal":
            core.mode = "frozen"
            core.out.append(Block(core.view.epoch))

    def restore(self, promised: Ballot | None, accepted: Accepted | None) -> None:
        """Restore the promise and the vote from this member's journal."""
        if promised is not None:
            self.promised = max(self.promised, promised)
        if accepted is not None:
            self.accepted = accepted
            self.promised = max(self.promised, accepted.ballot)
        self._round = max(self._round, self.promised.round)

    def _promise(self, ballot: Ballot) -> None:
        self.freeze()
        self.promised = ballot
        self._core.save(Promised(ballot, self._core.closing))

    def _vote(self, ballot: Ballot, value: Value) -> None:
        self.freeze()
        self.promised = ballot
        self.accepted = Accepted(ballot, value)
        self._voted_at = self._core.save(Voted(ballot, value))

    def _report(self) -> Report:
        core = self._core
        held, drained = tuple(self._ordering.unstable.count), core.closing and core.operations.is_drained()
        return Report(core.me.incarnation, held, core.leaving, self.admissible(), core.closing, drained, core.me.cluster)

    def admissible(self) -> tuple[Joiner, ...]:
        """The processes that ask to join and may: an incarnation that was admitted before, or an older one, may not."""
        latest = self._core.view.latest
        return tuple(one for name, one in sorted(self.joiners.items()) if one.participant.incarnation > latest.get(name, 0))

    def is_asking(self) -> bool:
        return self.campaign is not None and self.campaign.phase == ASKING
