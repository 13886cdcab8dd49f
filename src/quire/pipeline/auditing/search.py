"""The tasks that look up what a witness needs: the events of a few messages, and the shortest causal chain between two.

Verdicts come from counting. A counterexample also needs log positions and intermediate messages, which are not kept while
counting; a task fetches them afterwards and returns a handful of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.compiled import compiled
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.merge import merge_by_lamport, rebuild
from quire.pipeline.numbering import number_sends
from quire.pipeline.remarks import Remark, remarks
from quire.pipeline.slices import read_events
from quire.trace.kinds import SEND

_KEPT_PER_KIND = 2
"""How many events of each kind are kept: the first ones are enough, even for a message delivered a million times."""


class FindTask(msgspec.Struct, tag="find"):
    """Find the events of these messages in some row groups."""

    world: World
    groups: tuple[RowGroup, ...]
    messages: tuple[MessageId, ...]


class Found(msgspec.Struct, frozen=True, order=True):
    process: int
    pos: int
    kind: int
    message: MessageId
    lamport: int
    dests: tuple[int, ...] | None = None
    said: Remark | None = None
    """What the original log says about it, if the trace was imported."""


class FoundEvents(msgspec.Struct):
    events: list[Found]


class ChainTask(msgspec.Struct, tag="chain"):
    """Find out how the sender of `last` came to know of `first`; both were sent within these bounds of logical time."""

    world: World
    groups: tuple[RowGroup, ...]
    first: MessageId
    last: MessageId
    low: int | None
    high: int | None


class Link(msgspec.Struct, frozen=True):
    """`member` sent or delivered `message` at `pos`, before it sent `then` at `then_pos`. In an imported trace, the positions
    are event numbers."""

    member: int
    message: MessageId
    delivered: bool
    pos: int
    then: MessageId
    then_pos: int


class Chain(msgspec.Struct):
    links: list[Link]


def find_events(task: FindTask) -> FoundEvents:
    """The first few sends and deliveries of each message, in local order."""
    events = read_events(task.world, task.groups, pos=True)
    dest_start = np.concatenate(([0], np.cumsum(np.maximum(events.dest_count, 0))))
    send_index = np.cumsum(events.kind == SEND) - 1
    candidates = np.flatnonzero(np.isin(events.seq, np.array([seq for _, seq in task.messages], np.int64)))
    wanted = set(task.messages)
    kept: dict[tuple[int, int, MessageId], int] = {}
    found = []
    for index in candidates.tolist():
        message = MessageId(int(events.origin[index]), int(events.seq[index]))
        process = int(np.searchsorted(events.start, index, side="right")) - 1
        key = (process, int(events.kind[index]), message)
        if message not in wanted or kept.get(key, 0) == _KEPT_PER_KIND:
            continue
        kept[key] = kept.get(key, 0) + 1
        dests = None
        if events.kind[index] == SEND and events.dest_count[send_index[index]] >= 0:
            send = send_index[index]
            dests = tuple(events.dests[dest_start[send] : dest_start[send + 1]].tolist())
        found.append(Found(process, int(events.pos[index]), key[1], message, int(events.lamport[index]), dests))
    said = remarks(task.world, task.groups, {(event.process, event.pos) for event in found})
    return FoundEvents([msgspec.structs.replace(event, said=said.get((event.process, event.pos))) for event in found])


def find_chain(task: ChainTask) -> Chain:
    """The chain with the fewest messages from `first` to `last`; empty if there is none."""
    events = read_events(task.world, task.groups, task.low, task.high, dests=False, numbered=True)
    members = task.world.members
    base = np.full(members, -1, np.int64)
    new, *_ = number_sends(events.start, events.kind, events.origin, events.seq, base)
    turn = rebuild(events.start, events.kind, events.origin, events.seq, new)[0] if task.low is None else None
    if turn is None:
        turn = merge_by_lamport(events.start, events.lamport)
    first_row = np.concatenate(([0], np.cumsum(new))).astype(np.int64)
    rows = [int(first_row[origin] + seq - base[origin]) for origin, seq in (task.first, task.last)]
    parent, sent, learned = spread(
        turn, events.start, events.kind, events.origin, events.seq, base, first_row, rows[0], rows[1]
    )
    origins = np.repeat(np.arange(members), new)

    def message(row: int) -> MessageId:
        origin = int(origins[row])
        return MessageId(origin, int(row - first_row[origin] + base[origin]))

    links = []
    row = rows[1]
    while row != rows[0] and parent[row] >= 0:
        via = int(parent[row])
        how = int(learned[row])
        links.append(
            Link(
                member=int(origins[row]), message=message(via), delivered=bool(events.kind[how] != SEND),
                pos=int(events.pos[how]), then=message(row), then_pos=int(events.pos[sent[row]]),
            )
        )  # fmt: skip
        row = via
    return Chain(links[::-1] if row == rows[0] else [])


@compiled
def spread(
    turn: np.ndarray, start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray,
    base: np.ndarray, first_row: np.ndarray, first: int, last: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Follow how knowledge of the message in row `first` spreads, until the message in row `last` is sent.

    For every message whose sender knew of `first`: the message from which the sender knew it, the event of the send, and the
    event at which the sender learned it. The chain with the fewest messages wins, and among those the earliest.
    """
    members = len(start) - 1
    rows = first_row[members]
    parent = np.full(rows, -1, np.int64)
    sent_index = np.full(rows, -1, np.int64)
    learned = np.full(rows, -1, np.int64)
    hops = np.full(rows, -1, np.int64)
    best = np.full(members, -1, np.int64)
    via = np.full(members, -1, np.int64)
    via_index = np.full(members, -1, np.int64)
    sent = np.zeros(members, np.int64)
    cursor = start[:members].copy()
    for step in range(len(turn)):
        process = turn[step]
        index = cursor[process]
        cursor[process] += 1
        source, number = origin[index], seq[index]
        if kind[index] == SEND:
            if source != process or number != base[process] + sent[process]:
                continue
            row = first_row[process] + sent[process]
            sent[process] += 1
            sent_index[row] = index
            if row == first:
                hops[row], best[process], via[process], via_index[process] = 0, 0, row, index
            elif best[process] >= 0:
                hops[row], parent[row], learned[row] = best[process] + 1, via[process], via_index[process]
            if row == last:
                break
        elif 0 <= source < members and 0 <= number - base[source] < sent[source]:
            row = first_row[source] + number - base[source]
            if hops[row] >= 0 and (best[process] < 0 or hops[row] < best[process]):
                best[process], via[process], via_index[process] = hops[row], row, index
    return parent, sent_index, learned


def by_message(found: Sequence[Found]) -> dict[MessageId, list[Found]]:
    """The events of each message, ordered by process and position."""
    events: dict[MessageId, list[Found]] = {}
    for event in sorted(found, key=lambda event: (event.process, event.pos)):
        events.setdefault(event.message, []).append(event)
    return events
