"""How a process goes through view changes: installs the next view, is excluded, joins, or recovers after a crash."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from quire.views.agreement import Agreement
from quire.views.catching_up import Donor, Learner
from quire.views.core import Core, GroupSettings
from quire.views.effects import Close, Exclude, Install, Leave, ReadFailed, Restore
from quire.views.ordering import Ordering
from quire.views.packets import Decide, Fetch, Installed, Stale, Welcome
from quire.views.previous_view import PreviousView
from quire.views.records import Decided, Entered, Record
from quire.views.restarting import Recovered, recover
from quire.views.standstill import waiting_runs
from quire.views.view import Participant, Position, Value, View, founding_view
from quire.views.waiting_run import WaitingRun


class Membership:
    """The parts of a member, some of which are replaced in each view."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.ordering = Ordering(core, core.view, core.view.rank(core.me.name) or 0)
        self.agreement = Agreement(core, self.ordering)
        self.learner = Learner(core, has_state=False)
        self.donor = Donor(core, self._is_safe)
        self.previous_view = PreviousView(core)
        self.reads: list[int] = []
        """Reads that wait until they can begin in a view."""

    @classmethod
    def begin(cls, settings: GroupSettings, me: Participant, session: str, *, founds: bool) -> Membership:
        """The membership of a process that was never in the group."""
        membership = cls(Core(settings, me, session, founding_view(settings.founders)))
        founds = founds and membership.core.view.rank(me.name) is not None
        if founds:
            membership.core.mode = "frozen"
        membership._say_who(founds=founds)
        return membership

    @classmethod
    def recover(cls, settings: GroupSettings, records: Iterable[Record]) -> Membership:
        """The membership of a process whose journal has these records. It is where it was, but takes part again only in the
        next view."""
        found = recover(founding_view(settings.founders), records)
        core = Core(
            settings, Participant(found.name, found.incarnation + 1, found.weight, found.cluster), found.session, found.view
        )
        membership = cls(core)
        core.continue_after(found.records)
        core.table, core.closing = dict(found.table), found.closing
        core.operations.restore(found.dropped, found.submitted, core.table.get(core.session, 0), found.released)
        membership.ordering.restore(found.kept, found.runs, found.delivered)
        membership.agreement.restore(found.promised, found.accepted)
        membership._restore_state(found)
        if found.ended is not None:
            membership.previous_view.keep(found.view, found.ended, membership.ordering.unstable)
        else:
            membership.previous_view.take(found.previous)
        if (found.entered or found.founds) and not found.excluded:
            core.mode = "frozen"
        goes_on = settings.uniform and settings.total and (found.entered or found.state is not None)
        membership.learner = Learner(core, has_state=goes_on)
        membership._say_who(founds=found.founds)
        return membership

    def _restore_state(self, found: Recovered) -> None:
        """Bring the application back to the state that it had, and restore the history."""
        core = self.core
        base = found.base or Position(1, (0,) * len(core.settings.founders))
        core.position = base
        core.begin_history(base)
        if found.state is not None:
            core.out.append(Restore(found.state, base))
        for entry in found.replay:
            core.deliver(entry)
        if core.position.epoch < found.view.epoch and found.entered:
            core.position = Position(found.view.epoch, (0,) * len(found.view.members))
            core.history.enter(found.view.epoch, len(found.view.members))

    def takes_part(self) -> bool:
        return self.core.mode in ("normal", "frozen")

    def _is_safe(self, origin: int, count: int) -> bool:
        return self.ordering.knowledge.is_safe(origin, count)

    # The end of a view.

    def told_decision(self, name: str, value: Value) -> None:
        self.agreement.decided = self.agreement.decided or value
        if value.is_survivor(self.core.me.name) and not self.ordering.unstable.holds(value.cut):
            self.agreement.freeze()
            self.fetch_cut({name})

    def fetch_cut(self, names: Collection[str]) -> None:
        """Ask for the messages of the decided cut that are missing here."""
        value, unstable = self.agreement.decided, self.ordering.unstable
        assert value is not None
        for origin, last in enumerate(value.cut):
            if unstable.count[origin] < last:
                self.core.send(Fetch(self.core.view.epoch, origin, unstable.count[origin], last), names)

    def conclude(self) -> None:
        """Go on to the next view, if it is decided and all messages of the cut are held here."""
        value = self.agreement.decided
        if value is None or not self.takes_part():
            return
        if not value.is_survivor(self.core.me.name):
            self._exclude(value)
        elif self.ordering.unstable.holds(value.cut):
            self._install(value)

    def _install(self, value: Value) -> None:
        core, old = self.core, self.ordering
        core.closing = core.closing or value.closing
        core.mode = "frozen"
        old.deliver_remainder(value.cut)
        confirmed, others = old.reads.end()
        for token in confirmed:
            core.read_is_ready(token)
        self.reads = others + self.reads
        old.trim()
        self.previous_view.keep(core.view, value, old.unstable)
        self.previous_view.has_installed(core.me.name, core.view.epoch + 1)
        core.send(Decide(core.view.epoch, value), old.view.names())
        if value.terminal:
            self._end(value)
            return
        self._enter(value.view_after(core.view), joined=False)
        core.send_when_durable(Installed(core.view.epoch), {*old.view.names(), *core.view.names()})
        if value.members[0].name == core.me.name:
            self.previous_view.welcome(core.view.names())

    def _enter(self, view: View, *, joined: bool) -> None:
        """Begin a view; everything that belongs to earlier views is delivered."""
        core = self.core
        core.enter(view)
        core.names.update(view.names())
        rank = view.rank(core.me.name)
        assert rank is not None
        requests = self.agreement.joiners
        self.ordering = Ordering(core, view, rank)
        self.agreement = Agreement(core, self.ordering)
        self.agreement.joiners = {
            name: joiner for name, joiner in requests.items() if joiner.participant.incarnation > view.latest.get(name, 0)
        }
        core.position = Position(view.epoch, (0,) * len(view.members))
        core.history.enter(view.epoch, len(view.members))
        core.save(Entered(view, dict(core.table), self.previous_view.packed()))
        core.cross_boundary()
        core.out.append(Install(view, joined))
        # If this process restarted during the view change, the view has its earlier incarnation: it waits for the next view.
        core.mode = "normal" if core.is_myself_in_view() else "frozen"

    def say_installed(self, name: str) -> None:
        """Another process tells how an earlier view ended, until it knows that this one is in a later view and, if it keeps a
        journal, stays there after a restart. So a packet of the later view alone does not tell it."""
        core = self.core
        core.send_when_durable(Installed(core.view.epoch), (name,))

    def _end(self, value: Value) -> None:
        """The view was the last: the group has ended."""
        core = self.core
        core.mode = "closed"
        core.save(Decided(value))
        core.send_when_durable(Installed(core.view.epoch + 1), core.view.names())
        core.out.append(Close(core.view.epoch))

    # Exclusion, and joining.

    def _exclude(self, value: Value | None) -> None:
        """The group goes on without this process."""
        core = self.core
        if value is not None:
            self.previous_view.keep(core.view, value, self.ordering.unstable)
        # Before anything that it delivers to catch up: after a restart it must not take part in the end of this view again.
        core.save(Decided(value))
        confirmed, others = self.ordering.reads.end()
        core.out.extend(ReadFailed(token) for token in (*confirmed, *others, *self.reads))
        self.reads.clear()
        if core.leaving:
            core.mode = "left"
            if value is not None:
                self._settle_by_cut(value)
            core.out.append(Leave(core.view.epoch))
            return
        core.mode = "joining"
        self.donor.forget()
        core.out.append(Exclude(core.view.epoch, value))
        self.learner = Learner(core, has_state=core.settings.uniform and core.settings.total)
        self.come_back(core.me.incarnation + 1)

    def _settle_by_cut(self, value: Value) -> None:
        """A member that has left delivers nothing more, but the cut tells which of its own operations are executed."""
        core, rank = self.core, self.ordering.rank
        number = self.ordering.operation_before(rank, value.cut[rank])
        if number > core.table.get(core.session, 0):
            core.table[core.session] = number
            core.settle()

    def come_back(self, incarnation: int) -> None:
        """Become another incarnation."""
        core = self.core
        core.me = msgspec.structs.replace(core.me, incarnation=incarnation)
        self._say_who(founds=False)

    def move(self, cluster: str) -> None:
        """Ask to be in another cluster. The next view has this member there, if the member reports after this."""
        core = self.core
        if core.me.cluster != cluster:
            core.me = msgspec.structs.replace(core.me, cluster=cluster)
            self._say_who(founds=core.view.epoch == 1 and self.takes_part())

    def _say_who(self, *, founds: bool) -> None:
        core = self.core
        core.save(core.started(founds=founds))

    def told_stale(self, packet: Stale) -> None:
        """There is a view, which may be a later one, of which this process is no member."""
        core = self.core
        core.names.update(packet.view.names())
        if packet.view.incarnation(core.me.name) == core.me.incarnation:
            return
        if self.takes_part() and packet.view.epoch > core.view.epoch:
            self._exclude(None)
        latest = packet.view.latest.get(core.me.name, 0)
        if core.mode == "joining" and latest >= core.me.incarnation:
            self.come_back(latest + 1)

    def welcomed(self, packet: Welcome) -> None:
        """This process was admitted to a view."""
        core = self.core
        if packet.view.incarnation(core.me.name) != core.me.incarnation:
            return
        if packet.entries is None or not self.learner.is_at(packet.since) or core.position.epoch >= packet.view.epoch:
            # It lacks the state with which this view begins. The others learn that from its next incarnation, which asks anew.
            self.come_back(core.me.incarnation + 1)
            return
        self.learner.apply(packet.entries)
        self.previous_view.take(packet.previous)
        self.previous_view.has_installed(core.me.name, packet.view.epoch)
        self._enter(packet.view, joined=True)
        core.send_when_durable(Installed(core.view.epoch), core.view.names())

    def waiting_runs(self) -> list[WaitingRun]:
        """All messages that wait here to be delivered, and the members that they wait for."""
        core, operations = self.core, self.core.operations
        if core.mode == "normal":
            return waiting_runs(core, self.ordering)
        if not operations.unsettled():
            return []
        missing = tuple(name for name in core.view.names() if name in core.suspects)
        why = "the next view is not agreed upon" if core.mode == "frozen" else "this process is no member at present"
        return [WaitingRun(core.me.name, operations.settled, operations.last - operations.settled, missing, why)]
