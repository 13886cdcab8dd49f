"""State transfer: how a process that is no member gets the members' state before it asks to join.

It first fetches a checkpoint of the application's state, in parts, from any member; then, repeatedly, what was delivered
since, until it is not far behind; and only then asks to join. So the group never waits for it. It is given only what every
later view is sure to have. A process that was a member before, and has delivered nothing that others may lack, goes on from
where it was.
"""

from __future__ import annotations

from collections.abc import Callable

from quire.views.core import Core
from quire.views.effects import Checkpoint, Restore
from quire.views.history import rest_of
from quire.views.packets import AskHistory, AskState, Entry, Gone, History, Join, StatePart
from quire.views.records import Caught, Learned
from quire.views.view import Joiner, Position

_MESSAGES_AT_ONCE = 1 << 16
_PARTS_AHEAD = 3
"""How many parts of a state are asked for before the first of them has come."""
_FORGET_AFTER = 100
"""How often a member's timer runs, without anybody asking, before the member drops its checkpoint."""


class Learner:
    """The side of the process that catches up."""

    def __init__(self, core: Core, *, has_state: bool) -> None:
        self._core = core
        self._has_state = has_state
        self._is_near = False
        self._parts: dict[int, bytes] = {}
        self._asked = 0
        """How many parts it has asked for."""
        self._checkpoint: Position | None = None
        self._turn = 0
        self._donor = ""
        """The member that it asks. Parts of checkpoints of different donors cannot be combined."""
        self._answered = True
        self._unanswered = 0
        """How often in a row it has asked without an answer."""
        self._was_answered = False
        """Whether this donor has answered a request for its state."""

    def tick(self) -> None:
        """Ask the donor; if it has not answered since the last time, ask another one. A donor that has answered before is given
        more time, because with another one the transfer starts again."""
        core = self._core
        donors = sorted(core.names - core.suspects - {core.me.name}) or sorted(core.names - {core.me.name})
        if not donors:
            return
        self._unanswered = 0 if self._answered else self._unanswered + 1
        if self._donor not in donors or self._unanswered > (core.settings.patience if self._was_answered else 0):
            self._unanswered, self._was_answered = 0, False
            self._turn += 1
            self._donor = donors[self._turn % len(donors)]
            self._begin_again()
        self._answered = False
        if self._has_state and self._is_near:
            self._ask_to_join()
        self._ask()

    def state_came(self, donor: str, packet: StatePart) -> None:
        if self._has_state or donor != self._donor:
            return
        self._answered = self._was_answered = True
        if not packet.total:
            return
        if packet.checkpoint != self._checkpoint:
            self._begin_again()
            self._checkpoint = packet.checkpoint
        if packet.index in self._parts:
            return
        self._parts[packet.index] = packet.data
        if len(self._parts) == packet.total:
            self._take_state(packet)
            self._ask()
        else:
            self._ask_ahead(packet.total)

    def history_came(self, donor: str, packet: History) -> None:
        core = self._core
        if donor != self._donor:
            return
        self._answered = True
        if not self._has_state or packet.since != core.position:
            return
        self.apply(packet.entries)
        is_near = packet.behind <= core.settings.near
        # A member without a connection to it would have it excluded at once.
        self._is_near = is_near and core.can_reach(packet.members)
        if self._is_near:
            self._ask_to_join()
        elif not is_near:
            self._ask()

    def gone_came(self, donor: str) -> None:
        if donor == self._donor:
            self._answered = True
            self._has_state = self._is_near = False
            self._begin_again()
            self._ask()

    def apply(self, entries: tuple[Entry, ...]) -> None:
        """Deliver those of these messages that are not delivered here yet."""
        core = self._core
        for entry in entries:
            position = core.position
            if entry.epoch < position.epoch:
                continue
            delivered = position.delivered[entry.rank] if entry.epoch == position.epoch else 0
            if (rest := rest_of(entry, delivered)) is not None:
                core.save(Learned(rest))
                core.deliver(rest)

    def is_at(self, position: Position) -> bool:
        """Whether it has the state of this position or a later one; since it asked, it may have been given an older state."""
        return self._has_state and self._core.position.covers(position)

    def _begin_again(self) -> None:
        self._parts.clear()
        self._asked = 0
        self._checkpoint = None

    def _take_state(self, packet: StatePart) -> None:
        core = self._core
        state = b"".join(self._parts[index] for index in range(packet.total))
        core.save(Caught(packet.checkpoint, packet.table, state))
        core.out.append(Restore(state, packet.checkpoint))
        core.rewind(packet.checkpoint, packet.table)
        self._has_state = True
        self._begin_again()

    def _ask(self) -> None:
        core, donor = self._core, self._donor
        if self._has_state:
            core.send(AskHistory(core.view.epoch, core.position), (donor,))
        else:
            missing = next((index for index in range(len(self._parts) + 1) if index not in self._parts), 0)
            core.send(AskState(core.view.epoch, self._checkpoint, missing), (donor,))

    def _ask_ahead(self, total: int) -> None:
        """Ask for the next parts in advance, so that there is no round trip for each."""
        core, have = self._core, len(self._parts)
        for index in range(max(self._asked, have), min(total, have + _PARTS_AHEAD)):
            core.send(AskState(core.view.epoch, self._checkpoint, index), (self._donor,))
            self._asked = index + 1

    def _ask_to_join(self) -> None:
        core = self._core
        core.send_when_durable(Join(core.view.epoch, Joiner(core.me, core.position)), core.names)


