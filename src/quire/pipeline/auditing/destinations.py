"""Whom messages were for, where their senders could not say: those in whose membership of the group their numbers fall.

A sender that is no member of a group never learns what number its message got, and one that ended before its message
came back did not either. Whoever delivered it knows.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.auditing.group_history import FIRST, GROUP, LAST, PROCESS, GroupHistory, find_history
from quire.pipeline.auditing.total import message_ids
from quire.pipeline.labels import Labelled
from quire.pipeline.slices import Events
from quire.trace.schema import SEND


def with_destinations(events: Events, rows: Labelled) -> Events:
    """The events with the destinations of those sends that do not record them, as far as the rows tell."""
    ids, size = message_ids(rows)
    history = find_history(rows, ids, size, np.ones(len(rows.start) - 1, np.bool_))
    claims = np.flatnonzero(history.first & (history.number >= 0))[::-1]
    number, group = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    number[ids[claims]], group[ids[claims]] = history.number[claims], history.group[claims]
    sent = ids[rows.kind == SEND]
    missing = np.flatnonzero((events.dest_count < 0) & (number[sent] >= 0))
    send, process = _covering(history, number[sent[missing]], group[sent[missing]])
    found = events.dest_count.copy()
    found[missing] = np.bincount(send, minlength=len(missing))
    kept = np.repeat(np.arange(len(found)), np.maximum(events.dest_count, 0))
    order = np.argsort(np.concatenate((kept, missing[send])), kind="stable")
    dests = np.concatenate((events.dests, process.astype(events.dests.dtype)))[order]
    return msgspec.structs.replace(events, dest_count=found, dests=dests)


def _covering(history: GroupHistory, number: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a message, given by its number in its group, and a process that has a membership around it."""
    messages, processes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for process, of, first, last in history.memberships[:, [PROCESS, GROUP, FIRST, LAST]].tolist():
        inside = np.flatnonzero((group == of) & (first < number) & (number < last))
        messages.append(inside)
        processes.append(np.full(len(inside), process))
    return np.concatenate(messages), np.concatenate(processes)
