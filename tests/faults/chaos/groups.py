"""Groups whose members change: everybody has a journal and sends all the time, and whatever was acknowledged is there."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow.dataset as ds

from quire.live.runs.collecting import collect
from quire.live.runs.faulty_fleet import FaultyFleet
from quire.live.runs.plan import Plan
from quire.model.faults import end_ms
from quire.trace.views import parse_operation_word
from tests.faults.chaos.processes import stage
from tests.faults.chaos.rounds import TIMEOUT_MS, Judge, Maker, Outcome, Round, check_promises

RATE = 150.0


def make_round(seed: int, seconds: float, apart: bool) -> Round:
    choose = random.Random(seed)
    members = choose.choice((3, 5))
    maker = Maker(choose, members, seconds)

    def kill(at_ms: int) -> None:
        maker.kill(maker.free(at_ms)[:1], at_ms)

    def kill_all(at_ms: int) -> None:
        """If nothing happens to any of them just then."""
        free = maker.free(at_ms)
        if len(free) == members and choose.random() < 0.3:
            maker.kill(free, at_ms)

    kinds: list[Callable[[int], int | None]] = [kill, kill, maker.stop_shortly, maker.stop_for_long, kill_all]
    # Whoever may make networks may make disks, too.
    kinds += [maker.part, maker.cut, maker.fill] * apart
    return Round(seed, members, maker.make(kinds))


def play(round: Round, directory: Path, judge: Judge, **settings: object) -> Outcome:
    """`settings`: what the plan of the group has besides."""
    began, span_s = time.monotonic(), end_ms(round.faults) / 1000 + 1
    with stage(round) as place:
        plan = Plan(
            members=tuple(place.addresses(7000)), protocol="single-phase", rate=RATE, messages=int(RATE * span_s),
            insecure=True, timeout_s=TIMEOUT_MS / 1000, join_s=60,
        )  # fmt: skip
        plan = msgspec.structs.replace(plan, **settings)
        fleet = FaultyFleet(plan, round.faults, directory / "parts", place.hosts, place.disks)
        try:
            asyncio.run(fleet.run())
        finally:
            log = "\n".join(f"{each.at_s:8.3f} {each.what} {each.about}" for each in fleet.happened)
            (directory / "happened.txt").write_text(log)
    collect(directory / "parts", directory / "run", observed=fleet.observed)
    check_promises(judge(directory / "run"))
    delivered = _operations(directory / "run")
    for member, count in fleet.acknowledged.items():
        lost = set(range(1, count + 1)) - delivered.get(str(member), set())
        assert not lost, f"{len(lost)} messages of member {member} were acknowledged and are lost, the first is {min(lost)}"
    views = sum(each.what.startswith("view") for each in fleet.happened)
    acknowledged, found = sum(fleet.acknowledged.values()), sum(map(len, delivered.values()))
    return Outcome(round, acknowledged, found, f"{views} views", time.monotonic() - began)


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
