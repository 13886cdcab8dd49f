"""Small traces of objects that call each other, in no order or in good order, and what significant order means for them."""

from __future__ import annotations

import random
from itertools import combinations, count
from typing import NamedTuple

from tests.audit.oracle import Event, Logs, Message
from tests.audit.traces import Trace, timed

Conflicts = dict[str, dict[str, list[str]]]
OPERATIONS = ("a", "b", "c")


class Calls(NamedTuple):
    trace: Trace
    conflicts: Conflicts


class _Pending(NamedTuple):
    to: int
    message: Message
    caller: str
    object: str | None
    op: str
    ends: str | None = None


def random_calls(rng: random.Random, steps: int | None = None) -> Calls:
    """Roots call objects, which call others and answer. Nothing is ordered, unless all of it is."""
    members = rng.randint(2, 4)
    objects = {
        f"x{number}": sorted(rng.sample(range(members), rng.randint(1, min(3, members)))) for number in range(rng.randint(1, 3))
    }
    tidy = rng.choice((0.0, 0.0, 0.7, 0.9, 1.0))
    refusing = rng.choice((0.0, 0.1))
    logs: Logs = [[] for _ in range(members)]
    fresh, names = [count() for _ in range(members)], count()
    pending: list[_Pending] = []
    active: list[tuple[int, str, tuple[int, str] | None]] = []
    """Member, instance, and the member and the instance that wait for its answer."""

    def call(p: int, instance: str) -> None:
        op = rng.choice(OPERATIONS)
        targets = rng.sample(sorted(objects), rng.choice((1, 1, min(2, len(objects)))))
        shared = f"r{next(names)}" if len(targets) > 1 else None
        for target in targets:
            message = (p, next(fresh[p]))
            logs[p].append(Event("send", *message, tuple(objects[target]), shared, target, op, instance))
            pending.extend(_Pending(to, message, instance, target, op) for to in objects[target])

    def answer(p: int, instance: str, caller: tuple[int, str], how: str) -> None:
        message = (p, next(fresh[p]))
        logs[p].append(Event("send", *message, (caller[0],), None, None, how, instance))
        pending.append(_Pending(caller[0], message, caller[1], None, how))

    steps = steps or rng.randint(4, 30)
    while steps or pending:
        steps = max(0, steps - 1)
        if pending and (not steps or rng.random() < 0.6 or rng.random() < tidy):
            taken = pending.pop(0 if rng.random() < tidy else rng.randrange(len(pending)))
            p = taken.to
            if taken.object is None:
                logs[p].append(Event("deliver", *taken.message, None, None, None, taken.op, taken.caller))
                continue
            instance, caller = f"i{next(names)}", (taken.message[0], taken.caller)
            if rng.random() < refusing:
                logs[p].append(Event("deliver", *taken.message, None, None, None, taken.op, instance))
                answer(p, instance, caller, "died")
                continue
            logs[p].append(Event("deliver", *taken.message, None, None, taken.object, taken.op, instance))
            active.append((p, instance, caller))
            if rng.random() < tidy:
                active.pop()
                answer(p, instance, caller, "ok")
        elif active and rng.random() < 0.6:
            at = rng.randrange(len(active))
            p, instance, waiting = active[at]
            if steps and rng.random() < 0.4:
                call(p, instance)
            elif waiting is not None:
                active.pop(at)
                answer(p, instance, waiting, "ok")
        elif steps:
            p = rng.randrange(members)
            root = f"root{next(names)}"
            active.append((p, root, None))
            call(p, root)
    conflicts: Conflicts = {}
    for name in objects:
        if rng.random() < 0.9:
            pairs = [(a, b) for a in OPERATIONS for b in OPERATIONS if a <= b and rng.random() < rng.choice((0.2, 0.6))]
            known = [op for op in OPERATIONS if rng.random() < 0.9]
            conflicts[name] = {op: [b for a, b in pairs if a == op] for op in known}
    crashed = frozenset({rng.randrange(members)}) if rng.random() < 0.1 else frozenset[int]()
    return Calls(timed(logs, crashed), conflicts)


def conflict(conflicts: Conflicts, name: str, one: str, other: str) -> bool:
    lists = conflicts.get(name, {})
    return one not in lists or other not in lists or other in lists[one] or one in lists[other]


def judge(calls: Calls) -> tuple[int, int]:
    """How many deliveries are too early, and how many pairs of destinations disagree, by the definition."""
    trace, conflicts = calls
    logs = trace.logs
    sends = {(e.origin, e.seq): e for log in logs for e in log if e.kind == "send"}
    before: dict[Message, set[Message]] = {m: set() for m in sends}
    for log in logs:
        began = {e.txn: (i, e) for i, e in enumerate(log) if e.kind == "deliver" and e.object}
        ended = {e.txn: i for i, e in reversed(list(enumerate(log))) if e.kind == "send" and not e.object}
        for i, e in enumerate(log):
            for j in range(i if e.kind == "send" else 0):
                x = log[j]
                related = x.txn == e.txn
                if not related and x.txn in began and e.txn in began and x.txn in ended:
                    (_, one), (start, other) = began[x.txn], began[e.txn]
                    related = (
                        one.object == other.object and j <= ended[x.txn] < start
                        and conflict(conflicts, one.object or "", one.op or "", other.op or "")
                    )  # fmt: skip
                if related:
                    before[e.origin, e.seq].add((x.origin, x.seq))

    def precedes(m1: Message, m2: Message) -> bool:
        todo, seen = [m2], {m2}
        while todo:
            for m in before[todo.pop()] - seen:
                seen.add(m)
                todo.append(m)
        return m1 in seen - {m2}

    early = 0
    places: dict[tuple[str, int], list[Event]] = {}
    for p, log in enumerate(logs):
        if p in trace.crashed:
            continue
        answers: dict[str | None, list[Message]] = {}
        for e in log:
            if e.kind == "deliver" and e.object:
                places.setdefault((e.object, p), []).append(e)
            elif e.kind == "deliver" and not sends[e.origin, e.seq].object:
                answers.setdefault(e.txn, []).append((e.origin, e.seq))
        for own in answers.values():
            early += sum(any(precedes(m1, m2) for m1 in own[i + 1 :]) for i, m2 in enumerate(own))
    for (name, _), starts in places.items():
        early += sum(
            any(
                conflict(conflicts, name, y.op or "", x.op or "") and precedes((y.origin, y.seq), (x.origin, x.seq))
                for y in starts[i + 1 :]
            )
            for i, x in enumerate(starts)
        )

    def request(e: Event) -> object:
        sent = sends[e.origin, e.seq]
        return (e.origin, sent.group) if sent.group else (e.origin, e.seq)

    opposite = 0
    for (first, here), (second, theirs) in combinations(places.items(), 2):
        there = {request(e): i for i, e in reversed(list(enumerate(theirs)))}
        opposite += any(
            request(x) in there and request(y) in there and there[request(x)] > there[request(y)]
            and conflict(conflicts, first[0], x.op or "", y.op or "") and conflict(conflicts, second[0], x.op or "", y.op or "")
            for x, y in combinations(here, 2)
        )  # fmt: skip
    return early, opposite
