"""Selects the window of a trace that the diagram shows, however long the trace is.

The window's centre is a logical time, and its size is counted in marks, so that consecutive messages count as one. The Parquet
footers tell roughly how much lies around the centre, so only the row groups that overlap the window are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from quire.model.errors import BadInput
from quire.model.messages import MessageId
from quire.pipeline.auditing.search import FindTask, Found, find_events
from quire.pipeline.auditing.verdicts import LoggedEvent
from quire.pipeline.columns import kinds, numbers
from quire.pipeline.layout import Layout, overlapping
from quire.pipeline.reading import TraceReader
from quire.report.marks import Marks, to_marks
from quire.trace.kinds import PACKET, SEND
from quire.trace.schema import SCHEMA, TEXT

EVENTS = 2_000
EVENTS_MAX = 50_000
MEMBERS_MAX = 128
ROWS_MAX = 2_000_000
"""A window ends once about this many rows were read, even if they give few marks; that bounds memory and time."""
_COLUMNS = tuple(name for name in SCHEMA.names if name not in ("run", "fanout", "header_bytes"))
_WIDER = 4


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Marks and packets, by process in local order; no packets if there are too many to draw."""

    marks: Marks
    packets: pa.Table
    description: str
    """Which part of the trace this is, for display."""
    members: tuple[int, ...]
    """The processes that are drawn."""


class Centre(msgspec.Struct, frozen=True):
    """A logical time, and a description of what is there."""

    lamport: int
    description: str


def parse_centre(text: str) -> str | MessageId | int:
    """`start`, `end`, `witness`, a message like `1:17`, or `@` and a logical time."""
    if text in ("start", "end", "witness"):
        return text
    if found := re.fullmatch(r"(\d{1,9}):(\d{1,18})", text, re.ASCII):
        return MessageId(int(found[1]), int(found[2]))
    if found := re.fullmatch(r"@(\d{1,18})", text, re.ASCII):
        return int(found[1])
    raise BadInput(f"--window cannot be {text!r}; write start, end, witness, a message like 1:17, or @LOGICAL_TIME")


def find_messages(layout: Layout, messages: Sequence[MessageId]) -> list[Found]:
    """The first sends and deliveries of each of these messages."""
    found: list[Found] = []
    for group in layout.groups if messages else ():
        found += find_events(FindTask(layout.world, (group,), tuple(messages))).events
    return found


def find_centre(layout: Layout, wanted: str | MessageId | int, witness: Sequence[LoggedEvent]) -> Centre:
    """The centre of the window; raises BadInput if there is no such message."""
    low, high = _bounds(layout)
    match wanted:
        case int():
            return Centre(wanted, f"around logical time {wanted}")
        case (origin, seq):
            sends = [event for event in find_messages(layout, [MessageId(origin, seq)]) if event.kind == SEND]
            if not sends:
                raise BadInput(f"the trace has no message {origin}:{seq}")
            return Centre(sends[0].lamport, f"around the sending of {origin}:{seq}")
        case "witness" if witness:
            # The last event of a witness is the one that went wrong.
            return Centre(_lamport_at(layout, witness[-1]), "around the first violation")
        case "end":
            return Centre(high, "at the end")
    return Centre(low, "at the start")


def read_window(
    layout: Layout, centre: Centre, events: int = EVENTS, *, keep: Sequence[int] = (), alone: Collection[tuple[int, int]] = ()
) -> Window:
    """About so many marks around the centre.

    `keep` are members that must be drawn if not all can be; `alone` are events, by process and position, that are drawn
    one by one even where they stand in a row with others.
    """
    if not layout.groups:
        nothing = SCHEMA.empty_table()
        return Window(marks=to_marks(nothing, {}), packets=nothing, description="an empty trace", members=())
    ordered = layout.timed
    if ordered:
        marks, packets, whole = _widen(layout, _by_time(layout, centre.lamport), events, alone)
        ordered = bool(numbers(marks.rows, "lamport")[1].all())
    if ordered:
        marks = _nearest(marks, centre.lamport, events)
    else:
        marks, packets, whole = _widen(layout, _beginnings(layout), events, alone)
        marks = _first_of_each(marks, events)
    members = _choose_members(marks, layout.world.members, keep)
    marks = marks.take(np.flatnonzero(np.isin(numbers(marks.rows, "process")[0], members)))
    packets = packets if whole else _among(packets, marks)
    if len(packets) > events:
        packets = packets.slice(0, 0)
    shown = int(marks.count.sum()) + len(packets)
    if whole:
        description = "the whole trace"
    elif ordered:
        description = f"{shown:,} of {layout.rows:,} events, {centre.description}"
    else:
        description = f"the first {shown:,} of {layout.rows:,} events, because the trace has no usable logical times"
    return Window(marks=marks, packets=packets, description=description, members=members)


