"""A world of whole processes of a group with changing membership, on a virtual network with a clock, one step at a time."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quire.model.payloads import Messages
from quire.simulation.membership.hosts import Host, Hosts
from quire.simulation.membership.network import Dial, End, VirtualNetwork
from quire.views.core import GroupSettings
from quire.views.effects import Connect, Disconnect, Effect, ProcessEffect, Send, Write
from quire.views.introductions import Introduction
from quire.views.member import Member
from quire.views.process import Process
from quire.views.timing import Timing
from quire.views.view import Participant


class _Observed(Process):
    """A process whose packets are observed before they are encoded, in order with its other effects."""

    def send(self, effect: Send, out: list[ProcessEffect]) -> None:
        out.append(effect)  # type: ignore[arg-type]
        super().send(effect, out)


class ProcessWorld(Hosts):
    """Founders know each other's addresses; a joining process knows only those of its `contacts`, or all if none are given."""

    def __init__(
        self,
        settings: GroupSettings,
        names: Sequence[Participant],
        timing: Timing | None = None,
        contacts: Sequence[str] | None = None,
    ) -> None:
        super().__init__(settings, names)
        self._contacts = [address_of(name) for name in contacts or self.processes]
        self.timing = timing or Timing(stall_s=4.0)
        self.network = VirtualNetwork()
        self.now = 0.0
        self._running: dict[str, Process] = {}

    # Processes.

    def _settings_of(self, name: str) -> GroupSettings:
        """The settings of a process: one that joins does not know the founders."""
        founds = any(founder.name == name for founder in self.settings.founders)
        return self.settings if founds else msgspec.structs.replace(self.settings, founders=())

    def _started(self, host: Host) -> None:
        member = self._member(host.name)
        founders = [founder.name for founder in self.settings.founders]
        known = {name: address_of(name) for name in founders} if host.name in founders else {}
        mine = Introduction(
            group="simulated",
            name=host.name,
            life=host.life,
            incarnation=member.core.me.incarnation,
            address=address_of(host.name),
            facts="",
            addresses=known,
        )
        process = self._running[host.name] = _Observed(member, mine, self.timing, self._contacts)
        self._begins(host.name, process)
        self._run(host.name, process.start(self.now))

    def _begins(self, name: str, process: Process) -> None:
        """A process has been created and is about to begin."""

    def crash(self, name: str, lost: dict[str, int] | None = None, kept: int = 0, *, silent: bool = False) -> None:
        """Crash a process. `lost`: how many of its last writes in flight to each other process are lost. `kept`: how many
        unsynced records are on the disk nevertheless. `silent`: its connections do not end, as if the whole machine were
        gone."""
        self._end(name, kept)
        del self._running[name]
        for end in self.network.crash(name):
            self.network.lose(end, (lost or {}).get(end.name, 0))
            end.stalled = silent

    def process(self, name: str) -> Process:
        return self._running[name]

    def member(self, name: str) -> Member:
        return self._member(name)

    # Steps.

    def submit(self, name: str, payloads: Sequence[bytes]) -> None:
        core = self.member(name).core
        if not (core.closing or core.leaving or core.mode in ("left", "closed")):
            self._run(name, self.process(name).submit(self.now, Messages.of(payloads)))

    def ballot(self, name: str) -> None:
        self._run(name, self.process(name).start_ballot(self.now))

    def suspect(self, name: str, other: str) -> None:
        self._run(name, self.process(name).suspect(self.now, other, "a wrong hint"))

    def trust(self, name: str, other: str) -> None:
        self._run(name, self.process(name).trust(self.now, other))

    def leave(self, name: str) -> None:
        if not self.member(name).core.closing:
            self._run(name, self.process(name).leave(self.now))

    def move(self, name: str, cluster: str) -> None:
        core = self.member(name).core
        if not (core.closing or core.leaving or core.mode in ("left", "closed")):
            self.processes[name].cluster = cluster
            self._run(name, self.process(name).move(self.now, cluster))

    def close(self, name: str) -> None:
        if not self.member(name).core.leaving:
            self._run(name, self.process(name).close(self.now))

    def read(self, name: str, token: int) -> None:
        self.observer.read_began(name, token)
        self._run(name, self.process(name).read(self.now, token))

    def _synced(self, name: str, number: int) -> None:
        self._run(name, self.process(name).synced(self.now, number))

    def _checkpointed(self, name: str, state: bytes) -> None:
        self._run(name, self.process(name).checkpointed(self.now, state))

    # Time.

    def due(self) -> list[str]:
        """The processes whose timers are due."""
        return [name for name in self.processes if self._hears(name) and self.process(name).due <= self.now]

    def time(self, name: str) -> None:
        for end in self.network.overdue(self.now):
            if end.name == name:
                self._ended(end)
        self._run(name, self.process(name).time(self.now))

    # The network.

    def readable(self) -> list[End]:
        """The ends at which something can arrive now."""
        return [end for end in self.network.readable() if self._hears(end.name)]

    def arrive(self, end: End, items: int = 1, *, ends_turn: bool = True) -> None:
        """This many writes arrive together at an end of a connection or, if there are none, the end of the connection.
        `ends_turn`: nothing else arrives at the same time."""
        process = self.process(end.name)
        process.hasty = self.hasty
        if not end.inbox:
            self._ended(end)
            return
        if isinstance(introduction := end.inbox[0], Introduction):
            end.inbox.popleft()
            end.is_introduced = True
            items -= 1
            self._run(end.name, process.connected(self.now, end.number, introduction, dialled=end.dialled))
        self._run(end.name, process.received(self.now, end.number, end.frames(items)))
        if ends_turn:
            self.end_turn(end.name)

    def end_turn(self, name: str) -> None:
        self._run(name, self.process(name).end_turn(self.now, may_wait=True))
        if self.process(name).member.waits:
            self._run(name, self.process(name).end_turn(self.now))

    def _ended(self, end: End) -> None:
        """A connection has ended here. Before the other end's introduction, the process does not know of it."""
        process = self.process(end.name)
        self.network.close(end.number)
        if end.is_introduced:
            self._run(end.name, process.disconnected(self.now, end.number))
        elif end.dialled is not None:
            self._run(end.name, process.not_connected(self.now, end.dialled, refused=False))

    def dial(self, name: str, to: str) -> None:
        self.network.dials.append(Dial(name, address_of(to)))

    def answer(self, dial: Dial) -> None:
        """Answer an attempt to connect."""
        self.network.dials.remove(dial)
        host, dialler = self.processes[name_at(dial.address)], self.process(dial.name)
        if host.paused or self.network.is_blocked(dial.name, host.name):
            self._run(dial.name, dialler.not_connected(self.now, dial.address, refused=False))
        elif not host.running:
            self._run(dial.name, dialler.not_connected(self.now, dial.address, refused=True))
        else:
            self.network.connect(dial, dialler.introduction(), self.process(host.name).introduction(), self.now)

    def _perform(self, name: str, effect: Effect | ProcessEffect) -> None:
        match effect:
            case Send():
                self._observe(name, effect)
            case Write():
                for connection, parts in effect.frames:
                    self.network.write(connection, b"".join(parts))
            case Connect():
                self.network.dials.append(Dial(name, effect.address))
            case Disconnect():
                self.network.close(effect.connection)
            case _:
                super()._perform(name, effect)


def address_of(name: str) -> str:
    return f"{name}:1"


def name_at(address: str) -> str:
    return address.removesuffix(":1")
