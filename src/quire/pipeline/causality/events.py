"""The names by which people refer to events, and the tasks that look events up.

`2@57` is the event of process 2 at position 57; `0:17` is the send of message 17 of process 0. In an imported trace, `alpha@57`
is the event 57 of host alpha, and `node.log:17` the event at that line of the log.
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
from quire.model.messages import MessageId
from quire.pipeline.columns import flags, kinds, numbers
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.reading import TraceReader
from quire.pipeline.slices import read_events
from quire.trace.kinds import DELIVER, SEND
from quire.trace.schema import EVENT, FILE, IMPLIED, LINE, MESSAGE, TEXT

_NAME = re.compile(r"(\d{1,9})([@:])(\d{1,18})")
_POSITION = re.compile(r"\d{1,18}")


REMARKS = (EVENT, IMPLIED, TEXT, FILE, LINE, MESSAGE)
"""The extra columns of an imported trace, which hold what the log says about an event."""


class Event(msgspec.Struct, frozen=True, order=True):
    """What a process did at a position of its log."""

    process: int
    pos: int

    def __str__(self) -> str:
        return f"{self.process}@{self.pos}"


class Place(msgspec.Struct, frozen=True):
    """A place in a log: a file and a line, or whatever unit the log counts."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Described(msgspec.Struct, frozen=True):
    """An event with what its log says about it."""

    process: int
    pos: int
    kind: str
    message: str | None = None
    text: str | None = None
    lamport: int | None = None
    time_ns: int | None = None
    host: str | None = None
    file: str | None = None
    line: int | None = None


class MatchTask(msgspec.Struct, tag="match"):
    """The first `limit` events of each process whose column matches the expression, in RE2's syntax."""

    world: World
    groups: tuple[RowGroup, ...]
    column: str
    pattern: str
    limit: int


class Matches(msgspec.Struct):
    events: list[Event]


class SendTask(msgspec.Struct, tag="send"):
    """Find the first send of a process's message with this number; the answer is empty if it was never sent."""

    world: World
    groups: tuple[RowGroup, ...]
    origin: int
    seq: int


class Named(msgspec.Struct, frozen=True):
    """An event by the name that the log gives it, or by the name of the message it sends."""

    name: str

    def __str__(self) -> str:
        return self.name


class PlaceTask(msgspec.Struct, tag="place"):
    """Find the events of some processes at this place of the log or, without a place, with this name."""

    world: World
    groups: tuple[RowGroup, ...]
    name: str
    place: Place | None


class DescribeTask(msgspec.Struct, tag="describe"):
    world: World
    groups: tuple[RowGroup, ...]
    events: tuple[Event, ...]


class Descriptions(msgspec.Struct):
    events: list[Described]


def parse_event(text: str, hosts: Sequence[str] = ()) -> Event | MessageId | Place | Named:
    """Parse `2@57` or `0:17`; or, if hosts have names, `alpha@57`, `node.log:17`, or the name of an event in the log."""
    host, _, number = text.rpartition("@")
    if host in hosts and _POSITION.fullmatch(number):
        return Event(hosts.index(host), int(number))
    if match := _NAME.fullmatch(text):
        first, second = int(match[1]), int(match[3])
        return Event(first, second) if match[2] == "@" else MessageId(first, second)
    file, _, line = text.rpartition(":")
    if hosts and file and _POSITION.fullmatch(line):
        return Place(file, int(line))
    if hosts:
        return Named(text)
    raise BadInput(f"{text!r} is not an event: write PROCESS@POSITION, like 2@57, or ORIGIN:NUMBER for a message, like 0:17")


def find_matches(task: MatchTask) -> Matches:
    found: list[Event] = []
    left = dict.fromkeys((group.process for group in task.groups), task.limit)
    with TraceReader(task.world.run) as reader:
        for group in task.groups:
            if not left[group.process]:
                continue
            table = reader.read([group], (task.column,), optional=(EVENT, IMPLIED))
            hits = matches_of(words_of(table, task.column), task.pattern)
            matching = _events_at(group, table, hits)[: left[group.process]]
            left[group.process] -= len(matching)
            found.extend(Event(group.process, number) for number in matching)
    return Matches(found)


