"""The outcome of the last view change, kept for processes that have not learned it.

It is kept until every member of the present view has installed that view. A member that is not in the next view keeps it too,
and tells any process that asks: it may be the only one left that knows.
"""

from __future__ import annotations

from collections.abc import Collection

from quire.views.core import Core
from quire.views.packets import Decide, Entry, Fetch, Fill, GroupPacket, Previous, Welcome
from quire.views.unstable import UnstableRuns
from quire.views.view import Position, Value, View


class PreviousView:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._installed: dict[str, int] = {}
        """The last view that each process is known to have installed, so that it is still there after a restart."""
        self._last: tuple[View, Value, UnstableRuns] | None = None

    def keep(self, view: View, value: Value, unstable: UnstableRuns) -> None:
        self._last = (view, value, unstable)

    def take(self, previous: Previous | None) -> None:
        """Take over what another process, or the journal, has kept."""
        self._last = None
        if previous is not None:
            unstable = UnstableRuns(len(previous.view.members), self._core.settings.outstanding)
            unstable.restore(previous.value.cut, previous.runs)
            self._last = (previous.view, previous.value, unstable)

    def packed(self) -> Previous | None:
        if self._last is None:
            return None
        view, value, unstable = self._last
        return Previous(view, value, tuple(unstable.within(value.cut)))

    def is_of(self, epoch: int) -> bool:
        """Whether this is how the view of that epoch ended."""
        return self._last is not None and self._last[0].epoch == epoch

    def has_installed(self, name: str, epoch: int) -> None:
        """A process has installed the view of this epoch. It may say so before this process is there."""
        self._installed[name] = max(epoch, self._installed.get(name, 0))
        self._forget_if_all_have()

    @property
    def installed(self) -> set[str]:
        """The processes that are known to have installed the view after this one, or a later one."""
        epoch = self._core.view.epoch - 1 if self._last is None else self._last[0].epoch
        return {name for name, installed in self._installed.items() if installed > epoch}

    def _forget_if_all_have(self) -> None:
        view = self._core.view
        if self.is_of(view.epoch - 1) and self.installed.issuperset(view.names()):
            self._last = None

    def is_awaited(self) -> bool:
        """Whether this process, which is not in the next view, may still be needed to tell others the outcome. It is until
        every member that is not suspected has installed the next view and, unless the group has ended, a quorum has. Where it
        goes away earlier, the others take that for a failure."""
        if self._last is None:
            return False
        core, (view, value, _) = self._core, self._last
        after = value.view_after(view)
        is_told = self.installed.issuperset(set(after.names()) - core.suspects - {core.me.name})
        return not is_told or not (value.terminal or after.is_quorum(self.installed, core.settings.tie))

    def tell(self, name: str, packet: GroupPacket) -> None:
        """Answer a process that is still in that view."""
        assert self._last is not None
        view, value, unstable = self._last
        if isinstance(packet, Fetch):
            last = min(packet.last, value.cut[packet.origin])
            self._core.send(Fill(view.epoch, tuple(unstable.between(packet.origin, packet.first, last))), (name,))
        else:
            self._core.send(Decide(view.epoch, value), (name,))

    def tell_again(self) -> None:
        """Send the outcome again to those that may not have it."""
        self._forget_if_all_have()
        if self._last is None:
            return
        view, value, _ = self._last
        self._core.send(Decide(view.epoch, value), set(view.names()) - self.installed)
        if self._core.mode in ("normal", "frozen"):
            self.welcome(value.view_after(view).names())

    def welcome(self, names: Collection[str]) -> None:
        """Let the joiners among `names` into the view: send each what was delivered since the state that it has."""
        core = self._core
        if self._last is None:
            return
        for joiner in self._last[1].joiners:
            one = joiner.participant
            if one.name in names and one.name not in self.installed:
                since, previous = joiner.position, self.packed()
                packet = Welcome(core.view.epoch, core.view, since, self._before_the_view(since), previous)
                core.send(packet, (one.name,), one.incarnation)

    def _before_the_view(self, position: Position) -> tuple[Entry, ...] | None:
        """What was delivered after a position and before this view."""
        entries = self._core.history.since(position)
        return None if entries is None else tuple(entry for entry in entries if entry.epoch < self._core.view.epoch)
