"""A sequencer's part in moving groups to another sequencer.

The directory opens a move. A sequencer that gives groups away stops numbering them, and where order holds across groups it
waits until nobody is departing from any of its groups and all members have delivered everything: otherwise what is numbered
elsewhere later could be delivered before what was numbered here with it (K8 in docs/papers.md). Then it sends the groups'
whole state, and repeats that until the directory says how the move ended. The one that takes them keeps what comes aside,
and says when all of it is there. Nobody decides by a timeout of its own: a sequencer that holds groups of a move asks.

Moves have increasing numbers, and all up to one that has ended have. So whatever comes late of an ended move is known for
that, and cannot bring back a group that has moved on.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import msgspec

from quire.protocols.node import Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.state import GroupState


class Giving(msgspec.Struct):
    to: int
    together: tuple[str, ...]
    """All groups of the move, wherever they come from."""
    groups: tuple[str, ...]
    """Those that are given from here."""
    until: dict[str, int]
    """How far everything here was numbered when the move began."""
    leaving: tuple[GroupState, ...] = ()
    """What is on its way, once everything was delivered."""


class Moves:
    """The groups that a sequencer is giving away and taking over. It shares the sequencer's groups and forwarding pointers."""

    def __init__(
        self,
        groups: dict[str, GroupState],
        forward: dict[str, int],
        others: Sequence[int],
        directory: int,
        options: SequencingOptions,
    ) -> None:
        self.groups = groups
        self.forward = forward
        self.giving: dict[int, Giving] = {}
        self.taking: dict[int, dict[str, GroupState]] = {}
        self.settled = -1
        """All moves up to this one have ended."""
        self._others = others
        self._directory = directory
        self._options = options
        self.phase: dict[str, bool] = {}
        """Groups that are given away; whether they are on their way already."""

    def suspended(self, group: str) -> bool:
        """Whether numbering is suspended for the group."""
        return group in self.phase

    def on_the_way(self, group: str) -> bool:
        """Whether the group's state has been sent already, so that nothing about it may change."""
        return self.phase.get(group, False)

    def is_expected(self, group: str) -> bool:
        return any(group in states for states in self.taking.values())

    def idle(self) -> bool:
        return not self.giving and not self.taking

    def wrong_open(self, packet: wire.Open) -> str | None:
        return None if packet.to in self._others else f"groups cannot be moved to {packet.to}"

    def wrong_transfer(self, packet: wire.Transfer) -> str | None:
        sound = packet.state.group in packet.groups and packet.state.is_sound()
        return None if sound else f"it moves {packet.state.group!r} in a state in which no group can be"

    def open(self, packet: wire.Open) -> list[Send]:
        groups = tuple(group for group in packet.groups if group in self.groups)
        # A group that is still given away by an older move cannot be given by another before that one's end is known.
        if packet.op <= self.settled or packet.op in self.giving or not groups or any(map(self.suspended, groups)):
            return []
        until = {group: state.seq for group, state in self.groups.items()}
        self.giving[packet.op] = Giving(packet.to, packet.groups, groups, until)
        self.phase.update(dict.fromkeys(groups, False))
        return [*self._polls(), *self.proceed()]

    def proceed(self) -> list[Send]:
        """Send away the groups that may go now. To be called whenever something was delivered or a member left."""
        effects: list[Send] = []
        for op, giving in self.giving.items():
            if not giving.leaving and self.may_go(giving):
                giving.leaving = tuple(deepcopy(self.groups[group]) for group in giving.groups)
                self.phase.update(dict.fromkeys(giving.groups, True))
                effects += self._transfers(op, giving)
        return effects

    def may_go(self, giving: Giving) -> bool:
        """Whether everything that was numbered together at this sequencer has been delivered."""
        if not self._options.totally:
            return True
        return all(state.drained(giving.until.get(group, 0)) for group, state in self.groups.items())

    def take(self, packet: wire.Transfer) -> list[Send]:
        # A group that comes back before it is known here that it left is taken once that is known.
        if packet.op <= self.settled or self.suspended(packet.state.group):
            return []
        states = self.taking.setdefault(packet.op, {})
        states[packet.state.group] = packet.state
        # An old pointer would send requests back to where the group is just coming from.
        self.forward.pop(packet.state.group, None)
        if set(packet.groups) <= states.keys():
            return [Send(wire.Done(packet.op), (self._directory,))]
        return []

    def end(self, packet: wire.Outcome) -> bool:
        """A move has ended; returns whether this sequencer now has other groups than before."""
        self.settled = max(self.settled, packet.op)
        giving, taking = self.giving.pop(packet.op, None), self.taking.pop(packet.op, {})
        for group in giving.groups if giving is not None else ():
            del self.phase[group]
            if packet.committed:
                assert giving is not None
                del self.groups[group]
                self.forward[group] = giving.to
        if packet.committed:
            for group, state in taking.items():
                self.groups[group] = deepcopy(state)
        return packet.committed and (giving is not None or bool(taking))

    def repeat(self) -> list[Send]:
        """The packets to retransmit while a move is in progress."""
        effects = [Send(wire.Query(op), (self._directory,)) for op in sorted({*self.giving, *self.taking})]
        for op, giving in self.giving.items():
            effects += self._transfers(op, giving) if giving.leaving else self._polls()
        return effects

    def _transfers(self, op: int, giving: Giving) -> list[Send]:
        return [Send(wire.Transfer(op, giving.together, state), (giving.to,)) for state in giving.leaving]

    def _polls(self) -> list[Send]:
        waited_for = {client for state in self.groups.values() for client in state.reached}
        return [Send(wire.Poll(), tuple(sorted(waited_for)))] if waited_for and self._options.totally else []
