"""Events as people name and read them: `2@57` is what process 2 did at position 57, `0:17` the sending of a message."""

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
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.reading import TraceReader
from quire.pipeline.slices import read_events
from quire.trace.schema import SEND

TEXT = "text"
"""The column in which importers keep what the log said."""

_NAME = re.compile(r"(\d{1,9})([@:])(\d{1,18})")


class Event(msgspec.Struct, frozen=True, order=True):
    """What a process did at a position of its log."""

    process: int
    pos: int

    def __str__(self) -> str:
        return f"{self.process}@{self.pos}"


class Described(msgspec.Struct, frozen=True):
    """An event with what its log says of it."""

    process: int
    pos: int
    kind: str
    message: str | None = None
    text: str | None = None
    lamport: int | None = None
    time_ns: int | None = None


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
    """Where a process first sent its message of this number; the answer is empty where it did not."""

    world: World
    groups: tuple[RowGroup, ...]
    origin: int
    seq: int


class DescribeTask(msgspec.Struct, tag="describe"):
    world: World
    groups: tuple[RowGroup, ...]
    events: tuple[Event, ...]


class Descriptions(msgspec.Struct):
    events: list[Described]


def parse_event(text: str) -> Event | MessageId:
    """`2@57` or `0:17`."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise BadInput(
            f"{text!r} is not an event: write PROCESS@POSITION, like 2@57, or ORIGIN:NUMBER for a message, like 0:17"
        )
    first, second = int(match[1]), int(match[3])
    return Event(first, second) if match[2] == "@" else MessageId(first, second)


def find_matches(task: MatchTask) -> Matches:
    found: list[Event] = []
    left = dict.fromkeys((group.process for group in task.groups), task.limit)
    with TraceReader(task.world.run) as reader:
        for group in task.groups:
            if not left[group.process]:
                continue
            column = _words(reader.read([group], (task.column,)), task.column)
            try:
                hits = pc.match_substring_regex(column, pattern=task.pattern)
            except pa.ArrowInvalid as error:
                raise BadInput(f"{task.pattern!r} is not a regular expression: {str(error).splitlines()[0]}") from error
            indices = pc.indices_nonzero(hits.combine_chunks()).to_pylist()[: left[group.process]]
            left[group.process] -= len(indices)
            found.extend(Event(group.process, group.first_pos + index) for index in indices)
    return Matches(found)


def find_send(task: SendTask) -> Matches:
    events = read_events(task.world, task.groups, dests=False, pos=True)
    hits = np.flatnonzero((events.kind == SEND) & (events.origin == task.origin) & (events.seq == task.seq))
    return Matches([Event(task.origin, int(events.pos[index])) for index in hits[:1]])


def _words(table: pa.Table, name: str) -> Any:
    column = table[name]
    if isinstance(column.type, pa.DictionaryType):
        column = column.cast(column.type.value_type)
    if column.type != pa.string():
        raise BadInput(f"column {name!r} holds {column.type}, not text")
    return column


def describe(task: DescribeTask) -> Descriptions:
    found = []
    columns = ("kind", "origin", "seq", "lamport", "time_ns")
    with TraceReader(task.world.run) as reader:
        for group, table in reader.read_each(groups_of(task.groups, task.events), columns, optional=(TEXT,)):
            for event in task.events:
                if not holds(group, event):
                    continue
                row = table.slice(event.pos - group.first_pos, 1).to_pylist()[0]
                known = row["origin"] is not None and row["seq"] is not None
                message = str(MessageId(row["origin"], row["seq"])) if known else None
                found.append(
                    Described(event.process, event.pos, row["kind"], message, row.get(TEXT), row["lamport"], row["time_ns"])
                )
    return Descriptions(found)


def holds(group: RowGroup, event: Event) -> bool:
    return group.process == event.process and group.first_pos <= event.pos < group.first_pos + group.rows


def groups_of(groups: Sequence[RowGroup], events: Sequence[Event]) -> tuple[RowGroup, ...]:
    """The row groups that hold these events."""
    return tuple(group for group in groups if any(holds(group, event) for event in events))
