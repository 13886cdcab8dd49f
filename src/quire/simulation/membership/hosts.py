"""The hosts on which processes of a group with changing membership run: their disks and their applications.

A disk keeps synced records and any prefix of the unsynced ones. The application's state is a log of deliveries.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quire.simulation.membership.observer import Observer
from quire.views.codec import GroupCodec
from quire.views.core import GroupSettings
from quire.views.effects import Checkpoint, Close, Deliver, Effect, Install, ProcessEffect, ReadReady, Restore, Save, Send
from quire.views.member import Member
from quire.views.packets import Data, Vote
from quire.views.records import Caught
from quire.views.view import Participant

Operation = tuple[str, int]
"""A session, and the number of one of its operations."""


class Host:
    """A named host and what its processes left behind; at most one process runs at a time."""

    def __init__(self, name: str, weight: int, cluster: str) -> None:
        self.name = name
        self.weight = weight
        self.cluster = cluster
        """The cluster it wants to be in, across restarts."""
        self.member: Member | None = None
        self.life = 0
        """How many times it was started."""
        self.incarnation = 0
        self.paused = False
        self.log: list[Operation] = []
        """The application's state: what was delivered, in order."""
        self.journal: list[bytes] = []
        self.dropped = 0
        """How many records were dropped before those in the journal."""
        self.synced = 0
        """How many of those in the journal are durable."""

    @property
    def running(self) -> bool:
        return self.member is not None

    def is_over(self) -> bool:
        return self.member is not None and self.member.core.mode in ("left", "closed")


class Hosts:
    def __init__(self, settings: GroupSettings, names: Sequence[Participant]) -> None:
        self.settings = settings
        self.processes = {one.name: Host(one.name, one.weight, one.cluster) for one in names}
        self.observer = Observer(settings)
        self.codec = GroupCodec(settings.protocol)
        """Records and packets are encoded to bytes, as on disks and over sockets."""
        self.hasty = False

    # Processes.

    def start(self, name: str, *, founds: bool) -> None:
        host = self.processes[name]
        host.life += 1
        host.incarnation += 1
        host.log = []
        host.journal, host.dropped, host.synced = [], 0, 0
        me = Participant(name, host.incarnation, host.weight, host.cluster)
        host.member = Member(self._settings_of(name), me, f"{name}.{host.life}", founds=founds)
        self._started(host)

    def restart(self, name: str) -> None:
        host = self.processes[name]
        if not self.settings.journal or not host.journal:
            self.start(name, founds=False)
            return
        host.life += 1
        host.log = []
        host.dropped, host.synced = 0, len(host.journal)
        host.member = Member.restart(self._settings_of(name), map(self.codec.record, host.journal))
        self.observer.restarted(name)
        self._started(host)

    def _end(self, name: str, kept: int) -> None:
        """A process has ended. `kept`: how many unsynced records are on the disk nevertheless."""
        host = self.processes[name]
        assert host.member is not None
        host.incarnation = host.member.core.me.incarnation
        host.member = None
        host.paused = False
        del host.journal[min(len(host.journal), host.synced + kept) :]
        self.observer.crashed(name, journal=self.settings.journal)

    def _settings_of(self, name: str) -> GroupSettings:  # noqa: ARG002 - Some worlds tell not everybody everything.
        return self.settings

    def _started(self, host: Host) -> None:
        """Start the member of a host."""
        raise NotImplementedError

    def _member(self, name: str) -> Member:
        member = self.processes[name].member
        assert member is not None
        return member

    def _hears(self, name: str) -> bool:
        return self.processes[name].running and not self.processes[name].paused

    # Disks.

    def sync(self, name: str) -> None:
        host = self.processes[name]
        host.synced = len(host.journal)
        self._synced(name, host.dropped + host.synced)

    def _synced(self, name: str, number: int) -> None:
        raise NotImplementedError

    def shorten_journal(self, name: str) -> None:
        """Drop records from the journal that no longer count."""
        host = self.processes[name]
        kept = self._member(name).to_keep()
        if kept is not None:
            state = Caught(kept.position, kept.table, msgspec.msgpack.encode(host.log))
            host.dropped += len(host.journal) - 2
            host.journal = [b"".join(self.codec.encode_record(record)) for record in (kept, state)]
            self.sync(name)

    # Effects.

    def _checkpointed(self, name: str, state: bytes) -> None:
        raise NotImplementedError

    def _run(self, name: str, effects: Sequence[Effect | ProcessEffect]) -> None:
        for effect in effects:
            self._perform(name, effect)
        self.observer.kept(name, self._member(name))

    def _observe(self, name: str, effect: Send) -> None:
        """Observe a packet that a member sends."""
        member, packet = self._member(name), effect.packet
        if isinstance(packet, Data):
            self.observer.sent(name, packet)
        elif isinstance(packet, Vote) and packet.epoch == member.core.view.epoch:
            self.observer.voted(name, member)

    def _perform(self, name: str, effect: Effect | ProcessEffect) -> None:
        """Perform an effect on the disk or the application."""
        host, observer, member = self.processes[name], self.observer, self._member(name)
        match effect:
            case Save():
                assert effect.number == host.dropped + len(host.journal) + 1
                host.journal.append(b"".join(self.codec.encode_record(effect.record)))
            case Deliver():
                entry = effect.entry
                host.log += [(entry.session, entry.number + step) for step in range(entry.run.count)]
                observer.delivered(name, entry, effect.index, host.log)
            case Install():
                observer.installed(name, effect.view, host.log, joined=effect.joined)
            case Checkpoint():
                self._checkpointed(name, msgspec.msgpack.encode(host.log))
            case Restore():
                host.log = msgspec.msgpack.decode(effect.state, type=list[Operation]) if effect.state else []
                observer.restored(name, effect.position, host.log)
            case ReadReady():
                observer.read_ended(name, effect.token, host.log)
            case Close():
                decided = member.membership.agreement.decided
                if decided is not None and decided.terminal:
                    observer.closed(name, effect.epoch, member, host.log)
            case _:
                pass
