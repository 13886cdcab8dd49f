"""Small traces of transactions, with and without faults, and what one-copy serialisable means for them."""

from __future__ import annotations

import random
from itertools import count, pairwise
from typing import NamedTuple

from tests.audit.oracle import Event, Logs, Message
from tests.audit.traces import Trace, timed


class Counts(NamedTuple):
    cycles: int
    wrong: int
    unsaid: int


class _Txn(NamedTuple):
    name: str
    process: int
    todo: list[tuple[str, str]]


def random_transactions(rng: random.Random, *, stamped: bool) -> Trace:
    """Clients run transactions side by side on versions that are chosen well or badly."""
    replicas, clients = rng.randint(1, 3), rng.randint(1, 3)
    keys = [f"k{number}" for number in range(rng.randint(1, 3))]
    bad = rng.choice((0.0, 0.0, 0.1, 0.4))
    logs: Logs = [[] for _ in range(replicas + clients)]
    fresh = [count() for _ in logs]
    versions: dict[str, list[tuple[str, Message]]] = {key: [] for key in keys}
    """Of every key, all writes that were sent."""
    done: dict[str, list[tuple[str, Message]]] = {key: [] for key in keys}
    """Of every key, those of transactions that were decided to commit, in the order of their versions."""
    open_: list[tuple[_Txn, list[tuple[str, Message]]]] = []
    dests = tuple(range(replicas))
    serial = rng.random() < 0.4
    left, number = rng.randint(1, 7), 0
    while left or open_:
        if left and (not open_ or (not serial and rng.random() < 0.4)):
            left, number = left - 1, number + 1
            process = replicas + rng.randrange(clients)
            todo = [(rng.choice("rw"), rng.choice(keys)) for _ in range(rng.randint(1, 4))]
            open_.append((_Txn(f"{number}.{process}" if stamped else f"t{number}", process, todo), []))
            continue
        txn, wrote = rng.choice(open_)
        p, log = txn.process, logs[txn.process]
        message = (p, next(fresh[p]))
        if not txn.todo:
            open_.remove((txn, wrote))
            fate = rng.choice(("commit", "commit", "commit", "abort", "none", "both" if rng.random() < bad else "commit"))
            if fate == "none":
                next_number = next(fresh[p])
                assert next_number == message[1] + 1
                log.append(Event("send", *message, (), None, None, "note", None))
                log.append(Event("send", p, next_number, (), None, None, "note", None))
                continue
            op = "commit" if fate == "both" else fate
            log.append(Event("send", *message, dests, None, None, op, txn.name))
            for replica in dests:
                own = "abort" if fate == "both" and replica == 0 else op
                logs[replica].append(Event("deliver", *message, None, None, None, own, txn.name))
                if op == "commit" and not stamped:
                    for key, write in wrote if rng.random() >= bad else rng.sample(wrote, len(wrote)):
                        logs[replica].append(Event("deliver", *write, None, None, key, "w", txn.name))
            if op == "commit":
                for key, write in wrote:
                    done[key] = [each for each in done[key] if each[0] != txn.name]
                    done[key].append((txn.name, write))
            continue
        op, key = txn.todo.pop(0)
        log.append(Event("send", *message, dests[:1], None, key, op, txn.name))
        if op == "w":
            wrote.append((key, message))
            versions[key].append((txn.name, message))
            if stamped:
                logs[0].append(Event("deliver", *message, None, None, key, "w", txn.name))
            continue
        mine = [write for written, write in wrote if written == key]
        seen: Message = mine[-1] if mine else done[key][-1][1] if done[key] else message
        if rng.random() < bad:
            choices = [write for _, write in versions[key]] + [message, (p, 999)]
            seen = rng.choice(choices)
        if rng.random() >= bad / 8:
            log.append(Event("view", *seen, None, None, key, "r", txn.name))
    return timed(logs)


def judge(trace: Trace) -> Counts:
    """By the definition, with the names of transactions or the deliveries of their writes giving the order of versions."""
    events = [(p, e) for p, log in enumerate(trace.logs) for e in log]
    committed = {e.txn for _, e in events if e.op == "commit"}
    aborted = {e.txn for _, e in events if e.op == "abort"}
    writes = {(e.origin, e.seq): (e.txn, e.object) for _, e in events if e.kind != "view" and e.op == "w"}
    asked = {(e.origin, e.seq) for _, e in events if e.kind == "send" and e.op == "r"}
    final: dict[tuple[str | None, str | None], Message] = {}
    for message in sorted(writes, key=lambda m: m[1]):
        final[writes[message]] = message
    names = {e.txn for _, e in events if e.txn}
    sequences: list[tuple[str, list[str]]] = []
    if all(len(name.split(".")) == 2 for name in names):
        for key in sorted({key for _, key in writes.values() if key}):
            own = {txn for txn, k in writes.values() if k == key and txn in committed}
            sequences.append((key, sorted((t for t in own if t), key=lambda t: tuple(map(int, t.split("."))))))
    else:
        for log in trace.logs:
            for key in sorted({e.object for e in log if e.op == "w" and e.object}):
                order = [e.txn for e in log if e.kind == "deliver" and e.op == "w" and e.object == key and e.txn in committed]
                last = {txn: i for i, txn in enumerate(order)}
                sequences.append((key, [t for t in sorted(last, key=last.__getitem__) if t]))
    edges: set[tuple[str, str]] = set()
    for _, sequence in sequences:
        edges |= set(pairwise(sequence))
    wrong = len(committed & aborted)
    for _, e in events:
        if e.kind != "view" or e.op != "r" or e.txn not in committed or e.txn is None:
            continue
        seen = (e.origin, e.seq)
        writer: str | None = None
        if seen in writes and writes[seen][1] == e.object:
            writer = writes[seen][0]
            if writer != e.txn:
                wrong += writer not in committed or final[writer, e.object] != seen
            if writer in committed and writer:
                edges.add((writer, e.txn))
        elif seen not in asked:
            wrong += 1
            continue
        for key, sequence in sequences:
            if key == e.object and sequence and (writer is None or writer in sequence):
                at = 0 if writer is None else sequence.index(writer) + 1
                if at < len(sequence):
                    edges.add((e.txn, sequence[at]))
    edges = {(a, b) for a, b in edges if a != b}
    reach = {name: {name} for name in names}
    for _ in names:
        for a, b in edges:
            reach[a] |= reach[b]
    knots = {frozenset(b for b in reach[a] if a in reach[b]) for a in names}
    unsaid = 0
    for name in committed:
        reads = sum(e.kind == "send" and e.op == "r" and e.txn == name for _, e in events)
        unsaid += max(0, reads - sum(e.kind == "view" and e.op == "r" and e.txn == name for _, e in events))
    return Counts(sum(len(knot) > 1 for knot in knots), wrong, unsaid)
