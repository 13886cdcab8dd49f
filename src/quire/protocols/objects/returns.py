"""Members that come back after they were removed: how they are admitted, and get the state of the objects that live there.

A process that takes the place of a lost member knows nothing. When a view has it, every other member *admits* it: from then on
nothing is stable without its clock. Each calls no object any more that also lives there, and says how far its clock is and how
much it has sent to each of the others (`Said`). When all have said so, the new process begins with the highest of these clocks,
so that everything it will ever send is younger than whatever was run without it. Of each of its objects that lives elsewhere
too, one of those who have it waits until everything that was sent to it before has come and is run, and then hands over its
state. When the new process has all of them, all are told in the order of views, and call these objects again, there as well.

So each call is either in the state that was handed over, or was sent to the new process too, and never both. What waits is only
calls to its objects: nothing that others wait for on the way to that needs such a call, so they go on in the end. If it is lost
again before, the next view says so, and they go on without it.

An object without a host that has its state is lost for good, though its member comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from quire.protocols.objects.declarations import Catalogue
from quire.protocols.objects.departures import Departures
from quire.protocols.objects.packets import Instance
from quire.protocols.objects.queue import Copy, ObjectQueue


class Said(msgspec.Struct, frozen=True, array_like=True):
    """What a member reports of its state when others are admitted."""

    clock: int
    sent: dict[int, int]
    """How much it has sent to each of the others."""
    lost: tuple[str, ...] = ()
    """The objects that have no host any more, as far as it knows."""
    catching_up: tuple[int, ...] = ()
    """The members that came back before, and do not have the states of their objects yet."""
    begun: dict[int, int] = {}
    """The clock with which each member began that is not there from the start."""


class Returns:
    def __init__(self, me: int, catalogue: Catalogue, departures: Departures) -> None:
        self.catching_up: set[int] = set()
        """Members that were admitted, and do not have the state of their objects yet."""
        self.begun: dict[int, int] = {}
        """For members that came back, the clock that they began with: what is not younger is of the time before."""
        self.is_back = True
        """Whether this member takes part; until then, all of this is new to it."""
        self.has_told = False
        """Whether this member, which comes back, has told that it has everything."""
        self.awaited: set[str] = set()
        """At a member that comes back: the objects whose states it still lacks."""
        self._me = me
        self._catalogue = catalogue
        self._departures = departures
        self._complete: set[int] = set()
        """Members that have everything, as all were told."""
        self._admitting: set[int] = set()
        """Members of which it is not known yet with which clock they begin."""
        self._before: Mapping[int, int] = {}
        """How much each member has sent here before it called no object more of those who catch up."""
        self._handed: set[tuple[str, int]] = set()
        self._held: list[Copy] = []
        self._pieces: dict[tuple[int, str], list[bytes]] = {}
        """What has come of states, by whom it comes from."""

    def admit(self, member: int) -> None:
        self._departures.admit(member)
        self.catching_up.add(member)
        self._admitting.add(member)
        self._complete.discard(member)
        self._handed = {(name, to) for name, to in self._handed if to != member}

    def is_over(self, member: int) -> None:
        """The member has everything, or is gone."""
        self.catching_up.discard(member)
        self._admitting.discard(member)
        self._complete.add(member)
        self._pieces = {(source, name): pieces for (source, name), pieces in self._pieces.items() if source != member}
        self._release()

    def admitted(self, said: Mapping[int, Said], clock: int) -> None:
        """All members have reported their state."""
        self._before = {member: each.sent.get(self._me, 0) for member, each in said.items()}
        for each in said.values():
            self.begun |= each.begun
            if not self.is_back:
                self.catching_up.update({*each.catching_up} - self._complete - {self._me})
        self.begun |= dict.fromkeys(self._admitting if self.is_back else (*self._admitting, self._me), clock)
        self._admitting.clear()
        self._release()

    def without_state(self) -> set[int]:
        """Present members that lack the states of their objects."""
        return self.catching_up if self.is_back else {*self.catching_up, self._me}

    # Calls to objects of members that catch up.

    def is_waited_for(self, targets: Iterable[str]) -> bool:
        """Whether one of these objects must not be called now."""
        return bool(self.catching_up) and any(
            not self.catching_up.isdisjoint(self._catalogue.find(target).members) and target not in self._departures.lost
            for target in targets
        )

    # Calls by way of members that came back.

    def is_of_before(self, caller: Instance, clock: int) -> bool:
        """Whether a call of this time, through this caller, was made before the caller's member came back."""
        return clock <= self.begun.get(caller.member, -1)

    def hold(self, copy: Copy) -> None:
        """Until it is known when a member's new process begins, nobody can tell whether a call is made on behalf of the lost
        process or of the new one."""
        if len(self._catalogue.find(copy.object).members) > 1 or copy.held:
            return  # Replicas run everything.
        if any(caller.member in self._admitting for caller in copy.request.chain):
            copy.held = True
            self._held.append(copy)

    def _release(self) -> None:
        if not self._admitting:
            for copy in self._held:
                copy.held = False
            self._held.clear()

    # Handing over.

    def to_hand_over(self, queues: Mapping[str, ObjectQueue], received: Mapping[int, int]) -> list[tuple[str, tuple[int, ...]]]:
        """Which states to hand over now, and to whom. `received`: how much has arrived from each of the other present
        members."""
        wanted = [(name, members) for name in queues if (members := self._recipients(name))]
        if not wanted or self._admitting or not self._has_all_of_before(received):
            return []
        found = [(name, members) for name, members in wanted if not queues[name].copies and not queues[name].active]
        self._handed.update((name, member) for name, members in found for member in members)
        return found

    def _recipients(self, name: str) -> tuple[int, ...]:
        """The members that still need the state of this object from this member: the first member that has the state hands
        it over."""
        members = self._catalogue.find(name).members
        donor = next((each for each in members if each not in self._departures.gone and each not in self.catching_up), None)
        if donor != self._me or name in self._departures.lost or not self.is_back:
            return ()
        return tuple(each for each in members if each in self.catching_up and (name, each) not in self._handed)

    def _has_all_of_before(self, received: Mapping[int, int]) -> bool:
        """Unknown for a member that has not reported: it is gone, and the others have not agreed on that yet."""
        return all(
            number >= self._before[member] if member in self._before else member in self.catching_up
            for member, number in received.items()
        )

    # Coming back.

    def begin(self) -> None:
        """This member came back: it lacks the states of all its objects."""
        self.is_back = False
        self.awaited = set(self._catalogue.at(self._me))

    def take(self, source: int, name: str, piece: bytes, *, last: bool) -> bytes | None:
        """A part of a state has arrived; returns the state when it is complete. If the member that hands it over is lost,
        another starts from the beginning."""
        if name not in self.awaited:
            return None
        pieces = self._pieces.setdefault((source, name), [])
        pieces.append(piece)
        return b"".join(self._pieces.pop((source, name))) if last else None
