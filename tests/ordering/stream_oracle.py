"""Streaming orders in plain Python, one row after the other: what the operator must equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Row = dict[str, Any]
CLOCK_MAX = (1 << 63) - 1


class Outcome(NamedTuple):
    """What left after each micro-batch, what was rejected and why, and what waits at the end."""

    left: list[list[Row]]
    rejected: list[list[tuple[Row, str]]]
    waiting: list[Row]


def one_of_each(rows: Sequence[tuple[Any, Row]], reason: str, rejected: list[tuple[Row, str]]) -> list[tuple[Any, Row]]:
    """Of rows with the same key, the one with the least content."""
    kept: dict[Any, Row] = {}
    for key, row in sorted(rows, key=lambda pair: repr(pair[1])):
        if key in kept:
            rejected.append((row, reason))
        else:
            kept[key] = row
    return list(kept.items())


def fate(event: int, order: Sequence[tuple[int, Row]], within: int, heard: float) -> str:
    """Whether an event of the order, which is final up to the clock `heard`, leaves, is left out, or must wait."""
    place, written = order[event]
    if written["op"] != "write" or written["object"] is None:
        return "leaves"
    horizon = place + within
    ended = may_change = False
    for at in range(event + 1, len(order)):
        when, row = order[at]
        if row["object"] != written["object"] or row["op"] == "commit":
            continue
        if row["op"] != "write":
            ended = True
            break
        effective: float = when
        if row["by"] is not None and row["by"] != written["by"]:
            commits = [place for place, other in order[at + 1 :] if other["op"] == "commit" and other["by"] == row["by"]]
            effective = min(commits, default=float("inf"))
            may_change = may_change or not commits
        if effective <= horizon:
            return "omitted"
    return "leaves" if horizon < heard or (ended and not may_change) else "waits"


def significant(
    going: list[tuple[tuple[int, str, int], Row]], within: int, heard: float
) -> tuple[list[Row], list[tuple[tuple[int, str, int], Row]]]:  # fmt: skip
    """What leaves of events that are final, in order, and what waits: everything from the place of the first that must."""
    order = [(key[0], row) for key, row in going]
    fates = [fate(event, order, within, heard) for event in range(len(order))]
    stop = min((key[:2] for (key, _), found in zip(going, fates, strict=True) if found == "waits"), default=None)
    staying = [pair for pair in going if stop is not None and pair[0][:2] >= stop]
    left = [
        row for (key, row), found in zip(going, fates, strict=True) if found == "leaves" and (stop is None or key[:2] < stop)
    ]
    return left, staying


def total(
    batches: Sequence[Sequence[Row]], sources: Sequence[str], silent: Sequence[set[str]], transactions: bool,
    within: int | None = None,
) -> Outcome:  # fmt: skip
    """By (clock, source). `silent` are the sources that are not waited for in each micro-batch. With `within`, writes that
    are superseded by so many clocks later are left out."""
    mark: dict[str, int] = {}
    opened: dict[str, tuple[str, int] | None] = dict.fromkeys(sources)
    waiting: list[tuple[tuple[int, str, int], Row]] = []
    left: list[list[Row]] = []
    rejected: list[list[tuple[Row, str]]] = []
    for batch, quiet in zip(batches, silent, strict=True):
        bad: list[tuple[Row, str]] = []
        good: list[Row] = []
        for row in batch:
            source, clock = row["source"], row["clock"]
            if source not in sources:
                bad.append((row, "it has no source" if source is None else f"its source {source} was not named"))
            elif clock is None:
                bad.append((row, "it has no clock"))
            elif not row["beat"] and clock == CLOCK_MAX:
                bad.append((row, f"its clock is not below {CLOCK_MAX}"))
            elif not row["beat"] and source in mark and clock <= mark[source]:
                bad.append((row, f"it is late: {clock} is not above {mark[source]}, which source {source} had already reached"))
            else:
                good.append(row)
        for row in sorted(good, key=lambda row: (row["source"], row["clock"], row["txn"] or "")):
            source, clock, place = row["source"], row["clock"], row["clock"]
            if transactions:
                running, name = opened[source], row["txn"]
                if running is not None and running[0] == name:
                    place = running[1]
                opened[source] = None if name is None else (name, place)
            mark[source] = max(mark.get(source, clock), clock)
            if not row["beat"]:
                waiting.append(((place, source, clock), row))
        limits = []
        for source in sources:
            if source not in quiet:
                running = opened[source]
                limits.append((running[1] if running else mark[source] + 1 if source in mark else float("-inf"), source))
        # Where all are silent, what was heard may go; where nothing ever was, nothing can be late yet.
        limit = min(limits, default=(max(mark.values(), default=float("-inf")) + 1, ""))
        waited = waiting
        going = [pair for pair in waiting if pair[0][:2] < limit]
        waiting = [pair for pair in waiting if pair[0][:2] >= limit]
        twins: list[tuple[Row, str]] = []
        going = one_of_each(going, "there is another event of its source with its clock", twins)
        going.sort(key=lambda pair: pair[0])
        if within is None:
            left.append([row for _, row in going])
        else:
            heard = float("inf") if len(quiet) == len(sources) else limit[0]
            leaving, staying = significant(going, within, float("inf") if heard > CLOCK_MAX else heard)
            left.append(leaving)
            kept = {key for key, _ in staying}
            waiting += [pair for pair in waited if pair[0] in kept]
            stay = [row for _, row in waiting]
            twins = [(row, reason) for row, reason in twins if not any(row is other for other in stay)]
        bad += twins
        rejected.append(bad)
        for source in quiet:
            clock, who = limit
            if clock == float("-inf"):
                continue
            past = int(clock) if source < who else int(clock) - 1
            mark[source] = max(mark.get(source, past), past)
            running = opened[source]
            if running is not None and (running[1], source) < limit:
                opened[source] = None
    return Outcome(left, rejected, [row for _, row in waiting])


def causal(batches: Sequence[Sequence[Row]], sources: Sequence[str]) -> Outcome:
    """By vectors: whatever has everything behind it gone may go; fewer behind go first."""
    gone = [0] * len(sources)
    waiting: list[Row] = []
    left: list[list[Row]] = []
    rejected: list[list[tuple[Row, str]]] = []
    for batch in batches:
        bad: list[tuple[Row, str]] = []
        for row in batch:
            source, vector = row["source"], row["vector"]
            if source not in sources:
                bad.append((row, "it has no source" if source is None else f"its source {source} was not named"))
                continue
            own = sources.index(source)
            if vector is None or len(vector) != len(sources) or min(vector) < 0 or vector[own] <= 0:
                bad.append((row, "its vector does not have one number for each source, its own above 0"))
            elif vector[own] <= gone[own]:
                bad.append(
                    (row, f"it is late: {vector[own]} is not above {gone[own]}, which source {source} had already reached")
                )
            else:
                waiting.append(row)
        keyed = [((row["source"], row["vector"][sources.index(row["source"])]), row) for row in waiting]
        waiting = [row for _, row in one_of_each(keyed, "there is another event of its source with its number", bad)]
        going: list[Row] = []
        progress = True
        while progress:
            progress = False
            for row in waiting:
                own = sources.index(row["source"])
                behind = [value - (index == own) for index, value in enumerate(row["vector"])]
                if all(have >= need for have, need in zip(gone, behind, strict=True)) and gone[own] == behind[own]:
                    gone[own] += 1
                    going.append(row)
                    waiting.remove(row)
                    progress = True
                    break
        left.append(sorted(going, key=lambda row: (sum(row["vector"]), sources.index(row["source"]))))
        rejected.append(bad)
    return Outcome(left, rejected, waiting)


def following(batches: Sequence[Sequence[Row]], *, end: bool) -> Outcome:
    """By what events say that they follow: whatever follows only what has gone may go. Circles have no event in common.

    With `end`, one more step: nothing is waited for any more that is not there.
    """
    gone: set[str] = set()
    waiting: list[Row] = []
    left: list[list[Row]] = []
    rejected: list[list[tuple[Row, str]]] = []
    for batch in [*batches, *([[]] if end else [])]:
        complete = end and len(left) == len(batches)
        bad = [(row, "it has no name") for row in batch if row["id"] is None]
        arrived = [row for row in batch if row["id"] is not None]
        bad += [(row, "an event of its name has left already") for row in arrived if row["id"] in gone]
        keyed = [(row["id"], row) for row in (*waiting, *arrived) if row["id"] not in gone]
        here = dict(one_of_each(keyed, "there is another event of its name", bad))
        for name in sorted(here):
            if name in here and (circle := _circle_of(name, here)):
                steps = [f"{one} follows {other}" for one, other in zip(circle, [*circle[1:], circle[0]], strict=True)]
                reason = f"{', and '.join(steps)}: a circle, so they have no order"
                bad += [(here.pop(member), reason) for member in circle]
        depth: dict[str, int] = {}
        progress = True
        while progress:
            progress = False
            for name, row in here.items():
                behind = {cause for cause in row["after"] or () if cause in here or not (complete or cause in gone)}
                if name not in depth and behind <= depth.keys():
                    depth[name] = max((depth[cause] + 1 for cause in behind), default=0)
                    progress = True
        left.append([here[name] for name in sorted(depth, key=lambda name: (depth[name], name))])
        gone |= depth.keys()
        waiting = [row for name, row in here.items() if name not in depth]
        rejected.append(bad)
    return Outcome(left, rejected, waiting)


def _circle_of(name: str, here: dict[str, Row]) -> list[str]:
    """The circle that the event is on, beginning with it; empty if it is on none."""
    paths = [[name]]
    seen: set[str] = set()
    while paths:
        path = paths.pop()
        for cause in here[path[-1]]["after"] or ():
            if cause == name:
                return path
            if cause in here and cause not in seen:
                seen.add(cause)
                paths.append([*path, cause])
    return []
