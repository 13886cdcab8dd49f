"""Transactions that are judged in pieces, some objects in each, are judged as they are in one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import msgspec
import pytest

from quire.pipeline.auditing import transaction_pieces
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.check import TaskKind
from quire.pipeline.auditing.checks.isolation import READ_ATOMIC, IsolationResult, IsolationTask, judge_isolation
from quire.pipeline.auditing.checks.serialisable import SERIALISABLE, SerialisableResult, SerialisableTask, judge_serialisable
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.layout import lay_out
from quire.pipeline.tasks import run_here
from quire.trace.store import open_run
from tests.audit.oracle import Event, Message
from tests.audit.traces import timed, write
from tests.audit.txn_traces import random_transactions
from tests.kit.effort import runs

HERE = run_here(audit_job())
TRACES = runs(40, 400)
PIECES = (2, 3, 7)
(KIND,) = SERIALISABLE.tasks
(LEVELS,) = READ_ATOMIC.tasks
GUARANTEES = ["serialisable", "read-committed", "read-atomic", "transactional-causal"]
Found = SerialisableResult | IsolationResult


def serialisable(directory: Path, pieces: int) -> SerialisableResult:
    layout = lay_out(open_run(directory))
    tasks = [SerialisableTask(layout.world, layout.groups, "", pieces, piece) for piece in range(pieces)]
    return reduce(SerialisableResult.joined, map(judge_serialisable, tasks))


def levels(directory: Path, pieces: int) -> IsolationResult:
    layout = lay_out(open_run(directory))
    tasks = [IsolationTask(layout.world, layout.groups, pieces, piece) for piece in range(pieces)]
    return reduce(IsolationResult.joined, map(judge_isolation, tasks))


def told(found: Found) -> Found:
    return msgspec.structs.replace(found, part=None)


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize(("judge", "kind"), [(serialisable, KIND), (levels, LEVELS)])
def test_pieces_that_settle_it_say_what_one_task_says(
    tmp_path: Path, judge: Callable[[Path, int], Found], kind: TaskKind, stamped: bool
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        directory = tmp_path / str(seed)
        write(directory, random_transactions(random.Random(seed), stamped=stamped))
        whole = judge(directory, 1)
        for pieces in PIECES:
            found = judge(directory, pieces)
            settled = kind.settled(found)
            assert not settled or told(found) == whole, f"seed {seed}, {pieces} pieces"
            seen["settled"] += settled
            seen["open"] += not settled
            seen["wrong"] += settled and whole.wrong.count > 0
            seen["why"] += settled and bool(whole.why)
    assert min(seen[name] for name in ("settled", "open", "wrong", "why")) >= 3, seen


def test_the_verdict_is_the_same_for_every_number_of_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts: Counter[str] = Counter()
    for seed in range(24):
        trace = random_transactions(random.Random(seed), stamped=seed % 2 == 0)
        write(tmp_path / str(seed), trace)
        found = []
        monkeypatch.setattr(transaction_pieces, "ROWS_AT_ONCE", 0)
        for pieces in (1, *PIECES):
            monkeypatch.setattr(transaction_pieces, "ROWS_PER_PIECE", -(-sum(map(len, trace.logs)) // pieces))
            checks = audit_with(HERE, tmp_path / str(seed), expect=GUARANTEES).checks
            found.append([checks[guarantee] for guarantee in GUARANTEES])
        assert all(other == found[0] for other in found[1:]), f"seed {seed}"
        verdicts.update(check.verdict for check in found[0])
    assert len(verdicts) == 3, verdicts


def test_what_one_task_can_hold_is_not_judged_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece would read all of it, and if no order explains it, it would be judged again."""
    write(tmp_path / "run", timed([writes("1.0", "2.0"), session(("3.1", "x", (0, 2)))]))
    groups = lay_out(open_run(tmp_path / "run")).groups
    counts = {}
    for at_once in (7, 6):
        monkeypatch.setattr(transaction_pieces, "ROWS_AT_ONCE", at_once)
        monkeypatch.setattr(transaction_pieces, "ROWS_PER_PIECE", 3)
        counts[at_once] = transaction_pieces.count_pieces(groups)

    assert counts == {7: 1, 6: 3}


def session(*transactions: tuple[str, str, Message | None]) -> list[Event]:
    """A process that only reads: each time the name of the transaction, the object, and the write that it saw."""
    log = []
    for number, (name, key, saw) in enumerate(transactions):
        ask, end = (1, 2 * number), (1, 2 * number + 1)
        log.append(Event("send", *ask, (0,), None, key, "r", name))
        log.append(Event("view", *(saw or ask), None, None, key, "r", name))
        log.append(Event("send", *end, (0,), None, None, "commit", name))
    return log


def writes(*names: str) -> list[Event]:
    """A process that writes x in one transaction after the other; its messages with even numbers are the writes."""
    return [
        event
        for number, name in enumerate(names)
        for event in (
            Event("send", 0, 2 * number, (0,), None, "x", "w", name),
            Event("send", 0, 2 * number + 1, (0,), None, None, "commit", name),
        )
    ]


@pytest.mark.parametrize(
    ("names", "reads", "explained"),
    [
        (("1.0", "2.0"), (("3.1", "x", (0, 2)),), True),
        (("1.0", "2.0"), (("3.1", "x", (0, 0)),), False),  # Not the last version.
        (("1.0", "2.0"), (("3.1", "x", None),), False),  # There is one already.
        (("4.0", "5.0"), (("3.1", "x", None), ("6.1", "x", (0, 2))), True),
        (("1.0", "4.0"), (("5.1", "x", (0, 2)), ("3.1", "x", (0, 0))), False),  # It goes back in its session.
    ],
)
def test_an_order_explains_sessions_and_reads_of_the_last_version(
    tmp_path: Path, names: tuple[str, ...], reads: tuple[tuple[str, str, Message | None], ...], explained: bool
) -> None:
    write(tmp_path / "run", timed([writes(*names), session(*reads)]))
    part = levels(tmp_path / "run", 2).part

    assert part is not None
    assert (part.backward[0] == 0) == explained


def test_a_message_that_is_about_two_objects_leaves_it_to_one_task(tmp_path: Path) -> None:
    """A delivery that names another object than the send would be another write in another piece."""
    keys = [f"k{number}" for number in range(8)]
    logs = [
        [Event("send", 0, number, (1,), None, key, "w", "t1") for number, key in enumerate(keys)]
        + [Event("send", 0, len(keys), (1,), None, None, "commit", "t1")],
        [Event("deliver", 0, number, None, None, keys[number - 1], "w", "t1") for number in range(len(keys))],
    ]  # fmt: skip
    write(tmp_path / "run", timed(logs))

    assert not KIND.settled(serialisable(tmp_path / "run", 2))


def test_an_event_without_an_object_leaves_it_to_one_task(tmp_path: Path) -> None:
    logs = [
        [Event("send", 0, 0, (0,), None, None, "w", "t1"), Event("send", 0, 1, (0,), None, None, "commit", "t1")],
    ]  # fmt: skip
    write(tmp_path / "run", timed(logs))

    assert not KIND.settled(serialisable(tmp_path / "run", 2))
