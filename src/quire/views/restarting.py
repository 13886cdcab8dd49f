"""Recovery: the state that a member had when its process ended, rebuilt from the records of its journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from quire.model.errors import BadInput
from quire.views.packets import Accepted, Data, Entry, Previous
from quire.views.records import (
    Caught,
    Decided,
    Delivered,
    Entered,
    Kept,
    Learned,
    Promised,
    Record,
    Sent,
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
    cluster: str = ""
    founds: bool = False
    """Whether it may vote for the first view."""
    entered: bool = False
    """Whether it was ever in a view other than the founding one."""
    table: dict[str, int] = {}
    previous: Previous | None = None
    promised: Ballot | None = None
    accepted: Accepted | None = None
    runs: list[Data] = []
    undelivered: dict[int, deque[Data]] = {}
    """For each member of this view, its runs from the first one that was not fully delivered."""
    counts: list[int] = []
    """How many messages of each member were delivered in this view."""
    delivered: list[Entry] = []
    """What was delivered in this view."""
    replay: list[Entry] = []
    """What was delivered since the last checkpoint."""
    state: bytes | None = None
    """The last checkpoint of the application's state."""
    base: Position | None = None
    """The position of that state."""
    closing: bool = False
    """Whether it knew that the group is closing when it promised or voted."""
    excluded: bool = False
    """Whether it is no longer a member."""
    ended: Value | None = None
    """How the view ended without it, if it knows that."""
    released: int = 0
    """The last operation of its session that every later view is sure to have."""
    dropped: int = 0
    """How many operations of its session are no longer in the journal."""
    submitted: list[bytes] = []
    """The operations after these."""
    kept: Kept | None = None
    """The record that replaces earlier records of this view, if those were dropped from the journal."""


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
            found.cluster = record.cluster
        case Entered():
            found.view, found.table, found.previous = record.view, dict(record.table), record.previous
            found.entered, found.excluded, found.ended = True, False, None
            found.released = found.table.get(found.session, 0)
            found.promised = found.accepted = None
            found.delivered, found.kept = [], None
            _begin_view(found, (0,) * len(record.view.members), ())
        case Kept():
            _apply(found, record.started)
            found.view, found.table, found.previous = record.view, dict(record.table), record.previous
            found.entered, found.kept = True, record
            _begin_view(found, record.delivered, record.runs)
            found.dropped = found.released = record.released
            found.submitted = list(record.operations)
        case Promised():
            found.promised, found.closing = record.ballot, found.closing or record.closing
        case Voted():
            found.promised, found.accepted = record.ballot, Accepted(record.ballot, record.value)
            found.closing = found.closing or record.value.closing
        case Took():
            _hold(found, record.data)
        case Submitted():
            found.submitted.extend(record.payloads)
        case Sent():
            _hold(found, _with_messages(record.data, found))
        case Delivered():
            _deliver(found, _entry(found, record))
        case Learned():
            _deliver(found, record.entry)
        case Decided():
            found.excluded, found.ended = True, record.value
        case Caught():
            found.state, found.base, found.table = record.state, record.position, dict(record.table)
            found.replay = []


def _begin_view(found: Recovered, delivered: Sequence[int], runs: Iterable[Data]) -> None:
    found.counts, found.runs, found.undelivered = list(delivered), [], {}
    for data in runs:
        _hold(found, data)


def _hold(found: Recovered, data: Data) -> None:
    found.runs.append(data)
    found.undelivered.setdefault(data.run.origin, deque()).append(data)


def _with_messages(data: Data, found: Recovered) -> Data:
    """A run of the process's own, with its messages, which are in the records of their submission."""
    run, first = data.run, data.number - 1 - found.dropped
    messages = found.submitted[first : first + run.count]
    if first < 0 or len(messages) != run.count:
        raise BadInput(f"the records have no operations {data.number} to {data.number + run.count - 1}, which were sent")
    return data.with_messages(b"".join(messages))


def _entry(found: Recovered, record: Delivered) -> Entry:
    """The messages that a `Delivered` record stands for: the next part of one run, after what was delivered before."""
    view, rank, first = found.view, record.rank, found.counts[record.rank]
    held = found.undelivered.get(rank, deque())
    while held and held[0].run.end <= first:
        held.popleft()
    if not held or not held[0].run.first <= first < record.end <= held[0].run.end:
        raise BadInput(f"the records have no run with messages {first} to {record.end} of member {rank}, which were delivered")
    data = held[0]
    run = data.run.part(first - data.run.first, record.end - data.run.first)
    number = data.number + first - data.run.first
    return Entry(view.epoch, len(view.members), view.members[rank].name, rank, run, data.session, number)


def _deliver(found: Recovered, entry: Entry) -> None:
    found.table[entry.session] = entry.number + entry.run.count - 1
    found.replay.append(entry)
    if entry.epoch == found.view.epoch:
        found.delivered.append(entry)
        found.counts[entry.rank] = entry.run.end
