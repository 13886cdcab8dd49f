"""Derives the destinations of messages whose sends do not record them.

In groups whose members change, a message is for every process whose membership of the group covers the message's number in
the group's log. A sender outside the group never learns that number, nor does one that ended before its message came back;
but whoever delivered the message knows it. For other messages, only the processes that delivered them are known to be
destinations. That is enough to judge the order of what was delivered, but not what was left undelivered, unless the sender
crashed.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.auditing.group_history import FIRST, GROUP, LAST, PROCESS, GroupHistory, find_history
from quire.pipeline.auditing.total import identify, message_ids
from quire.pipeline.labels import Labelled
from quire.pipeline.slices import Events
from quire.trace.kinds import DELIVER, SEND


def with_destinations(events: Events, rows: Labelled) -> Events:
    """Add the destinations of sends that do not record them, as far as the rows reveal them."""
    ids, size = message_ids(rows)
    history = find_history(rows, ids, size, np.ones(len(rows.start) - 1, np.bool_))
    claims = np.flatnonzero(history.first & (history.number >= 0))[::-1]
    number, group = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    number[ids[claims]], group[ids[claims]] = history.number[claims], history.group[claims]
    sent = ids[rows.kind == SEND]
    missing = np.flatnonzero((events.dest_count < 0) & (number[sent] >= 0))
    send, process = _covering(history, number[sent[missing]], group[sent[missing]])
    return _fill(events, missing, send, process)


def with_deliverers(events: Events, correct: np.ndarray) -> tuple[Events, int]:
    """Where a send does not record its destinations, take the processes that deliver the message instead; also return for how
    many messages this may be incomplete. The events must be those of a whole trace."""
    process = np.repeat(np.arange(len(events.start) - 1), np.diff(events.start))
    sends, delivers = np.flatnonzero(events.kind == SEND), np.flatnonzero(events.kind == DELIVER)
    missing = np.flatnonzero(events.dest_count < 0)
    ids = identify(events.origin, events.seq)[0].astype(np.int64)
    asked = ids[sends[missing]]
    # Only the first send of a message by its own origin counts.
    own = np.flatnonzero(events.origin[sends] == process[sends])
    _, first = np.unique(ids[sends[own]], return_index=True)
    unaddressed = own[first][events.dest_count[own[first]] < 0]
    # If the sender crashed and no correct process delivered the message, nobody had to deliver it, whatever its destinations.
    reached = np.isin(ids[sends[unaddressed]], ids[delivers[correct[process[delivers]]]])
    messages = int((correct[process[sends[unaddressed]]] | reached).sum())
    members = len(events.start) - 1
    pairs = np.unique(ids[delivers] * members + process[delivers])
    first = np.searchsorted(pairs, asked * members)
    count = np.searchsorted(pairs, (asked + 1) * members) - first
    send = np.repeat(np.arange(len(missing)), count)
    within = np.arange(len(send)) - np.repeat(np.cumsum(count) - count, count)
    return _fill(events, missing, send, pairs[first[send] + within] % members), messages


def _fill(events: Events, missing: np.ndarray, send: np.ndarray, process: np.ndarray) -> Events:
    """Add destinations: `process[i]` is a destination of the send `missing[send[i]]`."""
    found = events.dest_count.copy()
    found[missing] = np.bincount(send, minlength=len(missing))
    kept = np.repeat(np.arange(len(found)), np.maximum(events.dest_count, 0))
    order = np.argsort(np.concatenate((kept, missing[send])), kind="stable")
    dests = np.concatenate((events.dests, process.astype(events.dests.dtype)))[order]
    return msgspec.structs.replace(events, dest_count=found, dests=dests)


def _covering(history: GroupHistory, number: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a message, given by its number and group, and a process with a membership that covers the number."""
    messages, processes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for process, of, first, last in history.memberships[:, [PROCESS, GROUP, FIRST, LAST]].tolist():
        inside = np.flatnonzero((group == of) & (first < number) & (number < last))
        messages.append(inside)
        processes.append(np.full(len(inside), process))
    return np.concatenate(messages), np.concatenate(processes)
