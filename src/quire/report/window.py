"""A window of a trace: the events that the diagram shows, however long the trace is.

Where to look is a place in logical time. Footers say about how much lies around it, so only the row groups that overlap
the window are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.model.errors import BadInput
from quire.pipeline.auditing.search import FindTask, Found, find_events
from quire.pipeline.auditing.verdicts import Place
from quire.pipeline.layout import Layout, RowGroup, overlapping
from quire.report.columns import kinds, numbers, read_groups
from quire.trace.schema import PACKET, SCHEMA, SEND

EVENTS = 2_000
EVENTS_MAX = 50_000
MEMBERS_MAX = 128
_COLUMNS = tuple(name for name in SCHEMA.names if name not in ("run", "fanout", "header_bytes"))
_WIDER = 4

Message = tuple[int, int]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """`rows` are in logical order, each process's own in local order."""

    rows: pa.Table
    kind: np.ndarray
    whole: bool
    """Whether this is all there is."""
    where: str
    """For people: which part of the trace this is."""
    members: tuple[int, ...]
    """The processes that are drawn."""


class Spot(msgspec.Struct, frozen=True):
    """A place in logical time, and what is there."""

    lamport: int
    what: str


def parse_spot(text: str) -> str | Message | int:
    """`start`, `end`, `witness`, a message like `1:17`, or `@` and a logical time."""
    if text in ("start", "end", "witness"):
        return text
    if found := re.fullmatch(r"(\d{1,9}):(\d{1,18})", text, re.ASCII):
        return int(found[1]), int(found[2])
    if found := re.fullmatch(r"@(\d{1,18})", text, re.ASCII):
        return int(found[1])
    raise BadInput(f"--window knows no place {text!r}; write start, end, witness, a message like 1:17, or @LOGICAL_TIME")


def find_messages(layout: Layout, messages: Sequence[Message]) -> list[Found]:
    """The first sends and deliveries of each of these messages."""
    found: list[Found] = []
    for group in layout.groups:
        found += find_events(FindTask(layout.world, (group,), tuple(messages))).events
    return found


def spot_of(layout: Layout, wanted: str | Message | int, witness: Sequence[Place]) -> Spot:
    """Where to look; raises BadInput if there is no such message."""
    low, high = _bounds(layout)
    match wanted:
        case int():
            return Spot(wanted, f"around logical time {wanted}")
        case (origin, seq):
            sends = [event for event in find_messages(layout, [(origin, seq)]) if event.kind == SEND]
            if not sends:
                raise BadInput(f"the trace has no message {origin}:{seq}")
            return Spot(sends[0].lamport, f"around the sending of {origin}:{seq}")
        case "witness" if witness:
            # The last place of a story is where it went wrong.
            return Spot(_lamport_at(layout, witness[-1]), "around the first violation")
        case "end":
            return Spot(high, "at the end")
    return Spot(low, "at the start")


def read_window(layout: Layout, spot: Spot, events: int = EVENTS, keep: Sequence[int] = ()) -> Window:
    """About so many events around the spot, packets not counted. `keep` are members that must be drawn if any are."""
    if not layout.groups:
        return Window(rows=SCHEMA.empty_table(), kind=np.empty(0, np.int8), whole=True, where="nothing happened", members=())
    rows, whole = _read_by_time(layout, spot.lamport, events) if layout.timed else _read_beginnings(layout, events)
    kind = kinds(rows)
    members = _choose_members(rows, keep)
    if len(members) < layout.world.members:
        chosen = np.isin(numbers(rows, "process")[0], members)
        rows, kind = rows.filter(pa.array(chosen)), kind[chosen]
    where = "the whole trace" if whole else f"{len(rows):,} of {layout.rows:,} events, {spot.what}"
    if not layout.timed and not whole:
        where = f"the first {len(rows):,} of {layout.rows:,} events, because the trace has no usable logical times"
    return Window(rows=rows, kind=kind, whole=whole, where=where, members=tuple(members))


def _bounds(layout: Layout) -> tuple[int, int]:
    known = [group for group in layout.groups if group.low is not None and group.high is not None]
    return min((group.low or 0 for group in known), default=0), max((group.high or 0 for group in known), default=0)


def _lamport_at(layout: Layout, place: Place) -> int:
    for group in layout.groups:
        if group.process == place.member and group.first_pos <= place.pos < group.first_pos + group.rows:
            _, table = next(read_groups([group], ("lamport",)))
            return int(numbers(table, "lamport")[0][place.pos - group.first_pos])
    return _bounds(layout)[0]


def _read_by_time(layout: Layout, centre: int, events: int) -> tuple[pa.Table, bool]:
    lowest, highest = _bounds(layout)
    centre = min(max(centre, lowest), highest)
    wanted = events
    while True:
        low, high = _range_of(layout, centre, wanted)
        rows = _read(overlapping(layout.groups, low, high + 1), low, high)
        counted = int((kinds(rows) != PACKET).sum())
        if counted >= events or (low <= lowest and high >= highest):
            return _trim(rows, centre, events), low <= lowest and high >= highest and counted <= events
        wanted *= _WIDER


