"""The processes that this one knows: their addresses, and the connections with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from quire.views.core import Core
from quire.views.introductions import Introduction
from quire.views.peers import Peer


class Directory:
    def __init__(self, mine: Introduction, contacts: Iterable[str]) -> None:
        self.peers: dict[str, Peer] = {}
        self.on: dict[int, Peer] = {}
        """The peer at the other end of each connection."""
        self.addresses = {name: at for name, at in mine.addresses.items() if name != mine.name}
        self._mine = mine
        self._contacts = dict.fromkeys(at for at in contacts if at != mine.address)

    def introduction(self, incarnation: int) -> Introduction:
        addresses = {**self.addresses, self._mine.name: self._mine.address}
        return msgspec.structs.replace(self._mine, incarnation=incarnation, addresses=addresses)

    def peer(self, name: str, now: float) -> Peer:
        peer = self.peers.get(name)
        if peer is None:
            peer = self.peers[name] = Peer(name, now, decides=self._mine.name > name)
        return peer

    def learn(self, theirs: Introduction, now: float) -> None:
        """Take over the addresses in an introduction. A process is right about its own address, but what it says of others may
        be out of date, so that counts only for processes that are not known here yet."""
        self.addresses[theirs.name] = theirs.address
        for name, address in theirs.addresses.items():
            if name not in self.addresses and name != self._mine.name:
                self.addresses[name] = address
                self.peer(name, now)

    def is_myself(self, theirs: Introduction) -> bool:
        return (theirs.group, theirs.name, theirs.life) == (self._mine.group, self._mine.name, self._mine.life)

    def strike_out(self, contact: str | None) -> None:
        """Forget a contact: its address is that of this process itself."""
        if contact is not None:
            self._contacts.pop(contact, None)

    def forget_closed(self, peer: Peer) -> None:
        """Forget the connections that the peer no longer has."""
        still = peer.all_connections()
        for connection in [one for one, whose in self.on.items() if whose is peer and one not in still]:
            del self.on[connection]

    def missing(self, core: Core) -> tuple[Sequence[str], Sequence[str]]:
        """The addresses to which a connection is wanted, and all addresses to which there is none. In normal operation a member
        wants connections with all members of its view; at other times, with every process that it knows."""
        if core.mode in ("left", "closed"):
            return (), ()  # A process that still needs to learn the outcome will connect by itself.
        is_settled, members = core.mode == "normal", core.view.names()
        missing = {
            name: at for name, at in self.addresses.items() if name not in self.peers or not self.peers[name].all_connections()
        }
        wanted = [at for name, at in missing.items() if not is_settled or name in members]
        if not is_settled or not self.on:
            reached = {peer.address for peer in self.on.values()}
            wanted += [at for at in self._contacts if at not in wanted and at not in reached]
        return wanted, list(missing.values())
