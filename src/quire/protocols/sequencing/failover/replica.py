"""One copy of a unit, as primary or backup: the primary replicates each input before it releases the output.

The primary of an epoch handles an input as any sequencer does, gives it the next number and sends this *record* to all backups,
which handle it in the same way: a sequencer is deterministic and does not depend on time, so all copies are equal after the
same records. The primary holds back its output for an input until every backup of the epoch has acknowledged everything up to
that input; this includes answers to retransmitted requests. So everything that anybody ever saw of a unit follows from the
state of each copy of that epoch, and any of them can become primary and go on as if nothing had happened. If output that was
held back is lost, clients ask again.

An epoch begins with the primary's whole state, sent to all backups, also to those that were backups before: they may have
records that nobody else has. When all have it, the register marks the epoch *live*, and only then are inputs handled and output
sent. From then on, until the next epoch is live, the register makes only copies of this epoch primary. A copy that has heard of
an epoch ignores everything from other ones: a primary that was replaced can never again get its records acknowledged by all.

Assumes: crash-stop processes with a new name for each life, any network, a register that is linearised, and that not all copies
of the last live epoch are gone.
Guarantees: what leaves a unit is what a sequencer that never fails could have said.
Departures: a record is the input instead of the state that follows from it, which is shorter; so what only hurries a client
along is recorded as well.
Cost: one record and one acknowledgement a backup for each input, and a round trip between them before anything leaves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from quire.model.errors import BadInput, ProtocolViolation
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, REGISTER, Configuration, Name, Routes
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.failover.rebuilding import Rebuilding
from quire.protocols.sequencing.failover.rebuilt import renew
from quire.protocols.sequencing.failover.unit_state import captured, restore
from quire.protocols.sequencing.sequencer import Sequencer

PIECE_BYTES = 1 << 20
"""A state may be long, and travels in pieces."""
PIECES_ON_THE_WAY = 8
UNACKNOWLEDGED_MAX = 1 << 14
"""How many records may be without the acknowledgement of a backup; beyond, inputs are dropped and come again."""


class Replica:
    """One copy of a unit, created with the first configuration that includes this process."""

    def __init__(
        self, unit: int, me: Name, register: int, routes: Routes, units: tuple[int, ...], options: SurvivingOptions
    ) -> None:
        self.unit = unit
        self.epoch = -1
        self.sequencer: Sequencer | None = None
        """The state; None where there is none yet, or no more."""
        self.index = 0
        """How many records it has."""
        self.primary = False
        self.live = False
        self._me = me
        self._register = register
        self._routes = routes
        self._options = options
        self._make: Callable[[], Sequencer] = lambda: Sequencer(unit, units, REGISTER, options)
        self._backups: tuple[Name, ...] = ()
        self._rebuilding: Rebuilding | None = None
        """At a primary that is not live and has no state: how it gets one."""
        self._synced = False
        """For a backup: whether it has the state with which the epoch began."""
        self._pieces: list[bytes] = []
        """At a primary that is not live, the state with which the epoch begins; at a backup, what has come of it."""
        self._taken: dict[Name, int] = {}
        """How many pieces each backup has."""
        self._acknowledged: dict[Name, int] = {}
        self._records: dict[int, wire.Record] = {}
        """At the primary, what some backup may lack; at a backup, what came too early."""
        self._on_the_way = 0
        """Records after this one were sent since the last tick, so that their acknowledgements may be on the way."""
        self._kept_back: deque[tuple[int, Send]] = deque()

    # Configurations.

    def cannot_run(self, found: Configuration) -> bool:
        """Whether the register gives the unit to this process although it has no state of it."""
        new = found.epoch > self.epoch and found.primary == self._me
        return new and not found.fresh and not found.rebuilt and self.sequencer is None

    def configure(self, now: int, found: Configuration) -> list[Send]:
        """The register says who runs the unit."""
        if found.epoch < self.epoch:
            return []
        if found.epoch == self.epoch:
            return self._goes_live(now) if found.live and self.primary and not self.live else self._forget_if_excluded(found)
        self.epoch, self.live = found.epoch, False
        self.primary, self._backups = found.primary == self._me, found.backups
        self._synced = False
        self._rebuilding = None
        self._pieces.clear()
        self._taken.clear()
        self._acknowledged.clear()
        self._records.clear()
        self._kept_back.clear()
        if not self.primary:
            return self._forget_if_excluded(found)
        if found.fresh:
            self.sequencer, self.index = self._make(), 0
            self.sequencer.moves.settled = found.settled
        if found.rebuilt:
            self.sequencer, self._rebuilding = None, Rebuilding(found, self._register, self._options)
            return self._rebuilding.begin()
        if found.life and self.sequencer is not None:
            # Clients may have promised to believe nothing earlier, to somebody who was never live.
            incoming = [state for states in self.sequencer.moves.taking.values() for state in states.values()]
            for state in (*self.sequencer.groups.values(), *incoming):
                renew(state, found.life)
        return self._synchronise()

    def _forget_if_excluded(self, found: Configuration) -> list[Send]:
        """Drop the state only when others are known to have it: until then this copy may be called back."""
        if found.live and self._me not in found.names:
            self.sequencer = None
        return []

    def _synchronise(self) -> list[Send]:
        """Start the epoch: send the state to every backup, and tell the register when all have it."""
        lacking = [each for each in self._backups if each not in self._acknowledged]
        if self.sequencer is None:
            assert self._rebuilding is not None
            return self._rebuilding.repeat()
        if not lacking:
            lost = () if self._rebuilding is None else self._rebuilding.lost
            return [Send(wire.InSync(self.unit, self.epoch, lost), (self._register,))]
        if not self._pieces:
            state = captured(self.sequencer)
            self._pieces = [state[start : start + PIECE_BYTES] for start in range(0, len(state), PIECE_BYTES)]
        effects: list[Send] = []
        for have in sorted({self._taken.get(each, 0) for each in lacking}):
            to = tuple(each.address for each in lacking if self._taken.get(each, 0) == have)
            effects += self._pieces_from(have, have + PIECES_ON_THE_WAY, to)
        return effects

    def _pieces_from(self, first: int, end: int, to: tuple[int, ...]) -> list[Send]:
        count = len(self._pieces)
        return [
            Send(wire.Snapshot(self.unit, self.epoch, self.index, number, count, self._pieces[number]), to)
            for number in range(first, min(end, count))
        ]

    def taken(self, packet: wire.Taken, backup: Name) -> list[Send]:
        """A backup has part of the state: send the next pieces."""
        before = self._taken.get(backup, 0)
        wanted = self.primary and not self.live and backup in self._backups
        if packet.epoch != self.epoch or not wanted or not before < packet.pieces < len(self._pieces):
            return []
        self._taken[backup] = packet.pieces
        return self._pieces_from(before + PIECES_ON_THE_WAY, packet.pieces + PIECES_ON_THE_WAY, (backup.address,))

    def rebuild(self, packet: wire.Witnesses | wire.Testimony, source: int) -> list[Send]:
        """A report has arrived from which this unit is rebuilt."""
        rebuilding = self._rebuilding
        if rebuilding is None or packet.epoch != self.epoch or self.sequencer is not None:
            return []
        effects: list[Send] = []
        if isinstance(packet, wire.Witnesses):
            effects += rebuilding.witnessed(packet)
        else:
            rebuilding.testify(source, packet)
        self.sequencer = rebuilding.completed(self._make)
        return effects if self.sequencer is None else self._synchronise()

    def goes_live(self, now: int, epoch: int) -> list[Send]:
        return self._goes_live(now) if epoch == self.epoch and self.primary and not self.live else []

    def _goes_live(self, now: int) -> list[Send]:
        assert self.sequencer is not None
        self.live = True
        self._pieces.clear()
        self.sequencer.begin(now)
        # Clients that heard of this epoch before it was live have asked in vain, and ask again only when this is news.
        self._routes.went_live(self.unit, self.epoch)
        clients = {client for state in self.sequencer.groups.values() for client in (*state.reached, *state.senders)}
        news = wire.Configured(self._routes.version, self._routes.known())
        return [Send(news, tuple(sorted(clients)))] if clients else []

    # At the primary.

    def take(self, now: int, source: int, packet: wire.Input) -> list[Send]:
        """An input from a client, another unit or the register. If no correct peer would have sent it, raises
        ProtocolViolation and changes nothing."""
        if not self.live or len(self._records) >= UNACKNOWLEDGED_MAX:
            return []
        assert self.sequencer is not None
        unchanged = self.sequencer.changes_nothing(packet)
        said = self.sequencer.receive(now, source, packet)
        effects: list[Send] = []
        if not unchanged:
            self.index += 1
            record = wire.Record(self.unit, self.epoch, self.index, source, packet)
            if self._backups:
                self._records[self.index] = record
                effects.append(Send(record, tuple(each.address for each in self._backups)))
        self._keep_back(said)
        return [*effects, *self._release()]

    def suspect(self, client: int) -> list[Send]:
        """The driver of the process has lost the client."""
        if self._rebuilding is not None and not self.live:
            return self._rebuilding.suspect(client)
        if not self.live or self.sequencer is None:
            return []
        self._keep_back(self.sequencer.suspect(client))
        return self._release()

    def _keep_back(self, said: Effects) -> None:
        for effect in said:
            assert isinstance(effect, Send)
            self._kept_back.append((self.index, effect))

    def _release(self) -> list[Send]:
        """Release the output of records that all backups have."""
        released: list[Send] = []
        safe = min((self._acknowledged.get(each, -1) for each in self._backups), default=self.index)
        while self.live and self._kept_back and self._kept_back[0][0] <= safe:
            released += self._addressed(self._kept_back.popleft()[1])
        return released

    def _addressed(self, send: Send) -> Iterable[Send]:
        """Replace logical addresses by those of processes."""
        clients = tuple(each for each in send.to if not self._is_unit(each) and each != REGISTER)
        if clients:
            yield Send(wire.Letter(CLIENT, self.unit, self.epoch, send.packet), clients)  # type: ignore[arg-type]
        for each in send.to:
            if each == REGISTER:
                yield Send(wire.Letter(REGISTER, self.unit, self.epoch, send.packet), (self._register,))  # type: ignore[arg-type]
            elif (address := self._routes.primaries.get(each)) is not None and self._is_unit(each):
                yield Send(wire.Letter(each, self.unit, self.epoch, send.packet), (address,))  # type: ignore[arg-type]

    def _is_unit(self, address: int) -> bool:
        assert self.sequencer is not None
        return self.sequencer.permissions.is_sequencer(address)

    def acknowledged(self, packet: wire.Recorded, backup: Name) -> list[Send]:
        if packet.epoch != self.epoch or not self.primary or backup not in self._backups or packet.index > self.index:
            return []
        self._acknowledged[backup] = max(packet.index, self._acknowledged.get(backup, -1))
        if not self.live:
            return self._synchronise() if len(self._acknowledged) == len(self._backups) else []
        common = min(self._acknowledged.get(each, -1) for each in self._backups)
        while self._records and (first := next(iter(self._records))) <= common:
            del self._records[first]
        return self._release()

    # At a backup.

    def install(self, packet: wire.Snapshot, source: int) -> list[Send]:
        if packet.epoch != self.epoch or self.primary:
            return []
        if self._synced:
            return self._acknowledge(source)
        if packet.piece == len(self._pieces) < packet.pieces - 1:
            self._pieces.append(packet.state)
        if packet.piece != packet.pieces - 1 or len(self._pieces) != packet.piece:
            return [Send(wire.Taken(self.unit, self.epoch, self._me.life, len(self._pieces)), (source,))]
        sequencer = self._make()
        try:
            restore(sequencer, b"".join((*self._pieces, packet.state)))
        except BadInput as error:
            raise ProtocolViolation(source, str(error)) from error
        self._pieces.clear()
        self.sequencer, self.index, self._synced = sequencer, packet.index, True
        return self._acknowledge(source)

    def apply(self, now: int, packet: wire.Record, source: int) -> list[Send]:
        """Repeat what the primary did, one record after the other, without gaps."""
        if packet.epoch != self.epoch or not self._synced:
            return []
        assert self.sequencer is not None
        if self.index < packet.index <= self.index + UNACKNOWLEDGED_MAX:
            self._records[packet.index] = packet
        while (following := self._records.pop(self.index + 1, None)) is not None:
            try:
                self.sequencer.receive(now, following.source, following.packet)
            except ProtocolViolation:
                if following is packet:
                    raise
                break  # It came too early, and is as good as lost.
            self.index = following.index
        return self._acknowledge(source)

    def _acknowledge(self, primary: int) -> list[Send]:
        return [Send(wire.Recorded(self.unit, self.epoch, self._me.life, self.index), (primary,))]

    # Time.

    def repeat(self) -> list[Send]:
        """Called once per tick: what to retransmit, either the state with which the epoch begins or the records that a
        backup lacks."""
        if not self.primary:
            return []
        if not self.live:
            return self._synchronise()
        effects: list[Send] = []
        for backup in self._backups:
            lacking = range(self._acknowledged.get(backup, -1) + 1, self._on_the_way + 1)
            effects += [Send(self._records[index], (backup.address,)) for index in lacking if index in self._records]
        self._on_the_way = self.index
        return effects

    def wake(self, now: int) -> list[Send]:
        """Let the sequencer retransmit what is due. That changes nothing that backups need to know."""
        if not self.live or self.sequencer is None or (due := self.sequencer.due()) is None or due > now:
            return []
        self._keep_back(self.sequencer.wake(now))
        return self._release()

    def due(self) -> int | None:
        return self.sequencer.due() if self.live and self.sequencer is not None else None

    def idle(self) -> bool:
        """Whether nothing is pending here."""
        if not self.primary:
            return True
        return self.live and not self._records and not self._kept_back and (self.sequencer is None or self.sequencer.idle())
