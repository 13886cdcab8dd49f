"""How a process that is no member comes to the state of those who are, before it asks to be one of them.

It first takes a checkpoint of the application's state, in parts, from any member; then what was delivered since, again and
again, until it is not far behind; and only then it asks to join. So the group never waits for it. What it is given is only
what no later view can be without. Where it was a member before, and delivered nothing that others may be without, it goes on
from where it was.
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
"""So often a member's timer runs before it takes it that nobody needs its checkpoint any more."""


class Learner:
    """The part of who catches up."""

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
        """Whom it asks. Parts of another's checkpoint never make one state with those of this one's."""
        self._answered = True
        self._unanswered = 0
        """How often in a row it has asked in vain."""
        self._was_answered = False
        """Whether it has had any answer of this donor."""

    def tick(self) -> None:
        """Ask, and where nobody has answered since the last time, ask another. Whoever has answered before is given more time,
        because with another everything begins anew."""
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
        # A member that cannot hear it would have it excluded at once.
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
        """Deliver what was delivered elsewhere, as far as it was not delivered here."""
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
        """Whether it has the state of this position or a later one; it may have been given an older one since it asked."""
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
        """Ask for the next parts, so that the donor need not wait to be asked for each."""
        core, have = self._core, len(self._parts)
        for index in range(max(self._asked, have), min(total, have + _PARTS_AHEAD)):
            core.send(AskState(core.view.epoch, self._checkpoint, index), (self._donor,))
            self._asked = index + 1

    def _ask_to_join(self) -> None:
        core = self._core
        core.send_when_durable(Join(core.view.epoch, Joiner(core.me, core.position)), core.names)


class Donor:
    """The part of a member that others catch up with."""

    def __init__(self, core: Core, is_safe: Callable[[int, int], bool]) -> None:
        self._core = core
        self._is_held_by_a_quorum = is_safe
        self._pinned: tuple[Position, bytes | bytearray, dict[str, int]] | None = None
        self._wanted: tuple[Position, dict[str, int]] | None = None
        """Of which moment a snapshot was asked for."""
        self._asking: dict[str, AskState] = {}
        """Who waits for it."""
        self._is_void = False
        """Whether it will be of a state that counts no more."""
        self._idle = 0
        """How often the timer has run since anybody asked for anything."""

    def is_wanted(self) -> bool:
        """Whether a checkpoint is kept here for those who ask for it."""
        return self._pinned is not None

    def tick(self) -> None:
        """Nobody may be there any more for whom a checkpoint, and much of what was delivered since, is kept."""
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
        """The snapshot that was asked for, of the state that the application had at that moment."""
        if self._wanted is not None:
            position, table = self._wanted
            self._wanted, self._pinned = None, None if self._is_void else (position, state, table)
            self._is_void = False
            asking, self._asking = self._asking, {}
            for name, packet in asking.items():
                self.state_asked(name, packet)

    def forget(self) -> None:
        """The others go on without this process, and perhaps without something that it has delivered."""
        self._pinned = None
        self._asking.clear()
        self._is_void = self._wanted is not None

    def history_asked(self, name: str, packet: AskHistory, *, admitted: bool) -> None:
        """`admitted`: whether it is in this view already, and has to begin it with what was delivered before."""
        core = self._core
        self._idle = 0
        if packet.since.epoch > core.view.epoch:
            # Whoever asks knows of a later view than this member, and has to ask another.
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
        """Whether no later view can be without what was delivered up to there."""
        core = self._core
        if core.settings.uniform or position.epoch < core.view.epoch:
            return True
        return all(self._is_held_by_a_quorum(origin, count) for origin, count in enumerate(position.delivered))

    def _is_entry_safe(self, entry: Entry) -> bool:
        core = self._core
        return core.settings.uniform or entry.epoch < core.view.epoch or self._is_held_by_a_quorum(entry.rank, entry.run.end)
