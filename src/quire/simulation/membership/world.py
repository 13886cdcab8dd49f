"""A world of members on ideal links, for groups with changing membership, driven one step at a time.

A link leads from one running process to another, keeps order, and loses nothing while both run. When a process crashes, all
packets in flight to it are lost, and any suffix of those it has sent. Scripts decide what arrives when; whole processes, with
connections and time, are in processes.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from quire.model.payloads import Messages
from quire.simulation.membership.hosts import Host, Hosts
from quire.views.core import GroupSettings
from quire.views.effects import Effect, ProcessEffect, Send
from quire.views.packets import GroupPacket
from quire.views.view import Participant


class _InFlight(msgspec.Struct):
    packet: bytes
    source: str
    source_incarnation: int
    incarnation: int
    """For which it is; 0: for any."""


class World(Hosts):
    def __init__(self, settings: GroupSettings, names: Sequence[Participant]) -> None:
        super().__init__(settings, names)
        self.links: dict[tuple[str, int, str, int], deque[_InFlight]] = {}
        """The packets in flight from one incarnation of a process to one of another."""
        self.blocked: set[tuple[str, str]] = set()

    def _started(self, host: Host) -> None:
        self._run(host.name, self._member(host.name).start())

    def crash(self, name: str, lost: dict[str, int] | None = None, kept: int = 0) -> None:
        """Crash a process. `lost`: how many of its last packets in flight to each other process are lost. `kept`: how many
        unsynced records are on the disk nevertheless."""
        self._end(name, kept)
        self.links = {link: packets for link, packets in self.links.items() if packets and link[2] != name}
        for (source, life, to, _), packets in self.links.items():
            if source == name and life == self.processes[name].life:
                for _ in range(min(len(packets), (lost or {}).get(to, 0))):
                    packets.pop()

    # Steps.

    def submit(self, name: str, payloads: Sequence[bytes]) -> None:
        member = self._member(name)
        if not (member.core.closing or member.core.leaving or member.core.mode in ("left", "closed")):
            self._run(name, member.submit(Messages.of(payloads)))

    def tick(self, name: str) -> None:
        self._run(name, self._member(name).tick())

    def ballot(self, name: str) -> None:
        self._run(name, self._member(name).start_ballot(hasty=self.hasty))

    def suspect(self, name: str, other: str) -> None:
        self._run(name, self._member(name).suspect(other))

    def trust(self, name: str, other: str) -> None:
        self._run(name, self._member(name).trust(other))

    def leave(self, name: str) -> None:
        member = self._member(name)
        if not member.core.closing:
            self._run(name, member.leave())

    def move(self, name: str, cluster: str) -> None:
        self.processes[name].cluster = cluster
        self._run(name, self._member(name).move(cluster))

    def close(self, name: str) -> None:
        member = self._member(name)
        if not member.core.leaving:
            self._run(name, member.close())

    def read(self, name: str, token: int) -> None:
        self.observer.read_began(name, token)
        self._run(name, self._member(name).read(token))

    def _synced(self, name: str, number: int) -> None:
        self._run(name, self._member(name).synced(number))

    def _checkpointed(self, name: str, state: bytes) -> None:
        self._run(name, self._member(name).checkpointed(state))

    def deliverable(self) -> list[tuple[str, int, str, int]]:
        """The links on which something can arrive now."""
        return [
            link
            for link, packets in self.links.items()
            if packets and (link[0], link[2]) not in self.blocked and self._is_there(link[2], link[3])
        ]

    def arrive(self, link: tuple[str, int, str, int]) -> None:
        """The first packet of a link arrives."""
        packet = self.links[link].popleft()
        member = self._member(link[2])
        if packet.incarnation in (0, member.core.me.incarnation):
            read = self.codec.packet(packet.packet)
            effects = member.receive(packet.source, packet.source_incarnation, read, hasty=self.hasty)
            self._run(link[2], effects)

    def _is_there(self, name: str, life: int) -> bool:
        return self.processes[name].life == life and self._hears(name)

    def _perform(self, name: str, effect: Effect | ProcessEffect) -> None:
        if not isinstance(effect, Send):
            super()._perform(name, effect)
            return
        self._observe(name, effect)
        for to, addressee in effect.addressees():
            self._put(name, to, addressee, effect.packet)

    def _put(self, name: str, to: str, addressee: int, packet: GroupPacket) -> None:
        source, target = self.processes[name], self.processes.get(to)
        if target is None or target.member is None:
            return
        if addressee and target.member.core.me.incarnation != addressee:
            return
        link = (name, source.life, to, target.life)
        incarnation = self._member(name).core.me.incarnation
        packets = self.links.setdefault(link, deque())
        packets.append(_InFlight(self.codec.encode(packet), name, incarnation, addressee))
