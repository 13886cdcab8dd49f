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


def total(batches: Sequence[Sequence[Row]], sources: Sequence[str], silent: Sequence[set[str]], transactions: bool) -> Outcome:
    """By (clock, source). `silent` are the sources that are not waited for in each micro-batch."""
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
                bad.append(
                    (row, f"it came late: {clock} is not above {mark[source]}, to which source {source} was heard before")
                )
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
        limit = min(limits, default=(max(mark.values(), default=0) + 1, ""))
        going = [pair for pair in waiting if pair[0][:2] < limit]
        waiting = [pair for pair in waiting if pair[0][:2] >= limit]
        going = one_of_each(going, "there is another event of its source with its clock", bad)
        left.append([row for _, row in sorted(going, key=lambda pair: pair[0])])
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
                    (row, f"it came late: {vector[own]} is not above {gone[own]}, to which source {source} was heard before")
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
