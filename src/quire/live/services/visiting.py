"""Nodes whose peers come and go: members of a hub, and its visitors, with links to each other or without."""

from __future__ import annotations

from quire.live.errors import GroupFailed, MemberUnreachable, PeerMisbehaved
from quire.live.network.fellows import Fellowship
from quire.live.network.hub import Hub
from quire.live.network.mesh import Mesh
from quire.live.services.nodes import Host
from quire.live.settings import Address


class HubHost(Host):
    """A node at a hub, as a member or as a visitor. To a member, a visitor that is lost is lost for good."""

    _mesh: Hub

    def _make_mesh(self) -> Mesh:
        return Hub(self.settings, type(self.node).packets, self)

    def failed(self, error: GroupFailed) -> None:
        visitor = error.member if isinstance(error, MemberUnreachable) else self._mesh.served
        about_visitor = visitor is not None and self._mesh.is_visitor(visitor)
        if about_visitor and isinstance(error, MemberUnreachable | PeerMisbehaved):
            assert visitor is not None
            self._mesh.dismiss(visitor)
            if self.on_lost is not None:
                self.on_lost(visitor)
        else:
            super().failed(error)

    async def close(self) -> None:
        """A visitor goes when nothing of its own is unfinished; a member at once."""
        if not self._ended.is_set():
            await self._mesh.said_everything()
        await self._stop()
        if self.failure is not None:
            raise self.failure


class FellowHost(HubHost):
    """A node that visits a hub and has links to fellows."""

    _mesh: Fellowship

    def _make_mesh(self) -> Mesh:
        return Fellowship(self.settings, type(self.node).packets, self)

    @property
    def linked(self) -> set[int]:
        """The fellows to which there is a link at the moment."""
        return self._mesh.linked

    def listens_at(self) -> str:
        """Where fellows reach this node; empty: nowhere."""
        listen, port = self.settings.listen, self._mesh.port
        return "" if listen is None or port is None else str(Address(listen.host, port))

    def link(self, fellow: int, at: str) -> None:
        self._mesh.link(fellow, at)

    def keep_only(self, fellows: set[int]) -> None:
        """Have no more to do with other fellows."""
        for fellow in (self._mesh.linked | self._mesh.wanted.keys()) - fellows:
            self._mesh.dismiss(fellow)
