"""Admission of peers: this member's introduction to a connecting peer, and the check of the peer's."""

from __future__ import annotations

from collections.abc import Callable

from quire.live.errors import GroupFailed
from quire.live.network.connection import Connection
from quire.live.network.gathering import Gathering
from quire.live.network.liveness import Liveness
from quire.live.network.losses import ANOTHER, Losses
from quire.live.network.rosters import Roster
from quire.live.settings import Introduction, Misfit, Settings
from quire.wire.frames import EPOCH


class Admission:
    """`failed` is called where a peer's introduction ends the group; `incarnation` is that of this process."""

    def __init__(
        self,
        settings: Settings,
        roster: Roster,
        gathering: Gathering,
        liveness: Liveness,
        losses: Losses,
        incarnation: int,
        failed: Callable[[GroupFailed], None],
    ) -> None:
        self._settings = settings
        self._roster = roster
        self._gathering = gathering
        self._liveness = liveness
        self._losses = losses
        self._incarnation = incarnation
        self._failed = failed

    def introduction_to(self, number: int, listens: tuple[str, ...]) -> Introduction:
        settings, known = self._settings, self._roster.receive(number)
        introduction = Introduction(
            group=settings.group,
            protocol=settings.protocol,
            options=settings.options_shown(),
            members=tuple(map(str, settings.members)),
            epoch=EPOCH,
            incarnation=self._incarnation,
            received=known.incoming.received,
            state=settings.state,
            durable=settings.durable,
            knows=known.incarnation if known.took_part() or number >= settings.restartable else None,
            listens=listens,
        )
        return self._roster.amend(known, introduction)

    def check(self, connection: Connection, introduction: Introduction) -> None:
        """Raises Misfit where this is not the same process as before."""
        assert connection.peer is not None
        peer = self._roster.peers[connection.peer]
        if (objection := self._roster.objection(peer, introduction, self._incarnation)) is not None:
            self._failed(objection)
        if self._roster.starts_anew(peer):
            return
        if peer.gone and (peer.incarnation == introduction.incarnation or peer.member >= self._settings.restartable):
            raise Misfit(f"member {peer.member} was declared lost and cannot come back")
        if self._gathering.obstacle is not None:
            self._gathering.knows(peer.member)
            raise Misfit(f"the group cannot start: {self._gathering.obstacle}")
        if introduction.knows not in (None, self._incarnation) and self._settings.me < self._settings.restartable:
            self._gathering.was_here_before()
        if peer.incarnation in (None, introduction.incarnation) or peer.member < self._settings.restartable:
            return
        if not self._liveness.started and peer.is_unused():
            # It was restarted before anything was sent to it or by it, so nothing is lost.
            peer.begin_anew()
            return
        peer.why_down = ANOTHER
        if self._liveness.started and connection.is_certain():
            self._losses.another_process(peer)
        raise Misfit(f"member {peer.member} is a different process than before; a restarted member cannot rejoin")
