"""What the checks mean, by brute force: short, slow, and with nothing in common with the kernels."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import NamedTuple


class Event(NamedTuple):
    kind: str
    origin: int
    seq: int
    dests: tuple[int, ...] | None = None
    group: str | None = None
    object: str | None = None
    op: str | None = None
    txn: str | None = None


Message = tuple[int, int]
Logs = list[list[Event]]


class Expected(NamedTuple):
    integrity: int
    agreement: int
    fifo: int
    causal: int | None
    total: int
    acyclic: int


def judge(logs: Logs, crashed: frozenset[int]) -> Expected:
    """The number of violations of every check; None for causal where a delivery precedes its own send."""
    members = range(len(logs))
    sends: dict[Message, tuple[int, int]] = {}
    dests: dict[Message, frozenset[int] | None] = {}
    breaches = 0
    for p in members:
        for i, e in enumerate(logs[p]):
            if e.kind == "send":
                if e.origin != p or (p, e.seq) in sends:
                    breaches += 1
                else:
                    sends[p, e.seq] = (p, i)
                    dests[p, e.seq] = None if e.dests is None else frozenset(e.dests)
    first: dict[tuple[int, Message], int] = {}
    orders: list[list[Message]] = [[] for _ in members]
    for p in members:
        for i, e in enumerate(logs[p]):
            m = (e.origin, e.seq)
            if e.kind == "deliver":
                to = dests.get(m, frozenset()) if m in sends else frozenset()
                if (to is not None and p not in to) or (p, m) in first:
                    breaches += 1
                if (p, m) not in first:
                    first[p, m] = i
                    orders[p].append(m)

    def addressed(m: Message, p: int) -> bool:
        """Where destinations are not recorded, those that deliver it are known to be some."""
        to = dests[m]
        return (p, m) in first if to is None else p in to

    def may_deliver(m: Message, p: int) -> bool:
        return m in sends and addressed(m, p)

    correct = [p for p in members if p not in crashed]
    lost = sum(
        (p, m) not in first
        for m in sends
        if m[0] not in crashed or any((q, m) in first and addressed(m, q) for q in correct)
        for p in correct
        if addressed(m, p)
    )
    past = happened_before(logs, sends)
    fifo = causal = 0
    for (p, m), i in first.items():
        if may_deliver(m, p):
            fifo += any(x[0] == m[0] and sends[x] < sends[m] and addressed(x, p) and first.get((p, x), i) >= i for x in sends)
            if past is not None:
                causal += any(addressed(x, p) and first.get((p, x), i) >= i for x in past[m])
    before: defaultdict[Message, set[Message]] = defaultdict(set)
    for p in correct:
        for a, b in combinations(orders[p], 2):
            before[a].add(b)
    index = [{m: i for i, m in enumerate(order)} for order in orders]
    pairs = sum(
        any(
            (index[p][a] < index[p][b]) != (index[q][a] < index[q][b])
            for a, b in combinations(set(orders[p]) & set(orders[q]), 2)
        )
        for p, q in combinations(correct, 2)
    )
    reach = {m: _reachable(before, m) for m in before}
    knots = {frozenset(x for x in reach[m] if m in reach.get(x, ())) for m in reach if m in reach[m]}
    return Expected(breaches, lost, fifo, causal if past is not None else None, pairs, len(knots))


def _reachable(edges: dict[Message, set[Message]], start: Message) -> set[Message]:
    seen: set[Message] = set()
    todo = [start]
    while todo:
        for following in edges.get(todo.pop(), ()):
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return seen


def happened_before(logs: Logs, sends: dict[Message, tuple[int, int]]) -> dict[Message, set[Message]] | None:
    """For each message those sent in the past of its sending; None if some event is in its own past."""
    past: dict[tuple[int, int], set[Message]] = {}
    done = [0] * len(logs)
    known: list[set[Message]] = [set() for _ in logs]
    moved = True
    while moved:
        moved = False
        for p, log in enumerate(logs):
            while done[p] < len(log):
                e = log[done[p]]
                at = sends.get((e.origin, e.seq))
                if e.kind == "deliver" and at is not None:
                    if at not in past:
                        break
                    known[p] |= past[at] | {(e.origin, e.seq)}
                if at == (p, done[p]):
                    past[at] = set(known[p])
                    known[p].add((e.origin, e.seq))
                done[p] += 1
                moved = True
    if any(done[p] < len(log) for p, log in enumerate(logs)):
        return None
    return {m: past[at] for m, at in sends.items()}
