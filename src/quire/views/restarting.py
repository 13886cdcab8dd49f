"""Where a member was when its process ended, from the records of its journal."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from quire.views.packets import Accepted, Data, Entry, Previous
from quire.views.records import (
    Caught,
    Decided,
    Delivered,
    Entered,
    Kept,
    Promised,
    Record,
    Started,
    Submitted,
    Took,
    Voted,
)
from quire.views.view import Ballot, Position, Value, View


class Recovered(msgspec.Struct):
    """Everything that the member had made durable."""

    view: View
    """The last view that it was in; the founding view, if it was in none."""
    records: int = 0
    session: str = ""
    name: str = ""
    incarnation: int = 0
    weight: int = 1
    founds: bool = False
    """Whether it may vote for the first view."""
    entered: bool = False
    """Whether it was ever in a view that was agreed upon."""
    table: dict[str, int] = {}
    previous: Previous | None = None
    promised: Ballot | None = None
    accepted: Accepted | None = None
    runs: list[Data] = []
    delivered: list[Entry] = []
    """What was delivered in this view."""
    replay: list[Entry] = []
    """What was delivered since the state."""
    state: bytes | None = None
    """The last state that the application was given as a whole."""
    base: Position | None = None
    """The position of that state."""
    closing: bool = False
    """Whether it knew that the group is closing, when it promised or voted."""
    ended: Value | None = None
    """How the view ended, if the member is not in the next one."""
    released: int = 0
    """The last operation of its session that is in every later view."""
    dropped: int = 0
    """How many operations of its session need not be known any more."""
    submitted: list[bytes] = []
    """The operations after these."""
    kept: Kept | None = None
    """What of this view was dropped from the journal, and what of it was kept."""


def recover(founding: View, records: Iterable[Record]) -> Recovered:
    found = Recovered(founding)
    for record in records:
        found.records += 1
        _apply(found, record)
    return found


def _apply(found: Recovered, record: Record) -> None:
    match record:
        case Started():
            found.incarnation, found.session = record.incarnation, record.session
            found.name, found.weight, found.founds = record.name, record.weight, record.founds
        case Entered():
            found.view, found.table, found.previous = record.view, dict(record.table), record.previous
            found.entered, found.ended = True, None
            found.released = found.table.get(found.session, 0)
            found.promised = found.accepted = None
            found.runs, found.delivered, found.kept = [], [], None
        case Kept():
            _apply(found, record.started)
            found.view, found.table, found.previous = record.view, dict(record.table), record.previous
            found.entered, found.kept = True, record
            found.runs = list(record.runs)
            found.dropped = found.released = record.released
            found.submitted = list(record.operations)
        case Promised():
            found.promised, found.closing = record.ballot, found.closing or record.closing
        case Voted():
            found.promised, found.accepted = record.ballot, Accepted(record.ballot, record.value)
            found.closing = found.closing or record.value.closing
        case Took():
            found.runs.append(record.data)
        case Submitted():
            found.submitted.extend(record.payloads)
        case Delivered():
            entry = record.entry
            found.table[entry.session] = entry.number + entry.run.count - 1
            found.replay.append(entry)
            if entry.epoch == found.view.epoch:
                found.delivered.append(entry)
        case Decided():
            found.ended = record.value
        case Caught():
            found.state, found.base, found.table = record.state, record.position, dict(record.table)
            found.replay = []
