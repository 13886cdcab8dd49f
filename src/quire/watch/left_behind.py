"""Stops the live verdict from waiting for members that were excluded or left, and whose processes still answer.

Such a process does nothing that the others could see, and its logical time stands still. If judging waited for it, there would
be no verdict on anyone else for as long as it runs. So it is waited for only as long as an excluded member needs to notice and
come back; after that, nothing it does counts until it is in a later view. What it did in between is left to the audit.
"""

from __future__ import annotations

from quire.trace.kinds import VIEW
from quire.trace.records import ADDRESS, FIRST, KIND, TIME_NS
from quire.trace.views import ViewEvent
from quire.watch.updates import ProcessUpdate

WAIT_NS = 2_000_000_000
"""How long such a member is waited for, by the clocks of the members that go on."""


class LeftBehind:
    def __init__(self) -> None:
        self._views: dict[int, int] = {}
        """The last view that each process has installed."""
        self._without: dict[int, tuple[int, int]] = {}
        """Left-behind members still waited for: the first view without them, and when it was installed."""
        self._let_go: dict[int, int] = {}
        """Members no longer waited for: their events do not count until they install a later view than this."""

    def counted(self, heard: ProcessUpdate) -> ProcessUpdate | None:
        """The part of a process's next records that counts; None if nothing does."""
        since = self._let_go.get(heard.process)
        if since is None:
            return heard
        returned = next((at for at, view, _ in _installed(heard) if view > since), None)
        if returned is None:
            return None
        del self._let_go[heard.process]
        return heard._replace(records=heard.records[returned:])

    def learn(self, heard: ProcessUpdate) -> tuple[list[int], list[int]]:
        """Learn from a process's next records. Returns the processes not to wait for any more, and those to wait for again."""
        again = []
        for at, view, members in _installed(heard):
            self._views[heard.process] = view
            for process in members:
                self._without.pop(process, None)
                if self._let_go.get(process, view) < view:
                    again.append(process)
            for process, own in self._views.items():
                if process not in members and own < view and process not in self._let_go:
                    self._without.setdefault(process, (view, int(heard.records[at, TIME_NS])))
        if heard.process in self._without or not len(heard.records):
            return [], again
        now = int(heard.records[-1, TIME_NS])
        late = [process for process, (_, then) in self._without.items() if now > then + WAIT_NS]
        for process in late:
            self._let_go[process] = self._without.pop(process)[0]
        return late, again


def _installed(heard: ProcessUpdate) -> list[tuple[int, int, tuple[int, ...]]]:
    """The views that were installed: index of the record, number, and members."""
    found = []
    for at in (heard.records[:, KIND] == VIEW).nonzero()[0].tolist():
        address = heard.names.addresses[heard.records[at, ADDRESS]]
        if address.op == ViewEvent.INSTALL:
            found.append((at, int(heard.records[at, FIRST]), address.dests or ()))
    return found
