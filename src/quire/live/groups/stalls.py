"""Why messages are not delivered yet: the answer to `waiting`, and one report when it takes long."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quire.live.events import Event
from quire.live.groups.driver import Driver
from quire.live.held import Held
from quire.live.inbox import Inbox
from quire.live.network.mesh import Mesh
from quire.live.settings import Settings
from quire.protocols.contract import Deliver


class StallReports:
    def __init__(self, settings: Settings, driver: Driver, inbox: Inbox[Deliver], mesh: Mesh) -> None:
        self._settings = settings
        self._driver = driver
        self._inbox = inbox
        self._mesh = mesh
        self._reported_gap: tuple[int | str, int] = (-1, -1)

    def waiting(self) -> Sequence[Held]:
        """Messages that the application does not take, which come first, and all that are held back."""
        unread_s, delivery = self._inbox.unread_s(), self._inbox.first(Deliver)
        held = [*map(self._blamed, self._driver.held())]
        if unread_s is None or delivery is None:
            return held
        run = delivery.run
        return [Held(run.origin, run.first, run.count, (self._settings.me,), self._inbox.why(), unread_s), *held]

    def _blamed(self, held: Held) -> Held:
        """The same, extended by what the members that it waits for say of themselves."""
        unread = [member for member in held.waits_for if isinstance(member, int) and self._mesh.is_unread(member)]
        if not unread:
            return held
        who = ", ".join(map(str, unread))
        return msgspec.structs.replace(held, because=f"{held.because}; the application of member {who} does not read")

    def look(self) -> None:
        """Report, once each, that the application takes nothing, and that a message is held back for long."""
        patience_s = self._settings.timeout_s / 4
        if (news := self._inbox.news(self._settings.me, patience_s)) is not None:
            self._mesh.report(news)
        held = self._driver.held()
        if not held or held[0].since_s < patience_s:
            return
        oldest = self._blamed(held[0])
        message = (oldest.origin, oldest.first)
        if message != self._reported_gap:
            self._reported_gap = message
            why = f"message {oldest.origin}:{oldest.first} is held back: {oldest.because}"
            self._mesh.report(Event("gap", oldest.waits_for, oldest.since_s, why))
