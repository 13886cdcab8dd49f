"""Nodes of services whose clients come and go: the permanent members of a hub, and its visitors."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from quire.live.errors import Dismissed, GroupFailed, MemberUnreachable
from quire.live.events import Event, Listener
from quire.live.network.hub import OpenRoster
from quire.live.observing.observer import Observer
from quire.live.recording import LEFT_EARLY, Recording
from quire.live.services.nodes import Host, OnNotice
from quire.live.settings import Settings
from quire.model.errors import QuireError
from quire.protocols.node import Node
from quire.protocols.sequencing.errors import Evicted

CLOSE_S = 2.0
"""How long a visitor that leaves waits until its last packets have arrived."""


class HubHost:
    """One process of a service whose clients come and go: a sequencer, or a client. Use it in `async with`. A client that is
    lost cannot come back."""

    def __init__(
        self,
        settings: Settings,
        node: Node,
        on_notice: OnNotice,
        roster: OpenRoster,
        *,
        recording: Recording | None = None,
        survives: bool = False,
        on_event: Listener | None = None,
        observer: Observer | None = None,
    ) -> None:
        """`survives`: go on without members that are lost, until they are heard again."""
        self.settings = settings
        self.host = Host(
            settings, node, on_notice, roster=roster, recording=recording, survives=survives, on_event=on_event,
            observer=observer,
        )  # fmt: skip
        self.host.on_failed = self._failed
        self.on_lost: Callable[[int], None] | None = None
        """Called with each visitor that is lost and never comes back."""
        self.waits_for_visitors = False
        """Whether a silent visitor may come back, until it is dismissed."""
        self._roster = roster

    async def __aenter__(self) -> HubHost:
        await self.host.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
        else:
            await self.host.stop(LEFT_EARLY)

    @property
    def failure(self) -> QuireError | None:
        """What has ended the service here, if it did not end well."""
        return self.host.failure

    async def until_ended(self) -> None:
        """Return when the service has ended here, well or by a `failure`."""
        await self.host.until_ended()

    def dismiss(self, visitor: int, why: str) -> None:
        """Drop a visitor, and tell it why."""
        if visitor in self._roster.peers:
            self._roster.dismiss(visitor, why)
        if self.on_lost is not None:
            self.host.report(Event("evicted", (visitor,), why=why))
            self.on_lost(visitor)

    async def close(self) -> None:
        """A visitor leaves when nothing of its own is unfinished; a member at once."""
        await self.host.leave(self._roster.unheard, CLOSE_S)
        if self.failure is not None:
            raise self.failure

    def _failed(self, by: int | None, error: GroupFailed) -> bool:
        if by is not None and self._roster.is_visitor(by):
            if self.waits_for_visitors and isinstance(error, MemberUnreachable):
                self._roster.peers[by].away = True
            else:
                self.dismiss(by, str(error))
        elif isinstance(error, Dismissed):
            self.host.fail(Evicted(error.why))
        else:
            return False
        return True
