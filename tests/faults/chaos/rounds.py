"""What a seed stands for: faults at random times, each of which the processes can have in its moment."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from quire.model.faults import Cut, Fault, Full, Kill, Partition, Restart, Stop, check_faults, in_time
from quire.model.orders import Guarantee
from quire.pipeline import Audit, Verdict

TIMEOUT_MS = 1000
NEVER_MS = 1 << 40

Judge = Callable[[Path], Audit]


class Round(msgspec.Struct, frozen=True):
    """What one seed stands for."""

    seed: int
    members: int
    """How many processes there are."""
    faults: tuple[Fault, ...]
    options: dict[str, object] = {}
    """Of the service."""
    blank: tuple[Restart, ...] = ()
    """The restarts at which nothing is left of the disk."""
    asked: tuple[Kill, ...] = ()
    """The kills that are none: the process is asked to end, and does so by itself."""


class Outcome(msgspec.Struct, frozen=True):
    round: Round
    acknowledged: int
    delivered: int
    what: str
    """What else came of it, in a few words."""
    seconds: float


class Scenario(NamedTuple):
    """A service, as a module has it: what a seed stands for, and how that is played."""

    make_round: Callable[[int, float, bool], Round]
    """Of a seed, with faults for so many seconds; whether processes can be cut off from each other, and have disks full."""
    play: Callable[[Round, Path, Judge], Outcome]
    """Have it happen in a directory, and judge what was recorded. Raises AssertionError, or whatever ended the run."""


def check_promises(audit: Audit, unknown: Collection[Guarantee] = ()) -> None:
    """What the run promises holds. `unknown`: of these the trace may not tell enough, but nothing may contradict them."""
    wrong = {
        name: audit.checks[name].because
        for name in audit.expected
        if audit.checks[name].verdict not in ((Verdict.HOLDS, Verdict.UNDECIDED) if name in unknown else (Verdict.HOLDS,))
    }
    assert not wrong, wrong


class Maker:
    """Makes faults of each kind as they are asked for. Nothing happens to a process while something else does."""

    def __init__(self, choose: random.Random, members: int, seconds: float) -> None:
        self.choose = choose
        self.members = range(members)
        self.faults: list[Fault] = []
        self.gone: set[int] = set()
        """Members to which nothing more happens."""
        self._end_ms = round(seconds * 1000)
        self._busy = [0] * members
        """Until when something happens to the process of each member."""
        self._over_ms = 0
        """Until when something lasts that concerns more than one of them."""

    def make(self, kinds: Sequence[Callable[[int], int | None]], pause_ms: int = 1500) -> tuple[Fault, ...]:
        """Faults of these kinds, each of which is called with a time, and returns another if it is put off until then. They
        come together, or with a pause of up to so long."""
        at_ms = self.choose.randint(100, 600)
        while at_ms < self._end_ms:
            at_ms = self.choose.choice(kinds)(at_ms) or at_ms
            at_ms += self.choose.choice((self.choose.randint(0, 50), self.choose.randint(200, pause_ms)))
        faults = tuple(in_time(self.faults))
        check_faults(faults, len(self.members))
        return faults

    def free(self, at_ms: int, among: Collection[int] | None = None) -> list[int]:
        """Members to whose processes nothing happens just then, in any order."""
        free = [member for member in self.members if self._busy[member] < at_ms and (among is None or member in among)]
        self.choose.shuffle(free)
        return free

    def quiet_ms(self, at_ms: int, among: Collection[int]) -> int:
        """From when on nothing happens to any of these."""
        busy = (self._busy[member] + 1 for member in among if member not in self.gone)
        return max(at_ms, self._over_ms + 1, *busy)

    def kill(self, members: Sequence[int], at_ms: int) -> list[Restart]:
        """They are started again after a while, each after its own."""
        restarts = [Restart(member, at_ms + self.choose.randint(1, 2500)) for member in members]
        for restart in restarts:
            self.faults += [Kill(restart.member, at_ms), restart]
            self._busy[restart.member] = restart.at_ms + 1
        return restarts

    def kill_for_good(self, member: int, at_ms: int) -> None:
        self.faults.append(Kill(member, at_ms))
        self._is_gone(member)

    def stop_for_good(self, member: int, at_ms: int) -> None:
        """For so long that the others go on without it."""
        fault = Stop(member, at_ms, self._long_ms())
        self.faults.append(fault)
        self._lasts(fault)
        self._is_gone(member)

    def isolate_for_good(self, member: int, at_ms: int) -> None:
        others = tuple(each for each in self.members if each != member)
        self._come_apart(Partition(((member,), others), at_ms, self._long_ms()))
        self._is_gone(member)

    def _is_gone(self, member: int) -> None:
        self.gone.add(member)
        self._busy[member] = NEVER_MS

    def _long_ms(self) -> int:
        return self.choose.randint(TIMEOUT_MS * 3 // 2, TIMEOUT_MS * 3)

    def stop_shortly(self, at_ms: int, among: Collection[int] | None = None) -> None:
        self._stop(at_ms, among, self.choose.randint(1, TIMEOUT_MS * 7 // 10))

    def stop_for_long(self, at_ms: int, among: Collection[int] | None = None) -> None:
        self._stop(at_ms, among, self.choose.randint(TIMEOUT_MS * 11 // 10, TIMEOUT_MS * 3))

    def _stop(self, at_ms: int, among: Collection[int] | None, for_ms: int) -> None:
        for member in self.free(at_ms, among)[:1]:
            self.faults.append(Stop(member, at_ms, for_ms))
            self._busy[member] = at_ms + for_ms + 1

    def fill(self, at_ms: int, among: Collection[int] | None = None) -> None:
        for member in self.free(at_ms, among)[:1]:
            for_ms = self.choose.randint(100, 2 * TIMEOUT_MS)
            self.faults.append(Full(member, at_ms, for_ms))
            self._busy[member] = at_ms + for_ms + 1

    def part(self, at_ms: int) -> None:
        self._come_apart(Partition(self._sides(), at_ms, self._length_ms()))

    def part_shortly(self, at_ms: int) -> None:
        self._come_apart(Partition(self._sides(), at_ms, self.choose.randint(1, TIMEOUT_MS // 2)))

    def cut(self, at_ms: int) -> None:
        self._come_apart(Cut(*self._sides(), at_ms, self._length_ms()))

    def _come_apart(self, fault: Partition | Cut) -> None:
        self.faults.append(fault)
        self._lasts(fault)

    def _lasts(self, fault: Partition | Cut | Stop) -> None:
        self._over_ms = max(self._over_ms, fault.at_ms + fault.for_ms)

    def _length_ms(self) -> int:
        return self.choose.randint(100, 3 * TIMEOUT_MS)

    def _sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        members = list(self.members)
        self.choose.shuffle(members)
        size = self.choose.randint(1, len(members) - 1)
        return tuple(sorted(members[:size])), tuple(sorted(members[size:]))