def find_place(task: PlaceTask) -> Matches:
    found: list[Event] = []
    with TraceReader(task.world.run) as reader:
        for group, table in reader.read_each(task.groups, ("kind",), optional=(EVENT, IMPLIED, FILE, LINE, MESSAGE)):
            if FILE not in table.column_names:
                continue
            if task.place is None:
                called: Any = pc.equal(table[MESSAGE], pa.scalar(task.name))
                hits = np.asarray(called.fill_null(False)) & (kinds(table["kind"]) != DELIVER)
            else:
                files = table[FILE].cast(pa.string())
                same: Any = pc.or_(pc.equal(files, pa.scalar(task.place.file)), pc.ends_with(files, f"/{task.place.file}"))
                hits = np.asarray(same.fill_null(False)) & (numbers(table, LINE)[0] == task.place.line)
            found.extend(Event(group.process, number) for number in _events_at(group, table, hits))
    return Matches(found)


def _events_at(group: RowGroup, table: pa.Table, hits: np.ndarray) -> list[int]:
    """The numbers of the events in these rows of a group."""
    if EVENT not in table.column_names:
        return [group.first_pos + row for row in np.flatnonzero(hits).tolist()]
    found: list[int] = numbers(table, EVENT)[0][hits & ~flags(table, IMPLIED)].tolist()
    return found


def find_send(task: SendTask) -> Matches:
    events = read_events(task.world, task.groups, dests=False, numbered=True)
    hits = np.flatnonzero((events.kind == SEND) & (events.origin == task.origin) & (events.seq == task.seq))
    return Matches([Event(task.origin, int(events.pos[index])) for index in hits[:1]])


def words_of(table: pa.Table, name: str) -> Any:
    """A column of text."""
    column = table[name]
    if isinstance(column.type, pa.DictionaryType):
        column = column.cast(column.type.value_type)
    if column.type != pa.string():
        raise BadInput(f"column {name!r} holds {column.type}, not text")
    return column


def matches_of(column: Any, pattern: str) -> np.ndarray:
    """Which texts an expression matches, in RE2's syntax."""
    try:
        hits: Any = pc.match_substring_regex(column, pattern=pattern)
    except pa.ArrowInvalid as error:
        raise BadInput(f"{pattern!r} is not a regular expression: {str(error).splitlines()[0]}") from error
    return np.asarray(hits.fill_null(False))


def describe(task: DescribeTask) -> Descriptions:
    found: list[Described] = []
    columns = ("kind", "origin", "seq", "lamport", "time_ns")
    with TraceReader(task.world.run) as reader:
        for group, table in reader.read_each(groups_of(task.groups, task.events), columns, optional=REMARKS):
            rows = [(event, _row_of(group, table, event)) for event in task.events if holds(group, event)]
            found += [_described(event, table.slice(row, 1).to_pylist()[0]) for event, row in rows if row is not None]
    return Descriptions(found)


def _row_of(group: RowGroup, table: pa.Table, event: Event) -> int | None:
    """The row of an event in its row group; None if the group holds only deliveries that the event implies."""
    if EVENT not in table.column_names:
        return event.pos - group.first_pos
    rows = np.flatnonzero((numbers(table, EVENT)[0] == event.pos) & ~flags(table, IMPLIED))
    return int(rows[0]) if len(rows) else None


def _described(event: Event, row: dict[str, Any]) -> Described:
    known = row["origin"] is not None and row["seq"] is not None
    return Described(
        event.process, event.pos, row["kind"],
        row.get(MESSAGE) or (str(MessageId(row["origin"], row["seq"])) if known else None),
        row.get(TEXT), row["lamport"], row["time_ns"], file=row.get(FILE), line=row.get(LINE),
    )  # fmt: skip


def holds(group: RowGroup, event: Event) -> bool:
    return group.process == event.process and group.first_event <= event.pos <= group.last_event


def groups_of(groups: Sequence[RowGroup], events: Sequence[Event]) -> tuple[RowGroup, ...]:
    """The row groups that hold these events."""
    return tuple(group for group in groups if any(holds(group, event) for event in events))
