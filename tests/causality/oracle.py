"""Happened-before by brute force: sets of events, passed along until nothing moves."""

from __future__ import annotations

from tests.audit.oracle import Logs, Message

EventKey = tuple[int, int]
"""(process, position)"""


def sendings(logs: Logs) -> dict[Message, EventKey]:
    """Where each message was first sent by its origin."""
    found: dict[Message, EventKey] = {}
    for p, log in enumerate(logs):
        for i, e in enumerate(log):
            if e.kind == "send" and e.origin == p:
                found.setdefault((p, e.seq), (p, i))
    return found


def causes(logs: Logs) -> dict[EventKey, list[EventKey]]:
    """The immediate causes of every event: what its process did before, and the sending of what it delivers."""
    sent = sendings(logs)
    found: dict[EventKey, list[EventKey]] = {}
    for p, log in enumerate(logs):
        for i, e in enumerate(log):
            found[p, i] = [(p, i - 1)] if i else []
            if e.kind == "deliver" and (e.origin, e.seq) in sent:
                found[p, i].append(sent[e.origin, e.seq])
    return found


def pasts(logs: Logs) -> dict[EventKey, set[EventKey]] | None:
    """What happened before each event; None if some event happened before itself."""
    direct = causes(logs)
    past: dict[EventKey, set[EventKey]] = {}
    moved = True
    while moved:
        moved = False
        for event, its in direct.items():
            if event not in past and all(cause in past for cause in its):
                past[event] = set(its).union(*(past[cause] for cause in its))
                moved = True
    return past if len(past) == len(direct) else None


def clocks(logs: Logs, past: dict[EventKey, set[EventKey]]) -> dict[EventKey, tuple[int, ...]]:
    """Vector times, counted."""
    return {event: tuple(sum(p == q for p, _ in [*before, event]) for q in range(len(logs))) for event, before in past.items()}


def depths(logs: Logs, past: dict[EventKey, set[EventKey]]) -> dict[EventKey, int]:
    """The number of events on the longest chain that ends with each event."""
    direct = causes(logs)
    found: dict[EventKey, int] = {}
    for event in sorted(past, key=lambda event: len(past[event])):
        found[event] = 1 + max((found[cause] for cause in direct[event]), default=0)
    return found
