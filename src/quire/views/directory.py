"""Who there is, where everybody is to be found, and whose connections these are."""

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
        """Whose connections these are."""
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
        """Take over where a process says that it is. Of others it may know what was true once: that counts only for those of
        whom nothing is known."""
        self.addresses[theirs.name] = theirs.address
        for name, address in theirs.addresses.items():
            if name not in self.addresses and name != self._mine.name:
                self.addresses[name] = address
                self.peer(name, now)

    def is_myself(self, theirs: Introduction) -> bool:
        return (theirs.group, theirs.name, theirs.life) == (self._mine.group, self._mine.name, self._mine.life)

    def strike_out(self, contact: str | None) -> None:
        """Nobody else is to be found there."""
        if contact is not None:
            self._contacts.pop(contact, None)

    def forget_closed(self, peer: Peer) -> None:
        """Some of its connections are not used any more."""
        still = peer.all_connections()
        for connection in [one for one, whose in self.on.items() if whose is peer and one not in still]:
            del self.on[connection]

    def missing(self, core: Core) -> tuple[Sequence[str], Sequence[str]]:
        """The addresses of those with whom there should be connections, and of all with whom there is none: a member wants them
        with all members, and whoever is not where it should be, with everybody."""
        if core.mode in ("left", "closed"):
            return (), ()  # Whoever still wants to know how it ended comes by itself.
        is_settled, members = core.mode == "normal", core.view.names()
        missing = {
            name: at for name, at in self.addresses.items() if name not in self.peers or not self.peers[name].all_connections()
        }
        wanted = [at for name, at in missing.items() if not is_settled or name in members]
        if not is_settled or not self.on:
            reached = {peer.address for peer in self.on.values()}
            wanted += [at for at in self._contacts if at not in wanted and at not in reached]
        return wanted, list(missing.values())
