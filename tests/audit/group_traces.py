"""Small traces of overlapping groups whose members come and go, with planted faults."""

from __future__ import annotations

import random
from itertools import count

from tests.audit.oracle import Event, Logs
from tests.audit.traces import Trace, timed

FAULTS = ("swap", "loss", "repeat", "stray", "wrong number", "early end", "unsaid group", "crash", "static", "again")


def random_groups(rng: random.Random, *, blanks: bool = False) -> Trace:
    """A history of joins, leaves and messages, and perhaps of numbers that were left blank, numbered in each group, as each
    member delivers its slices of it."""
    members = rng.randint(2, 5)
    names = [f"g{number}" for number in range(rng.randint(1, 3))]
    faults = {fault for fault in FAULTS if rng.random() < rng.choice((0.0, 0.1, 0.3))}
    inside: dict[str, set[int]] = {name: set() for name in names}
    numbers = {name: rng.choice((0, 0, 5)) for name in names}
    slices: list[list[Event]] = [[] for _ in range(members)]
    sends: Logs = [[] for _ in range(members)]
    fresh = [count() for _ in range(members)]
    hybrid = rng.random() < 0.5

    def tell(name: str, event: Event, to: set[int]) -> None:
        for p in sorted(to):
            slices[p].append(event)

    for name in names:
        if rng.random() < 0.6:
            inside[name] = set(rng.sample(range(members), rng.randint(2, members)))
            for p in inside[name]:
                tell(name, Event("view", p, numbers[name], tuple(inside[name]), name, op="found"), {p})
    for _ in range(rng.randint(2, 24)):
        name, p = rng.choice(names), rng.randrange(members)
        if name == names[-1] and "static" in faults:
            inside[name] = inside[name] or set(range(members))
            what = "send"
        else:
            what = rng.choice(("send", "send", "change") + ("blank",) * blanks)
        numbers[name] += 1
        if what == "send":
            group = None if "unsaid group" in faults and rng.random() < 0.2 else name
            message = next(fresh[p])
            sends[p].append(Event("send", p, message, tuple(sorted(inside[name])), group))
            said = rng.choice((name, group, None)) if group else name
            tell(name, Event("deliver", p, message, None, said), inside[name])
        elif what == "blank":
            tell(name, Event("view", 0, numbers[name], tuple(inside[name]), name, op="blank"), inside[name])
        elif p in inside[name]:
            tell(name, Event("view", p, numbers[name], tuple(inside[name] - {p}), name, op="leave"), inside[name])
            inside[name].remove(p)
        else:
            inside[name].add(p)
            tell(name, Event("view", p, numbers[name], tuple(inside[name]), name, op="join"), inside[name])
    logs = [sends[p] + _spoilt(rng, p, slices[p], faults, hybrid, names, members) for p in range(members)]
    crashed = frozenset({rng.randrange(members)}) if "crash" in faults else frozenset[int]()
    return timed(logs, crashed)


def _spoilt(
    rng: random.Random, p: int, log: list[Event], faults: set[str], hybrid: bool, names: list[str], members: int
) -> list[Event]:  # fmt: skip
    """What one member records, which may be no true account."""
    log = list(log)
    if hybrid:
        # Each group by itself in order, all of them in any.
        queues = {name: [e for e in log if e.group == name] for name in {e.group for e in log}}
        log = []
        while any(queues.values()):
            log.append(queues[rng.choice(sorted((name for name, own in queues.items() if own), key=str))].pop(0))
    rate = rng.choice((0.05, 0.2))

    def strikes(fault: str) -> bool:
        return fault in faults and rng.random() < rate

    for i in range(len(log) - 1, -1, -1):
        if strikes("swap") and i:
            log[i - 1], log[i] = log[i], log[i - 1]
        if strikes("loss"):
            del log[i]
        elif strikes("repeat"):
            log.insert(rng.randint(i, len(log)), log[i])
        elif log[i].kind == "view" and strikes("wrong number"):
            log[i] = log[i]._replace(seq=log[i].seq + rng.choice((-2, -1, 1, 10**7)))
    if strikes("stray"):
        log.insert(
            rng.randint(0, len(log)),
            Event("view", rng.randrange(members), rng.randint(0, 9), (), rng.choice(names), op="leave"),
        )
    if strikes("again"):
        log.insert(rng.randint(0, len(log)), Event("view", p, rng.randint(0, 9), (), rng.choice(names), op="join"))
    if strikes("early end"):
        del log[rng.randint(0, len(log)) :]
    return log
