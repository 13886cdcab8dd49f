"""Small traces for the audit: random ones with planted faults, and their files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from quire.model.orders import OF_ANY_MESSAGES, Guarantee
from quire.trace.schema import SCHEMA, Outcome, RunInfo
from quire.trace.store import RunWriter
from tests.audit.oracle import Event, Logs, Message

Clocks = list[list[int | None]]


class Trace(NamedTuple):
    logs: Logs
    clocks: Clocks
    crashed: frozenset[int] = frozenset()


FAULTS = ("duplicate", "loss", "phantom", "misaddressed", "late", "early", "sent again", "misattributed", "unrecorded", "crash")


def random_trace(random: random.Random) -> Trace:
    """Members send to random groups; messages arrive in order, except for the faults that this trace happens to have."""
    members = random.randint(2, 5)
    faults = [fault for fault in FAULTS if random.random() < random.choice((0.0, 0.15, 0.4))]
    rate = random.choice((0.03, 0.1, 0.3))
    groups = [sorted(random.sample(range(members), random.randint(1, members))) for _ in range(random.randint(1, 3))]
    logs: Logs = [[] for _ in range(members)]
    clocks: Clocks = [[] for _ in range(members)]
    clock = [0] * members
    sent: dict[Message, int] = {}
    waiting: list[list[Message]] = [[] for _ in range(members)]
    crashed: set[int] = set()
    budget = random.randint(1, 14)

    def happen(p: int, event: Event, after: int = 0) -> None:
        clock[p] = max(clock[p], after) + random.choice((1, 1, 2))
        logs[p].append(event)
        clocks[p].append(clock[p])

    def strikes(fault: str) -> bool:
        return fault in faults and random.random() < rate

    numbers = [0] * members
    while budget or any(queue for p, queue in enumerate(waiting) if p not in crashed):
        p = random.choice([p for p in range(members) if p not in crashed] or [-1])
        if p < 0:
            break
        if strikes("crash") and len(crashed) < members - 1:
            crashed.add(p)
            continue
        if budget and random.random() < 0.4:
            budget -= 1
            message = (p, numbers[p])
            numbers[p] += 1
            dests: tuple[int, ...] | None = tuple(random.choice(groups))
            for q in dests or ():
                if not strikes("loss"):
                    waiting[q].append(message)
            if strikes("unrecorded"):
                dests = None
            happen(p, Event("send", *message, dests))
            sent[message] = clock[p]
            if strikes("sent again"):
                happen(p, Event("send", *random.choice([m for m in sent if m[0] == p]), dests))
            if strikes("misattributed"):
                happen(p, Event("send", (p + 1) % members, random.randint(0, 3), dests))
            if strikes("misaddressed"):
                waiting[random.randrange(members)].append(message)
            if random.random() < 0.2:
                happen(p, Event("packet", -1, -1))
        elif waiting[p]:
            index = random.randrange(len(waiting[p])) if strikes("late") else 0
            message = waiting[p].pop(index)
            happen(p, Event("deliver", *message), sent[message])
            if strikes("duplicate"):
                waiting[random.choice([p, p, random.randrange(members)])].append(random.choice(list(sent)))
        if strikes("phantom"):
            happen(p, Event("deliver", random.randint(0, members), random.choice((numbers[p], numbers[p] + 40, -1))))
    trace = Trace(logs, clocks, frozenset(crashed))
    return _with_strange_clocks(random, trace) if random.random() < 0.2 else trace


def _with_strange_clocks(random: random.Random, trace: Trace) -> Trace:
    """The same trace with logical times that are missing, or that are no logical times, or logs that contradict each other."""
    clocks: Clocks = [list(own) for own in trace.clocks]
    strange = random.choice(("none", "some", "wrong", "contradiction"))
    for p, own in enumerate(clocks):
        for i in range(len(own)):
            if strange == "none" or (strange == "some" and random.random() < 0.2):
                own[i] = None
            elif strange == "wrong":
                own[i] = random.choice((i, random.randint(0, 9)))
        if strange == "contradiction" and len(trace.logs[p]) > 2:
            sends = [i for i, e in enumerate(trace.logs[p]) if e.kind == "send"]
            kept = [e for i, e in enumerate(trace.logs[p]) if i not in sends]
            trace.logs[p][:] = kept + [trace.logs[p][i] for i in sends]
    return trace._replace(clocks=clocks)


def table(process: int, log: Sequence[Event], clocks: Sequence[int | None], run: str = "test") -> pa.Table:
    """The rows of one process."""
    rows = len(log)
    is_message = [e.kind != "packet" for e in log]
    columns: dict[str, list[Any]] = {
        "run": [run] * rows,
        "process": [process] * rows,
        "pos": list(range(rows)),
        "kind": [e.kind for e in log],
        "origin": [e.origin if known else None for e, known in zip(log, is_message, strict=True)],
        "seq": [e.seq if known else None for e, known in zip(log, is_message, strict=True)],
        "dests": [None if e.dests is None else list(e.dests) for e in log],
        "lamport": list(clocks),
    }
    for name in ("group", "object", "op", "txn"):
        columns[name] = [getattr(e, name) for e in log]
    arrays = [pa.array(columns.get(field.name, [None] * rows), field.type) for field in SCHEMA]
    return pa.table(arrays, schema=SCHEMA)


def write(
    directory: Path, trace: Trace, *, run: str = "test", promises: tuple[Guarantee, ...] = OF_ANY_MESSAGES,
    rows_per_append: int = 1 << 30, settings: dict[str, object] | None = None,
) -> Path:  # fmt: skip
    """A run directory with this trace; a small `rows_per_append` makes small row groups."""
    deliveries = sum(e.kind == "deliver" for log in trace.logs for e in log)
    sends = sum(e.kind == "send" for log in trace.logs for e in log)
    with RunWriter(directory, run) as writer:
        for process, (log, clocks) in enumerate(zip(trace.logs, trace.clocks, strict=True)):
            rows = table(process, log, clocks, run)
            for start in range(0, rows.num_rows, rows_per_append):
                writer.append(process, rows.slice(start, rows_per_append))
        writer.finish(
            RunInfo(
                run=run, source="test", protocol="none", options={}, members=len(trace.logs), groups={}, promises=promises,
                settings=settings or {},
                outcome=Outcome(complete=True, messages=sends, deliveries=deliveries, crashed=tuple(sorted(trace.crashed))),
            )
        )  # fmt: skip
    return directory


def plain(*logs: str) -> Trace:
    """A trace from text: one word an event, `s4>012` sends the member's message 4 to members 0, 1, 2; `d1:4` delivers 1:4."""
    parsed: Logs = []
    for process, log in enumerate(logs):
        own = []
        for word in log.split():
            if word[0] == "s":
                seq, _, dests = word[1:].partition(">")
                own.append(Event("send", process, int(seq), tuple(int(d) for d in dests)))
            else:
                origin, _, seq = word[1:].partition(":")
                own.append(Event("deliver", int(origin), int(seq)))
        parsed.append(own)
    return timed(parsed)


def timed(logs: Logs, crashed: frozenset[int] = frozenset()) -> Trace:
    """The logs with true logical times."""
    clocks: Clocks = [[] for _ in logs]
    clock = [0] * len(logs)
    sent: dict[Message, int] = {}
    real = {(e.origin, e.seq) for p, log in enumerate(logs) for e in log if e.kind == "send" and e.origin == p}
    while any(len(own) < len(log) for own, log in zip(clocks, logs, strict=True)):
        moved = False
        for p, log in enumerate(logs):
            if len(clocks[p]) == len(log):
                continue
            e = log[len(clocks[p])]
            m = (e.origin, e.seq)
            if e.kind == "deliver" and m in real and m not in sent:
                continue
            clock[p] = max(clock[p], sent.get(m, 0)) + 1
            clocks[p].append(clock[p])
            if e.kind == "send":
                sent.setdefault(m, clock[p])
            moved = True
        assert moved, "these logs contradict each other"
    return Trace(logs, clocks, crashed)
