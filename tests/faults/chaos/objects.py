"""Objects at five hosts, some with a replica at each, that are called, and that call each other.

Hosts are killed, or stopped or cut off for so long that the others go on without them, one when the others have agreed about
the last; in between they are stopped and cut off for a short time. Some of those that are killed are started again, and come
back: the objects that others have too must have the same state there in the end. What the hosts recorded is audited, and
compared with what their objects note of the calls that they run.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quire.live.runs.collecting import collect
from quire.model.faults import Fault, Kill, Partition, Stop
from quire.model.moments import Moment
from tests.faults.chaos.object_process import SHARED, own
from tests.faults.chaos.processes import ServiceProcesses, Stage, stage
from tests.faults.chaos.rounds import TIMEOUT_MS, Judge, Maker, Outcome, Round, check_promises
from tests.faults.chaos.worker import read_notes
from tests.kit.patience import PATIENCE_S

HOSTS = range(5)
LOST_MAX = 2


def make_round(seed: int, seconds: float, apart: bool) -> Round:
    choose = random.Random(seed)
    maker = Maker(choose, len(HOSTS), seconds)
    ways = [maker.kill_for_good, maker.kill_for_good, maker.stop_for_good, *[maker.isolate_for_good] * apart]

    def lose(at_ms: int) -> int | None:
        if len(maker.gone) == LOST_MAX:
            return None
        at_ms = maker.quiet_ms(at_ms, HOSTS)
        choose.choice(ways)(maker.free(at_ms)[0], at_ms)
        return at_ms

    def lose_for_a_while(at_ms: int) -> int:
        at_ms = maker.quiet_ms(at_ms, HOSTS)
        maker.kill(maker.free(at_ms)[:1], at_ms)
        return at_ms

    kinds: list[Callable[[int], int | None]] = [lose, lose_for_a_while, lose_for_a_while, *[maker.stop_shortly] * 2]
    kinds += [maker.part_shortly] * apart
    return Round(seed, len(HOSTS), maker.make(kinds))


def loses(fault: Fault) -> int | None:
    """Whom a fault removes from the group, until another process takes its place."""
    match fault:
        case Kill():
            return fault.member
        case Stop() if fault.for_ms > TIMEOUT_MS:
            return fault.member
        case Partition() if fault.for_ms > TIMEOUT_MS:
            return fault.sides[0][0]
    return None


class ObjectProcesses(ServiceProcesses):
    module = "tests.faults.chaos.object_process"

    def __init__(self, round: Round, place: Stage, directory: Path) -> None:
        super().__init__(round, place, directory)
        self._directory = directory
        self._members, self._views = [*place.addresses(7000)], [*place.addresses(7100)]

    def settings(self, number: int) -> dict[str, Any]:
        return {
            "me": number,
            "members": self._members,
            "views": self._views,
            "timeout_s": TIMEOUT_MS / 1000,
            "trace": str(self._directory / "parts"),
            "notes": str(self._directory / "notes"),
        }

    def left(self) -> list[int]:
        """Those who go on."""
        return [host for host in HOSTS if host not in self.away and "excluded" not in self.said[host]]

    async def may_happen(self, moment: Moment) -> None:
        if moment.begins and loses(moment.fault) is not None:
            await self._until_agreed("before the next host is lost")
            await self.until_said("ready", self.left(), "before the next host is lost")

    async def _until_agreed(self, when: str) -> None:
        def unagreed() -> str:
            left = self.left()
            views = [self.said[host].get("view") for host in left]
            return "" if all(view == left for view in views) else f"of {left}, views are {views}"

        await self.until(unagreed, PATIENCE_S, when)

    async def take_part(self) -> None:
        await self.until_said("ready", HOSTS, "at the start")
        self.begin()
        await self.have_faults_happen()
        await self._until_agreed("after the last fault")
        await self.until_said("ready", self.left(), "after the last fault")
        self.signal(signal.SIGINT, self.left())
        await self.until_said("ended", HOSTS, "at the end")


class Noted:
    """What the processes of one host noted."""

    def __init__(self, lives: Sequence[list[list[Any]]]) -> None:
        self.last = lives[-1]
        """What the last of them noted."""
        self.came_back = len(lives) > 1
        self.states = {name: state for what, name, *about in self.last if what == "state" for state in about}
        self.own = [each for notes in lives for each in notes if each[0] in ("ran", "undone") and each[1] not in SHARED]
        """What was run of its own object, while that was there."""

    def times(self, name: str, caller: int, number: int) -> int:
        """How often a call was run here, and not taken back."""
        counted = Counter(tuple(each) for each in (self.states[name] if name in SHARED else self.own))
        return counted["ran", name, caller, number] - counted["undone", name, caller, number]


def check_replicas(noted: Mapping[int, Noted], left: Sequence[int]) -> None:
    """Those who are left ran the same calls of each shared object, and took the same back, in the same order; whoever came back
    was given what it had missed."""
    for name in SHARED:
        states = [noted[host].states[name] for host in left]
        assert all(state == states[0] for state in states), (
            f"the replicas of {name} ran different calls, or in different orders"
        )


def check_calls(noted: Mapping[int, Noted], left: Sequence[int]) -> int:
    """Of those who are left: whatever was answered was run once wherever it should be, and every call has ended. Returns how
    many were answered."""
    answered = 0
    there = {own(host) for host in left if not noted[host].came_back}
    for caller in left:
        notes = noted[caller].last
        calls = {kind: [about for what, *about in notes if what == kind] for kind in ("began", "answered", "failed")}
        assert len(calls["began"]) == len(calls["answered"]) + len(calls["failed"]), f"calls of {caller} are not answered"
        assert not {_first(name) for name, _ in calls["failed"]} & {*SHARED, *there}, f"calls of {caller} failed"
        answered += len(calls["answered"])
        for called, number in calls["answered"]:
            name = called.rpartition(">")[2]
            for host in left if name in SHARED else [host for host in HOSTS if own(host) == name]:
                times = noted[host].times(name, caller, number)
                assert times == 1, f"host {host} ran call {number} of {caller} at {name} {times} times"
    return answered


def _first(name: str) -> str:
    """The object that is called, by way of which another may be."""
    return name.partition(">")[0]


def _read(directory: Path, host: int) -> list[list[list[Any]]]:
    """The notes of the processes of a host, the first one first."""
    paths = sorted(directory.glob(f"{host}-*"), key=lambda path: int(path.name.partition("-")[2]))
    return [read_notes(path) for path in paths]


def play(round: Round, directory: Path, judge: Judge) -> Outcome:
    began = time.monotonic()
    (directory / "notes").mkdir()
    with stage(round) as place:
        processes = ObjectProcesses(round, place, directory)
        processes.play(directory)
    left, notes = processes.left(), {host: Noted(_read(directory / "notes", host)) for host in HOSTS}
    answered = check_calls(notes, left)
    check_replicas(notes, left)
    collected = collect(directory / "parts", directory / "run")
    steady = {host for host in left if not notes[host].came_back}
    assert steady.isdisjoint(collected.crashed), collected.notes
    check_promises(judge(directory / "run"))
    failed = sum(each[0] == "failed" for host in left for each in notes[host].last)
    what = f"{len(left)} of {len(HOSTS)} hosts left, {len(left) - len(steady)} of them came back, "
    what += f"{failed} calls of lost hosts failed, {collected.deliveries} deliveries"
    return Outcome(round, answered, answered, what, time.monotonic() - began)