class Donor:
    """The side of a member that sends its state to processes that catch up."""

    def __init__(self, core: Core, is_safe: Callable[[int, int], bool]) -> None:
        self._core = core
        self._is_held_by_a_quorum = is_safe
        self._pinned: tuple[Position, bytes | bytearray, dict[str, int]] | None = None
        self._wanted: tuple[Position, dict[str, int]] | None = None
        """The position and table of the snapshot that the application was asked for."""
        self._asking: dict[str, AskState] = {}
        """The processes that wait for it."""
        self._is_void = False
        """Whether that snapshot is to be discarded, because its state may differ from that of the others."""
        self._idle = 0
        """How often the timer has run since anybody asked for anything."""

    def is_wanted(self) -> bool:
        """Whether a checkpoint is kept here for those who ask for it."""
        return self._pinned is not None

    def tick(self) -> None:
        """If nobody has asked for long, drop the checkpoint, and keep less of what was delivered since."""
        self._idle += 1
        if self._idle == _FORGET_AFTER:
            self._pinned = None
            self._core.history.limit(self._core.settings.history_bytes)

    def state_asked(self, name: str, packet: AskState) -> None:
        core = self._core
        self._idle = 0
        core.history.limit(core.settings.history_bytes_wanted)
        if self._pinned is None or (packet.index == 0 and core.history.since(self._pinned[0]) is None):
            self._pinned = None
            self._asking[name] = packet
            if self._wanted is None:
                self._wanted = (core.position, dict(core.table))
                core.out.append(Checkpoint(core.position))
            core.send(StatePart(core.view.epoch, self._wanted[0], 0, 0, b"", {}), (name,))
            return
        position, state, table = self._pinned
        if not self._is_safe(position):
            return
        if packet.checkpoint not in (None, position):
            core.send(Gone(core.view.epoch), (name,))
            return
        size = core.settings.part_bytes
        total = max(1, -(-len(state) // size))
        if packet.index < total:
            part = bytes(memoryview(state)[packet.index * size : (packet.index + 1) * size])
            core.send(StatePart(core.view.epoch, position, packet.index, total, part, table), (name,))

    def checkpointed(self, state: bytes | bytearray) -> None:
        """The application returns the snapshot that it was asked for, of its state at that moment."""
        if self._wanted is not None:
            position, table = self._wanted
            self._wanted, self._pinned = None, None if self._is_void else (position, state, table)
            self._is_void = False
            asking, self._asking = self._asking, {}
            for name, packet in asking.items():
                self.state_asked(name, packet)

    def forget(self) -> None:
        """The others go on without this process, and perhaps without messages that it has delivered: drop its checkpoint."""
        self._pinned = None
        self._asking.clear()
        self._is_void = self._wanted is not None

    def history_asked(self, name: str, packet: AskHistory, *, admitted: bool) -> None:
        """`admitted`: whether the process that asks is in this view already, so that it needs what was delivered before it."""
        core = self._core
        self._idle = 0
        if packet.since.epoch > core.view.epoch:
            # The process that asks knows a later view than this member, and has to ask another one.
            return
        entries = core.history.since(packet.since)
        if entries is None:
            core.send(Gone(core.view.epoch), (name,))
            return
        if admitted:
            entries = [entry for entry in entries if entry.epoch < core.view.epoch]
        given: list[Entry] = []
        room = _MESSAGES_AT_ONCE
        for entry in entries:
            if room <= 0 or not self._is_entry_safe(entry):
                break
            given.append(entry)
            room -= entry.run.count
        behind = sum(entry.run.count for entry in entries[len(given) :])
        core.send(History(core.view.epoch, packet.since, tuple(given), behind, core.view.names()), (name,))

    def _is_safe(self, position: Position) -> bool:
        """Whether every later view is sure to have what was delivered up to this position."""
        core = self._core
        if core.settings.uniform or position.epoch < core.view.epoch:
            return True
        return all(self._is_held_by_a_quorum(origin, count) for origin, count in enumerate(position.delivered))

    def _is_entry_safe(self, entry: Entry) -> bool:
        core = self._core
        return core.settings.uniform or entry.epoch < core.view.epoch or self._is_held_by_a_quorum(entry.rank, entry.run.end)
