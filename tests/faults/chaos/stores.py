"""Stores whose replicas have journals, and tellers that transfer money.

Replicas are killed one by one and all at once, stopped, cut off, and have full disks, at any time. One disk may be lost at a
time, so a replica comes back without its own only when both others have theirs. A teller that was killed does not come back.
"""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from quire.live.runs.collecting import collect
from quire.model.faults import Restart
from quire.model.moments import Moment
from tests.faults.chaos.processes import ServiceProcesses, Stage, stage
from tests.faults.chaos.rounds import TIMEOUT_MS, Judge, Maker, Outcome, Round, check_promises
from tests.faults.chaos.store_process import REPLICAS, counted
from tests.faults.chaos.worker import read_notes

TELLERS = range(REPLICAS, REPLICAS + 3)


def make_round(seed: int, seconds: float, apart: bool) -> Round:
    choose, replicas = random.Random(seed), range(REPLICAS)
    maker = Maker(choose, TELLERS.stop, seconds)
    tellers, blank = [*TELLERS], list[Restart]()
    choose.shuffle(tellers)

    def kill_replica(at_ms: int) -> None:
        restarts = maker.kill(maker.free(at_ms, replicas)[:1], at_ms)
        if choose.random() < 0.4:
            blank.extend(restarts)

    def kill_all_replicas(at_ms: int) -> int:
        at_ms = maker.quiet_ms(at_ms, replicas)
        maker.kill(replicas, at_ms)
        return at_ms

    def kill_teller(at_ms: int) -> None:
        if len(tellers) > 1 and choose.random() < 0.5 and tellers[-1] in maker.free(at_ms):
            maker.kill_for_good(tellers.pop(), at_ms)

    kinds: list[Callable[[int], int | None]] = [
        kill_replica, kill_replica, kill_all_replicas, kill_teller, maker.stop_shortly, maker.stop_for_long,
    ]  # fmt: skip
    kinds += [maker.part, maker.cut, lambda at_ms: maker.fill(at_ms, replicas)] * apart
    return Round(seed, TELLERS.stop, maker.make(kinds, pause_ms=4000), blank=tuple(blank))


class StoreProcesses(ServiceProcesses):
    module = "tests.faults.chaos.store_process"

    def __init__(self, round: Round, place: Stage, directory: Path) -> None:
        super().__init__(round, place, directory)
        self.lost_disks = 0
        self._directory = directory
        self._members = [*place.addresses(7000)]

    def settings(self, number: int) -> dict[str, Any]:
        return {
            "me": number,
            "members": self._members,
            "timeout_s": TIMEOUT_MS / 1000,
            "journal": str(self._journal(number)),
            "trace": str(self._directory / "parts"),
            "notes": str(self._directory / "notes"),
        }

    def _journal(self, number: int) -> Path:
        return self.disk(number) / f"journal-{number}"

    async def may_happen(self, moment: Moment) -> None:
        fault = moment.fault
        if isinstance(fault, Restart) and fault in self.round.blank:
            others = [each for each in range(REPLICAS) if each != fault.member]
            if all(each not in self.away and self.said[each].get("begun") for each in others):
                shutil.rmtree(self._journal(fault.member))
                self.lost_disks += 1
                self.tell("blank", str(fault.member))

    async def take_part(self) -> None:
        await self.until_said("ready", range(self.count), "at the start")
        self.begin()
        await self.have_faults_happen()
        await self.until_said("begun", range(REPLICAS), "after the last fault")
        # The last of them counts when the others have done everything.
        *others, last = (number for number in TELLERS if number not in self.away)
        for tellers in (others, [last]):
            self.signal(signal.SIGINT, tellers)
            await self.until_said("idle", tellers, "at the end")
        self.counts = self.said[last]["counts"]
        self.signal(signal.SIGINT)
        await self.until_said("ended", range(self.count), "at the end")


def check_counts(notes: list[list[Any]], found: Sequence[int] | None) -> int:
    """What was committed is in the store, and nothing else, unless the teller did not learn what became of it. Returns how
    much was acknowledged."""
    began, committed, aborted = (
        [number for what, number in notes if what == each] for each in ("began", "committed", "aborted")
    )
    unknown = [number for number in began if number not in {*committed, *aborted}]
    assert len(unknown) <= 1, f"{unknown} ended without a word"
    count, last = found or (0, None)
    expected = [(len(committed), committed[-1] if committed else None)]
    expected += [(len(committed) + 1, number) for number in unknown]
    assert (count, last) in expected, f"the store counts {count} transfers, of which {last} was the last, not {expected}"
    return len(committed)


def play(round: Round, directory: Path, judge: Judge) -> Outcome:
    began = time.monotonic()
    (directory / "notes").mkdir()
    with stage(round) as place:
        processes = StoreProcesses(round, place, directory)
        processes.play(directory)
    acknowledged = sum(check_counts(read_notes(directory / "notes" / str(me)), processes.counts[counted(me)]) for me in TELLERS)
    collect(directory / "parts", directory / "run")
    check_promises(judge(directory / "run"))
    transfers = sum(each[0] for each in processes.counts.values() if each)
    what = f"{processes.lost_disks} disks lost"
    return Outcome(round, acknowledged, transfers, what, time.monotonic() - began)