def _bounds(layout: Layout) -> tuple[int, int]:
    known = [group for group in layout.groups if group.low is not None and group.high is not None]
    return min((group.low or 0 for group in known), default=0), max((group.high or 0 for group in known), default=0)


def _lamport_at(layout: Layout, event: LoggedEvent) -> int:
    for group in layout.groups:
        if group.process == event.member and group.first_pos <= event.pos < group.first_pos + group.rows:
            with TraceReader(layout.world.run) as reader:
                table = reader.read([group], ("lamport",))
            return int(numbers(table, "lamport")[0][event.pos - group.first_pos])
    return _bounds(layout)[0]


Reader = Callable[[int], tuple[pa.Table, bool]]
"""Reads about this many rows, by process, and returns whether these are all."""


def _widen(layout: Layout, read: Reader, events: int, alone: Collection[tuple[int, int]]) -> tuple[Marks, pa.Table, bool]:
    """Read until there are at least this many marks, if possible; returns them with their packets, and whether they are all."""
    lengths: dict[int, int] = {}
    for group in layout.groups:
        lengths[group.process] = lengths.get(group.process, 0) + group.rows
    wanted = events
    while True:
        rows, whole = read(wanted)
        marks = to_marks(rows, lengths, alone)
        if whole or len(marks) >= events or wanted >= ROWS_MAX:
            return marks, rows.filter(pa.array(kinds(rows["kind"]) == PACKET)), whole and len(marks) <= events
        wanted = min(wanted * _WIDER, ROWS_MAX)


def _by_time(layout: Layout, centre: int) -> Reader:
    lowest, highest = _bounds(layout)
    middle = min(max(centre, lowest), highest)

    def read(wanted: int) -> tuple[pa.Table, bool]:
        low, high = _range_of(layout, middle, wanted)
        tables = []
        with TraceReader(layout.world.run) as reader:
            for _, table in reader.read_each(overlapping(layout.groups, low, high + 1), _COLUMNS, optional=(TEXT,)):
                lamport, known = numbers(table, "lamport")
                tables.append(table.filter(pa.array(~known | ((lamport >= low) & (lamport <= high)))))
        return _together(tables), low <= lowest and high >= highest

    return read


def _beginnings(layout: Layout) -> Reader:
    """For a trace without logical times: reads the same share of the beginning of every log."""

    def read(wanted: int) -> tuple[pa.Table, bool]:
        share = min(1.0, wanted / layout.rows)
        whole: dict[int, int] = {}
        for group in layout.groups:
            whole[group.process] = whole.get(group.process, 0) + group.rows
        tables = []
        with TraceReader(layout.world.run) as reader:
            for group in layout.groups:
                until = int(np.ceil(whole[group.process] * share)) - group.first_pos
                if until > 0:
                    tables.append(reader.read([group], _COLUMNS, optional=(TEXT,)).slice(0, until))
        return _together(tables), share == 1.0

    return read


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _range_of(layout: Layout, centre: int, events: int) -> tuple[int, int]:
    """The range of logical times around the centre that, by the footers, holds this many events; everything if there are
    fewer."""
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


def _nearest(marks: Marks, centre: int, events: int) -> Marks:
    """The marks nearest to the centre, in number of marks between."""
    lamport = numbers(marks.rows, "lamport")[0]
    order = np.argsort(lamport, kind="stable")
    middle = int(np.searchsorted(lamport[order], centre))
    start = min(max(middle - events // 2, 0), max(len(marks) - events, 0))
    return marks.take(np.sort(order[start : start + events]))


def _first_of_each(marks: Marks, events: int) -> Marks:
    """The same share of the first marks of every process."""
    process = numbers(marks.rows, "process")[0]
    share = min(1.0, events / max(len(marks), 1))
    kept = [np.flatnonzero(process == each)[: int(np.ceil((process == each).sum() * share))] for each in np.unique(process)]
    return marks.take(np.concatenate([np.empty(0, np.int64), *kept]))


def _among(packets: pa.Table, marks: Marks) -> pa.Table:
    """The packets that members sent between their first mark and their last."""
    process, pos = (numbers(marks.rows, name)[0] for name in ("process", "pos"))
    of, at = (numbers(packets, name)[0] for name in ("process", "pos"))
    among = np.zeros(len(packets), np.bool_)
    for member in np.unique(process).tolist():
        own = process == member
        among |= (of == member) & (at >= pos[own].min()) & (at <= marks.last_pos[own].max())
    return packets.filter(pa.array(among))


def _choose_members(marks: Marks, members: int, keep: Sequence[int]) -> tuple[int, ...]:
    """All members, or, of too many, those to keep and then the busiest."""
    if members <= MEMBERS_MAX:
        return tuple(range(members))
    process, count = np.unique(numbers(marks.rows, "process")[0], return_counts=True)
    busiest = process[np.argsort(-count, kind="stable")].tolist()
    chosen = dict.fromkeys([*(member for member in keep if member in process), *busiest])
    return tuple(sorted(list(chosen)[:MEMBERS_MAX]))
