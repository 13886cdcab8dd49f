"""Random faults over real processes under load, from a seed: `make chaos`.

Each round founds a group, has everything happen to its members that can be said in words, and audits what they recorded:
nothing that was acknowledged is lost, nothing is delivered twice, there is one order, and views are as promised. The same seed
gives the same faults at the same times; what the processes do meanwhile is up to the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pyarrow.dataset as ds

from quire.live.runs.collecting import collect
from quire.live.runs.disks import disks
from quire.live.runs.faulty_fleet import FaultyFleet
from quire.live.runs.fleet import free_addresses
from quire.live.runs.hosts import hosts
from quire.live.runs.plan import Plan
from quire.model.errors import BadInput
from quire.model.faults import (
    Cut,
    Disconnection,
    Fault,
    Full,
    Kill,
    Partition,
    Restart,
    Stop,
    check_faults,
    end_ms,
    in_time,
    render_faults,
)
from quire.pipeline import Audit, Verdict
from quire.trace.views import parse_operation_word

TIMEOUT_MS = 1000
RATE = 150.0

Judge = Callable[[Path], Audit]


class Round(msgspec.Struct, frozen=True):
    """What one seed stands for."""

    seed: int
    members: int
    faults: tuple[Fault, ...]


class Outcome(msgspec.Struct, frozen=True):
    round: Round
    acknowledged: int
    delivered: int
    views: int
    seconds: float


def make_round(seed: int, seconds: float, *, apart: bool) -> Round:
    """Random faults for so many seconds. `apart`: whether members can be cut off from each other, and have their disks full."""
    choose = random.Random(seed)
    members = choose.choice((3, 5))
    maker = _Maker(choose, members, round(seconds * 1000))
    kinds = [maker.kill, maker.kill, maker.stop_shortly, maker.stop_for_long, maker.kill_all]
    # Whoever may make networks may make disks, too.
    kinds += [maker.part, maker.cut, maker.fill] * apart
    at_ms = choose.randint(100, 600)
    while at_ms < maker.end_ms:
        choose.choice(kinds)(at_ms)
        at_ms += choose.choice((choose.randint(0, 50), choose.randint(200, 1500)))
    faults = tuple(in_time(maker.faults))
    check_faults(faults, members)
    return Round(seed, members, faults)


class _Maker:
    def __init__(self, choose: random.Random, members: int, end_ms: int) -> None:
        self.end_ms = end_ms
        self.faults: list[Fault] = []
        self._choose = choose
        self._members = members
        self._busy = [0] * members
        """Until when something happens to the process of each member."""

    def kill(self, at_ms: int) -> None:
        self._kill(self._free(at_ms)[:1], at_ms)

    def kill_all(self, at_ms: int) -> None:
        """All at once, if nothing happens to any of them just then."""
        free = self._free(at_ms)
        if len(free) == self._members and self._choose.random() < 0.3:
            self._kill(free, at_ms)

    def _kill(self, members: Sequence[int], at_ms: int) -> None:
        for member in members:
            back_ms = at_ms + self._choose.randint(1, 2500)
            self.faults += [Kill(member, at_ms), Restart(member, back_ms)]
            self._busy[member] = back_ms + 1

    def stop_shortly(self, at_ms: int) -> None:
        self._stop(at_ms, self._choose.randint(1, TIMEOUT_MS * 7 // 10))

    def stop_for_long(self, at_ms: int) -> None:
        self._stop(at_ms, self._choose.randint(TIMEOUT_MS * 11 // 10, TIMEOUT_MS * 3))

    def _stop(self, at_ms: int, for_ms: int) -> None:
        for member in self._free(at_ms)[:1]:
            self.faults.append(Stop(member, at_ms, for_ms))
            self._busy[member] = at_ms + for_ms + 1

    def fill(self, at_ms: int) -> None:
        for member in self._free(at_ms)[:1]:
            for_ms = self._choose.randint(100, 2 * TIMEOUT_MS)
            self.faults.append(Full(member, at_ms, for_ms))
            self._busy[member] = at_ms + for_ms + 1

    def part(self, at_ms: int) -> None:
        one, other = self._sides()
        self.faults.append(Partition((one, other), at_ms, self._choose.randint(100, 3 * TIMEOUT_MS)))

    def cut(self, at_ms: int) -> None:
        self.faults.append(Cut(*self._sides(), at_ms, self._choose.randint(100, 3 * TIMEOUT_MS)))

    def _sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        members = list(range(self._members))
        self._choose.shuffle(members)
        size = self._choose.randint(1, self._members - 1)
        return tuple(sorted(members[:size])), tuple(sorted(members[size:]))

    def _free(self, at_ms: int) -> list[int]:
        """Members to whose processes nothing happens just then, in any order."""
        free = [member for member in range(self._members) if self._busy[member] < at_ms]
        self._choose.shuffle(free)
        return free


def play(round: Round, directory: Path, judge: Judge) -> Outcome:
    """Have it happen, and judge what was recorded. Raises AssertionError, or whatever ended the run."""
    began, span_s = time.monotonic(), end_ms(round.faults) / 1000 + 1
    is_apart, is_full = (any(isinstance(fault, kind) for fault in round.faults) for kind in (Disconnection, Full))
    with ExitStack() as stack:
        made = stack.enter_context(hosts(round.members)) if is_apart else None
        own = stack.enter_context(disks(round.members)) if is_full else None
        members = free_addresses(round.members) if made is None else tuple(f"{address}:7000" for address in made.ipv4)
        plan = Plan(
            members=members, protocol="single-phase", rate=RATE, messages=int(RATE * span_s), insecure=True,
            timeout_s=TIMEOUT_MS / 1000, join_s=60,
        )  # fmt: skip
        fleet = FaultyFleet(plan, round.faults, directory / "parts", made, own)
        try:
            asyncio.run(fleet.run())
        finally:
            log = "\n".join(f"{each.at_s:8.3f} {each.what} {each.about}" for each in fleet.happened)
            (directory / "happened.txt").write_text(log)
    collect(directory / "parts", directory / "run", observed=fleet.observed)
    audit = judge(directory / "run")
    wrong = {name: audit.checks[name].because for name in audit.expected if audit.checks[name].verdict != Verdict.HOLDS}
    assert not wrong, wrong
    delivered = _operations(directory / "run")
    for member, count in fleet.acknowledged.items():
        lost = set(range(1, count + 1)) - delivered.get(str(member), set())
        assert not lost, f"{len(lost)} messages of member {member} were acknowledged and are lost, the first is {min(lost)}"
    views = sum(each.what.startswith("view") for each in fleet.happened)
    return Outcome(round, sum(fleet.acknowledged.values()), sum(map(len, delivered.values())), views, time.monotonic() - began)


def _operations(run: Path) -> dict[str, set[int]]:
    """Of each member, the operations of its session that somebody delivered."""
    rows = ds.dataset([str(path) for path in run.rglob("*.parquet")]).to_table(["kind", "origin", "seq", "txn"])
    columns = [rows[name].to_pylist() for name in rows.column_names]
    delivered = {(origin, seq) for kind, origin, seq, _ in zip(*columns, strict=True) if kind == "deliver"}
    found: dict[str, set[int]] = {}
    for kind, origin, seq, word in zip(*columns, strict=True):
        operation = parse_operation_word(word) if kind == "send" else None
        if operation is not None and (origin, seq) in delivered:
            found.setdefault(str(origin), set()).add(seq + operation.number)
    return found


def _can_be_apart() -> bool:
    try:
        with hosts(1):
            return True
    except BadInput as error:
        print(f"without partitions: {error}")
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=15.0, help="for how long faults happen in a round")
    parser.add_argument("--seed", type=int, default=None, help="of the first round; the others count on")
    parser.add_argument("--rounds", type=int, default=None, help="how many, however long they take")
    given = parser.parse_args()
    first = random.SystemRandom().randrange(1_000_000_000) if given.seed is None else given.seed
    apart = _can_be_apart()
    counted: Counter[str] = Counter()
    acknowledged, began, done = 0, time.monotonic(), 0

    from quire.pipeline.auditing.auditor import audit
    from quire.pipeline.session import session

    with session("local[2]") as spark:
        while done != given.rounds if given.rounds else time.monotonic() - began < given.minutes * 60:
            round = make_round(first + done, given.seconds, apart=apart)
            print(f"seed {round.seed}, {round.members} members: {render_faults(round.faults)}", flush=True)
            with tempfile.TemporaryDirectory(prefix="quire-chaos-") as home:
                try:
                    outcome = play(round, Path(home), lambda run: audit(spark, run))
                except BaseException:
                    happened = Path(home, "happened.txt")
                    print(happened.read_text() if happened.exists() else "")
                    print(f"play it again: make chaos CHAOS='--seed {round.seed} --rounds 1 --seconds {given.seconds:g}'")
                    raise
            done += 1
            acknowledged += outcome.acknowledged
            counted.update(type(fault).__name__.lower() for fault in round.faults)
            print(f"  {outcome.acknowledged} acknowledged, 0 lost, 0 twice, {outcome.views} views, {outcome.seconds:.0f} s")
    minutes = (time.monotonic() - began) / 60
    kinds = ", ".join(f"{count} {kind}s" for kind, count in sorted(counted.items()))
    print(f"{done} rounds from seed {first} in {minutes:.1f} minutes: {counted.total()} faults ({kinds})")


if __name__ == "__main__":
    main()