def _range_of(layout: Layout, centre: int, events: int) -> tuple[int, int]:
    """Logical times around the centre between which, by the footers, so many events lie; all of them if there are fewer."""
    rows = np.array([group.rows for group in layout.groups], np.float64)
    low = np.array([group.low for group in layout.groups], np.float64)
    span = np.array([group.high for group in layout.groups], np.float64) - low + 1
    bottom, top = _bounds(layout)

    def between(first: int, last: int) -> float:
        return float((rows * (np.clip((last + 1 - low) / span, 0, 1) - np.clip((first - low) / span, 0, 1))).sum())

    width, widest = 1, top - bottom + 1
    while width < widest and between(max(centre - width, bottom), min(centre + width, top)) < events:
        width *= 2
    return max(centre - width, bottom), min(centre + width, top)


def _read(groups: Sequence[RowGroup], low: int | None = None, high: int | None = None) -> pa.Table:
    tables = []
    for _, table in read_groups(groups, _COLUMNS):
        if low is not None and high is not None:
            lamport = numbers(table, "lamport")[0]
            table = table.filter(pa.array((lamport >= low) & (lamport <= high)))
        tables.append(table)
    rows = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    return rows.take(pc.sort_indices(rows, [("lamport", "ascending"), ("process", "ascending"), ("pos", "ascending")]))


def _trim(rows: pa.Table, centre: int, events: int) -> pa.Table:
    """The events nearest to the centre, in number; the packets among them stay, as far as there are not more than events."""
    counted = np.flatnonzero(kinds(rows) != PACKET)
    if len(counted) <= events:
        first, last = 0, len(rows)
    else:
        middle = int(np.searchsorted(numbers(rows, "lamport")[0][counted], centre))
        start = min(max(middle - events // 2, 0), len(counted) - events)
        first, last = int(counted[start]), int(counted[start + events - 1]) + 1
    rows = rows.slice(first, last - first)
    packets = np.flatnonzero(kinds(rows) == PACKET)
    if len(packets) > events:
        rows = rows.take(np.flatnonzero(kinds(rows) != PACKET))
    return rows


def _read_beginnings(layout: Layout, events: int) -> tuple[pa.Table, bool]:
    """Of a trace without logical times, the same share of the beginning of every log."""
    share = min(1.0, events / max(layout.rows, 1))
    wanted: dict[int, int] = {}
    for group in layout.groups:
        wanted[group.process] = wanted.get(group.process, 0) + group.rows
    tables = []
    for group in layout.groups:
        until = int(np.ceil(wanted[group.process] * share)) - group.first_pos
        if until > 0:
            _, table = next(read_groups([group], _COLUMNS))
            tables.append(table.slice(0, until))
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks(), share == 1.0


def _choose_members(rows: pa.Table, keep: Sequence[int]) -> list[int]:
    """All members with events, or, of too many, those to keep and then the busiest."""
    process, events = np.unique(numbers(rows, "process")[0], return_counts=True)
    if len(process) <= MEMBERS_MAX:
        return [int(each) for each in process]
    busiest = process[np.argsort(-events, kind="stable")].tolist()
    chosen = dict.fromkeys([*(member for member in keep if member in process), *busiest])
    return sorted(list(chosen)[:MEMBERS_MAX])


def to_data(window: Window, layout: Layout) -> dict[str, Any]:
    """The window as plain lists for the page: one value an event, words by their number in a list of words."""
    from quire.report.order import Event, steps

    rows = window.rows
    process, origin, seq = (numbers(rows, name)[0].tolist() for name in ("process", "origin", "seq"))
    lamport, timed = numbers(rows, "lamport")
    time, has_time = numbers(rows, "time_ns")
    kind = window.kind.tolist()
    at = (lamport if timed.all() else time).tolist()
    order = steps([Event(*event) for event in zip(process, kind, origin, seq, at, strict=True)])
    clocked = bool(len(rows)) and bool(has_time.all())
    start = int(time.min()) if clocked else 0
    columns = {"group", "packet", "object", "op", "txn"}
    return {
        "members": list(window.members),
        "process": process,
        "kind": kind,
        "origin": origin,
        "seq": seq,
        "pos": numbers(rows, "pos")[0].tolist(),
        "lamport": lamport.tolist() if timed.all() else None,
        "time": (time - start).tolist() if clocked else None,
        "start": start,
        "step": order,
        "bytes": numbers(rows, "payload_bytes")[0].tolist(),
        "dests": [None if dests is None else len(dests) for dests in rows["dests"].to_pylist()],
        "words": {name: _words(rows, name) for name in sorted(columns)},
        "whole": window.whole,
        "all": layout.rows,
    }


def _words(rows: pa.Table, name: str) -> dict[str, Any] | None:
    """The words of a column, and for each event the number of its word, -1 for none; None where there are none at all."""
    column: Any = rows[name].combine_chunks()
    if column.null_count == len(column):
        return None
    words = column.dictionary.to_pylist()
    return {"words": words, "of": column.indices.fill_null(-1).to_pylist()}
