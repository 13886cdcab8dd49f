"""The audit's kernels on a run that goes on: the same is found however it is cut, and nothing that is not so."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from quire.pipeline.auditing.followed_findings import Found
from quire.pipeline.auditing.following import COUNT, FIRST, LAMPORT, Follower
from quire.trace.kinds import DELIVER, SEND

MEMBERS = 3
Log = list[tuple[int, ...]]


def total_run(random: Random, runs: int) -> list[Log]:
    """Logs of members that deliver runs in one order, each cut into parts as it pleases; rows as the follower takes them."""
    logs: list[Log] = [[] for _ in range(MEMBERS)]
    clock, sent = [0] * MEMBERS, [0] * MEMBERS
    for _ in range(runs):
        origin, count = random.randrange(MEMBERS), random.randint(1, 6)
        first = sent[origin]
        sent[origin] += count
        at = clock[origin] + 1
        clock[origin] += count
        logs[origin].append((SEND, origin, first, count, at, 0, -1))
        for member in range(MEMBERS):
            clock[member] = max(clock[member], at + count - 1)
            done = 0
            while done < count:
                part = random.randint(1, count - done)
                logs[member].append((DELIVER, origin, first + done, part, clock[member] + 1, -1, -1))
                clock[member] += part
                done += part
    return logs


def judge(logs: Sequence[Log], cuts: Sequence[int], *, total: bool = True) -> Found:
    """Hand the logs over in pieces that end at these logical times."""
    follower = Follower(views=False, total=total)
    for _ in logs:
        follower.add_process()
    follower.address(range(len(logs)))
    handed = [0] * len(logs)
    for cut in (*cuts, 1 << 40):
        for member, log in enumerate(logs):
            upto = next((i for i in range(handed[member], len(log)) if log[i][LAMPORT] > cut), len(log))
            follower.take(member, np.array(log[handed[member] : upto], np.int64).reshape(-1, 7), cut)
            handed[member] = upto
        while follower.advance():
            pass
    assert follower.why == ""
    return follower.found


def is_clean(found: Found) -> bool:
    return not any(tally.count for tally in (found.integrity, found.agreement, found.fifo, found.causal, found.total))


def random_cuts(random: Random, logs: Sequence[Log]) -> list[int]:
    last = max(row[LAMPORT] for log in logs for row in log)
    return sorted(random.randrange(last + 1) for _ in range(random.randint(0, 8)))


@pytest.mark.parametrize("seed", range(25))
def test_a_run_in_one_order_holds_however_it_is_cut(seed: int) -> None:
    random = Random(seed)
    logs = total_run(random, 30)
    found = judge(logs, random_cuts(random, logs))
    assert is_clean(found)
    assert found.deliveries == MEMBERS * found.messages


@pytest.mark.parametrize("seed", range(25))
def test_two_deliveries_that_change_places_are_found_however_the_run_is_cut(seed: int) -> None:
    random = Random(seed)
    logs = total_run(random, 30)
    member = random.randrange(MEMBERS)
    log = logs[member]
    sent = {(row[1], row[2] + i): row[LAMPORT] + i for log in logs for row in log if row[0] == SEND for i in range(row[COUNT])}
    places = [
        i
        for i in range(len(log) - 1)
        if log[i][0] == log[i + 1][0] == DELIVER and sent[log[i + 1][1], log[i + 1][2]] < log[i][LAMPORT]
    ]
    at = random.choice(places)
    one, other = log[at], log[at + 1]
    log[at] = (*other[:LAMPORT], one[LAMPORT], -1, -1)
    log[at + 1] = (*one[:LAMPORT], one[LAMPORT] + other[COUNT], -1, -1)
    found = judge(logs, random_cuts(random, logs))
    whole = judge(logs, ())
    assert found.total.first is not None
    assert bool(found.fifo.count) == (one[1] == other[1]) == bool(whole.fifo.count)
    assert (found.causal.count > 0) == (whole.causal.count > 0)
    assert found.integrity.count == found.agreement.count == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_message_that_is_delivered_again_is_found(seed: int) -> None:
    random = Random(seed)
    logs = total_run(random, 20)
    delivered = next(row for row in logs[1] if row[0] == DELIVER)
    logs[1].append((*delivered[:LAMPORT], logs[1][-1][LAMPORT] + logs[1][-1][COUNT], -1, -1))
    assert judge(logs, random_cuts(random, logs)).integrity.count > 0


def test_what_is_in_flight_is_all_that_is_kept() -> None:
    follower = Follower(views=False, total=True)
    random = Random(1)
    logs = total_run(random, 400)
    for _ in logs:
        follower.add_process()
    follower.address(range(MEMBERS))
    last = max(row[LAMPORT] for log in logs for row in log)
    kept = []
    for cut in range(0, last, 40):
        for member, log in enumerate(logs):
            rows = [row for row in log if cut <= row[LAMPORT] < cut + 40]
            follower.take(member, np.array(rows, np.int64).reshape(-1, 7), cut + 39)
        follower.advance()
        kept.append(sum(len(each.start) for each in follower._flying))
    assert max(kept) < 20
    assert follower._total is not None
    assert sum(map(len, follower._total._pending)) < 60


def test_whoever_is_gone_is_not_waited_for_and_what_nobody_saw_it_send_is_no_violation() -> None:
    random = Random(7)
    logs = total_run(random, 30)
    # Of member 2 only the beginning was heard: it was killed, and the rest of what it recorded died with it.
    half = len(logs[2]) // 2
    follower = Follower(views=False, total=True)
    for _ in logs:
        follower.add_process()
    follower.address(range(MEMBERS))
    follower.take(2, np.array(logs[2][:half], np.int64), logs[2][half][LAMPORT] - 1)
    for member in (0, 1):
        follower.take(member, np.array(logs[member], np.int64), 1 << 40)
    follower.advance()
    judged = follower.found.deliveries
    follower.gone(2)
    while follower.advance():
        pass
    assert follower.found.deliveries > judged
    assert is_clean(follower.found)


def test_a_part_of_a_run_can_be_late() -> None:
    sends: Log = [(SEND, 0, 0, 10, 1, 0, -1), (DELIVER, 0, 0, 10, 20, -1, -1)]
    late: Log = [(DELIVER, 0, 4, 6, 21, -1, -1), (DELIVER, 0, 0, 4, 31, -1, -1)]
    found = judge([sends, late], (25,))
    assert found.fifo.first is not None
    assert (found.fifo.first.process, found.fifo.first.seq, found.fifo.first.missing) == (1, 4, (0, 0))
    assert FIRST == 2
