"""Transactions and calls of a run that goes on: what is found is found by the audit too, however the run is cut."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from quire.model.orders import Guarantee
from quire.pipeline.auditing import followed_calls, followed_transactions, followed_window
from quire.pipeline.auditing.checks.serialisable import judge_transactions
from quire.pipeline.auditing.checks.significant import judge_calls
from quire.pipeline.auditing.followed_events import Worded, labelled
from quire.pipeline.auditing.followed_transactions import OLD_READS
from quire.pipeline.auditing.followed_window import WindowFollower, follow_words
from quire.pipeline.auditing.transaction_findings import UNCOMMITTED
from quire.trace.kinds import KINDS
from tests.audit import memory
from tests.audit.call_traces import random_calls
from tests.audit.test_serialisable import SKEW, end, read, saw, write_of
from tests.audit.traces import Trace, timed
from tests.audit.txn_traces import random_transactions
from tests.kit.effort import runs

TRACES = runs(150, 1000)


def worded(trace: Trace) -> list[list[Worded]]:
    return [
        [
            Worded(
                KINDS.index(event.kind), event.origin, event.seq, clock or 0, (event.group, event.object, event.op, event.txn)
            )
            for event, clock in zip(log, clocks, strict=True)
        ]
        for log, clocks in zip(trace.logs, trace.clocks, strict=True)
    ]


def with_causal_reads(trace: Trace) -> Trace:
    """The trace with logical times by which what is read was written before."""
    seen = [[event._replace(kind="deliver" if event.kind == "view" else event.kind) for event in log] for log in trace.logs]
    return Trace(trace.logs, timed(seen).clocks, trace.crashed)


def follow(follower: WindowFollower, logs: Sequence[Sequence[Worded]], cuts: Sequence[int]) -> WindowFollower:
    """Hand the logs over in pieces that end at these logical times."""
    handed = [0] * len(logs)
    for cut in (*cuts, 1 << 40):
        for process, log in enumerate(logs):
            upto = next((at for at in range(handed[process], len(log)) if log[at].lamport > cut), len(log))
            follower.take(process, log[handed[process] : upto], cut)
            handed[process] = upto
        follower.advance()
    return follower


def cuts_of(rng: random.Random, logs: Sequence[Sequence[Worded]]) -> list[int]:
    last = max((event.lamport for log in logs for event in log), default=0)
    return sorted(rng.randrange(last + 1) for _ in range(rng.randint(0, 8)))


def store(processes: int) -> WindowFollower:
    return follow_words(Guarantee.SERIALISABLE, {"versions": "timestamp"}, processes)


@pytest.mark.parametrize("kept", [10_000, 12])
def test_transactions_are_judged_as_by_the_audit_however_the_run_is_cut(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_window, "EVENTS_MAX", kept)
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        rng = random.Random(seed)
        trace = random_transactions(rng, stamped=True)
        logs = worded(with_causal_reads(trace))
        whole = judge_transactions(memory.labelled(trace), "timestamp")
        found = follow(store(len(logs)), logs, cuts_of(rng, logs))
        # The audit knows that nothing more comes, so that who has not committed never will.
        if whole.wrong.kind != UNCOMMITTED:
            assert not found.count or whole.violations, f"seed {seed}: {found.because}"
        if kept > 1000:
            assert found.count or not whole.violations or whole.wrong.kind == UNCOMMITTED, f"seed {seed}"
        assert bool(found.because) == bool(found.count)
        seen["found"] += found.count > 0
        seen["clean"] += not whole.violations
    assert min(seen["found"], seen["clean"]) > TRACES // 50, seen


@pytest.mark.parametrize("kept", [10_000, 12])
def test_calls_are_judged_as_by_the_audit_however_the_run_is_cut(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_window, "EVENTS_MAX", kept)
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        rng = random.Random(seed)
        calls = random_calls(rng)
        logs = worded(calls.trace)
        whole = judge_calls(memory.labelled(calls.trace), calls.conflicts, np.ones(len(logs), np.bool_))
        follower = follow_words(Guarantee.SIGNIFICANT, {"conflicts": calls.conflicts}, len(logs))
        found = follow(follower, logs, cuts_of(rng, logs))
        assert not found.count or whole.violations, f"seed {seed}: {found.because}"
        assert kept < 1000 or found.count or not whole.violations, f"seed {seed}"
        seen["found"] += found.count > 0
        seen["clean"] += not whole.violations
    assert min(seen["found"], seen["clean"]) > TRACES // 50, seen


def test_transactions_that_come_before_each_other_are_named() -> None:
    found = follow(store(3), worded(SKEW), [2])
    assert found.count == 1
    assert "come before each other" in found.because


def test_what_may_still_commit_is_no_violation_until_it_aborts() -> None:
    logs = [
        [],
        [write_of(1, 0, "x", "1.1"), end(1, 1, "1.1", "abort")],
        [read(2, 0, "x", "1.2"), saw(1, 0, "x", "1.2"), end(2, 1, "1.2")],
    ]
    trace = timed(logs)
    open_ = worded(trace)
    aborted = open_[1].pop()
    follower = follow(store(3), open_, [])
    assert follower.count == 0
    follower.take(1, [aborted], 1 << 41)
    for process in (0, 2):
        follower.take(process, [], 1 << 41)
    follower.advance()
    assert "which never committed" in follower.because


class Store:
    """A run of transactions one after the other, by three clients, each of which reads and writes some of the objects."""

    def __init__(self, rng: random.Random, objects: int) -> None:
        self._rng = rng
        self._things = [f"k{number}" for number in range(objects)]
        self._now = self._txn = 0
        self._fresh = [0, 0, 0]
        self.logs: list[list[Worded]] = [[], [], []]
        self.versions: dict[str, list[tuple[int, int]]] = {thing: [] for thing in (*self._things, "x", "y")}

    def transact(self, stale: float) -> None:
        """`stale`: how likely each read is one of an older version, of any age."""
        self._txn += 1
        me, read, wrote = self._rng.randrange(3), list[str](), list[tuple[str, tuple[int, int]]]()
        for thing in self._rng.sample(self._things, self._rng.randint(1, min(3, len(self._things)))):
            if self._rng.random() < 0.6:
                read.append(thing)
                self._read(me, thing, old=self._rng.random() < stale)
            if self._rng.random() < 0.5:
                wrote.append((thing, self._send(me, thing, "w")))
        self._send(me, None, "commit")
        for thing, message in wrote:
            self.versions[thing].append(message)

    def one(self, *reads: tuple[str, int], writes: str = "") -> None:
        """A transaction that reads these versions of objects, by their numbers, and writes an object."""
        self._txn += 1
        for thing, version in reads:
            self._read(0, thing, version=version)
        message = self._send(0, writes, "w") if writes else None
        self._send(0, None, "commit")
        if message is not None:
            self.versions[writes].append(message)

    def _read(self, me: int, thing: str, *, old: bool = False, version: int = -1) -> None:
        own = self._send(me, thing, "r")
        known = self.versions[thing]
        seen = self._rng.choice([own, *known]) if old else known[version] if known else own
        self._note("view", me, *seen, thing, "r")

    def _send(self, me: int, thing: str | None, op: str) -> tuple[int, int]:
        message = me, self._fresh[me]
        self._fresh[me] += 1
        self._note("send", me, *message, thing, op)
        return message

    def _note(self, kind: str, me: int, origin: int, seq: int, thing: str | None, op: str) -> None:
        self._now += 1
        self.logs[me].append(Worded(KINDS.index(kind), origin, seq, self._now, (None, thing, op, f"{self._txn}.{me}")))


@pytest.mark.parametrize("objects", [1, 4, 12])
def test_what_was_forgotten_raises_no_alarm_and_is_never_missed_in_silence(
    objects: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_window, "EVENTS_MAX", 60)
    seen: Counter[str] = Counter()
    for seed in range(runs(25, 300)):
        rng = random.Random(seed)
        run = Store(rng, objects)
        stale = rng.choice((0.0, 0.02))
        for _ in range(150):
            run.transact(stale)
        whole = judge_transactions(labelled(run.logs)[0], "timestamp").violations > 0
        cuts = sorted(rng.randrange(run.logs[0][-1].lamport) for _ in range(rng.randint(0, 30)))
        found = follow(store(3), run.logs, cuts)
        assert whole or not found.count, f"seed {seed}: {found.because}"
        # Of a version that is forgotten nobody knows any more all that its reader comes before and after.
        assert found.beyond in (("", OLD_READS) if stale else ("",)), f"seed {seed}"
        assert found.count or not whole or found.beyond, f"seed {seed}"
        seen["found" if found.count else "missed" if whole else "clean"] += 1
    assert min(seen["found"], seen["clean"]) > 2, seen
    assert seen["missed"] * 50 <= seen["found"], seen


@pytest.mark.parametrize("version", [-2, 0], ids=["the last but one", "the first"])
def test_a_transaction_that_reads_what_was_overwritten_long_ago_is_found(version: int) -> None:
    """It reads what another wrote after that, so that each comes before the other; thousands of transactions are in between."""
    run = Store(random.Random(1), 40)
    for _ in range(5):
        run.one(("x", -1), writes="x")
    run.one(("x", -1), writes="y")
    while sum(map(len, run.logs)) < 2 * followed_window.EVENTS_MAX:
        run.transact(stale=0)
    cuts = list(range(5000, run.logs[0][-1].lamport, 5000))
    assert not follow(store(3), run.logs, cuts).count
    run.one(("y", -1), ("x", version))
    found = follow(store(3), run.logs, cuts)
    assert found.count == 1
    assert "come before each other" in found.because
    assert found.beyond == (OLD_READS if version == 0 else ""), "of a version that is forgotten less is known"
    assert sum(map(len, found._kept)) < followed_window.EVENTS_MAX


def calls_beside_one_that_takes_long(others: int) -> list[list[Worded]]:
    """An instance makes two calls of x, of which the second begins first; the other begins after so many calls of y."""
    logs: list[list[Worded]] = [[], []]
    at = [0]

    def note(process: int, kind: str, origin: int, seq: int, thing: str | None, txn: str) -> None:
        at[0] += 1
        logs[process].append(Worded(KINDS.index(kind), origin, seq, at[0], (None, thing, "set", txn)))

    def carry_out(seq: int, thing: str, called: str, answer: int, caller: str) -> None:
        note(1, "deliver", 0, seq, thing, called)
        note(1, "send", 1, answer, None, called)
        note(0, "deliver", 1, answer, None, caller)

    note(0, "send", 0, 0, "x", "caller")
    note(0, "send", 0, 1, "x", "caller")
    carry_out(1, "x", "second", 0, "caller")
    for number in range(others):
        note(0, "send", 0, 2 + number, "y", f"other {number}")
        carry_out(2 + number, "y", f"called {number}", 1 + number, f"other {number}")
    carry_out(0, "x", "first", 1 + others, "caller")
    return logs


def test_a_call_that_was_overtaken_long_ago_is_found() -> None:
    logs = calls_beside_one_that_takes_long(followed_window.EVENTS_MAX // 2)
    cuts = list(range(5000, logs[1][-1].lamport, 5000))
    found = follow(follow_words(Guarantee.SIGNIFICANT, {"conflicts": {}}, 2), logs, cuts)
    assert (found.count, found.beyond) == (1, "")
    assert "before 0:0 (set), which significantly precedes it" in found.because


def test_what_was_on_its_way_for_too_long_is_said_not_to_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_window, "EVENTS_MAX", 40)
    monkeypatch.setattr(followed_calls, "AT_MOST", 100)
    logs = calls_beside_one_that_takes_long(100)
    found = follow(follow_words(Guarantee.SIGNIFICANT, {"conflicts": {}}, 2), logs, list(range(10, 400, 10)))
    assert found.count == 0
    assert found.beyond == "calls that were on their way for more than 100 events are not compared with earlier ones"
    assert sum(map(len, found._kept)) <= 100 + 40


def test_objects_beyond_so_many_are_said_to_be_judged_among_the_last_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_window, "EVENTS_MAX", 60)
    monkeypatch.setattr(followed_transactions, "KEPT_MAX", 5)
    run = Store(random.Random(2), 30)
    for _ in range(300):
        run.transact(stale=0)
    found = follow(store(3), run.logs, list(range(20, run.logs[0][-1].lamport, 20)))
    assert (found.count, found.beyond) == (0, "objects beyond those of 5 transactions are judged among the last events only")


def test_only_the_last_events_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_window, "EVENTS_MAX", 50)
    follower = store(1)
    for number in range(100):
        at = number * 4
        name = f"{number + 1}.0"
        log = [write_of(0, at, "x", name), read(0, at + 1, "x", name), saw(0, at, "x", name), end(0, at + 2, name)]
        follower.take(0, [each._replace(lamport=at + 1 + n) for n, each in enumerate(worded(timed([log]))[0])], at + 4)
        follower.advance()
        assert sum(map(len, follower._kept)) <= 50
    assert (follower.messages, follower.count) == (300, 0)
