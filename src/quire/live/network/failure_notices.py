"""Notices that tell the peers why this member gives up on the group, so that they neither wait for it nor blame it.

Before the group has started, the members' settings may turn out not to fit together. A member that finds that out stays for a
moment to notify those that are just connecting. Later, a member may be lost, misbehave, or leave by an exception of its
application.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol as Interface

import msgspec

from quire.live.errors import GroupFailed
from quire.live.network.connection import Connection
from quire.live.network.gathering import Gathering
from quire.live.network.liveness import Liveness
from quire.live.network.peers import Peer
from quire.live.network.verdicts import LEFT, Verdict, encode, verdict_of
from quire.live.settings import Settings
from quire.model.errors import QuireError
from quire.wire.frames import GAVE_UP, control_frame


class Owner(Interface):
    def given_up(self, by: int, error: GroupFailed) -> None: ...


class FailureNotices:
    """Sends this member's notice, once, and handles those of the peers."""

    def __init__(
        self, settings: Settings, peers: Mapping[int, Peer], gathering: Gathering, liveness: Liveness, owner: Owner
    ) -> None:
        self._settings = settings
        self._peers = peers
        self._gathering = gathering
        self._liveness = liveness
        self._owner = owner

    async def cannot_start(self, error: QuireError) -> None:
        """The group cannot start: tell the peers that are there and, if it never can, those that are just connecting."""
        verdict = self._gathering.verdict
        self._tell_all(verdict or verdict_of(error))
        if verdict is not None:
            await self._gathering.until_all_know()

    def has_failed(self, error: QuireError) -> None:
        """The group has failed here: tell the others why, and stop watching them."""
        self._tell_once(verdict_of(error))

    def leaves(self) -> None:
        """This member leaves a group that is neither closed nor has failed."""
        self._tell_once(Verdict("unreachable", self._settings.me, LEFT))

    def heard(self, connection: Connection, verdict: Verdict) -> None:
        """A peer says why it gives up on the group."""
        peer = self._peers.get(-1 if connection.peer is None else connection.peer)
        if peer is None or peer.connection is not connection:
            return
        error = verdict.error(peer.member, peer.address, self._settings.me, self._settings.members)
        if self._liveness.started:
            self._owner.given_up(peer.member, error if isinstance(error, GroupFailed) else GroupFailed(str(error)))
        elif verdict.what == "mismatch" or (verdict.started and self._is_needed(peer)):
            self._gathering.cannot_be(error)
        else:
            # It may be restarted while there is time.
            connection.close(f"it stopped waiting: {error}")

    def _is_needed(self, peer: Peer) -> bool:
        """Whether the group cannot go on without this peer's process: the peer is a member, and cannot be restarted."""
        return self._settings.restartable <= peer.member < len(self._settings.members)

    def _tell_once(self, verdict: Verdict) -> None:
        if self._liveness.started and not self._liveness.over:
            self._tell_all(msgspec.structs.replace(verdict, started=True))
        self._liveness.over = True

    def _tell_all(self, verdict: Verdict) -> None:
        for peer in self._peers.values():
            if peer.connection is not None:
                peer.connection.write(control_frame(GAVE_UP, encode(verdict)))
                self._gathering.knows(peer.member)
