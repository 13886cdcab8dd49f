"""Judges agreement at the end of a segment: which messages were lost, and which may still be delivered after it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quire.pipeline.auditing.kernel import DELIVERED, OWED, Messages
from quire.pipeline.compiled import compiled


class Bound(NamedTuple):
    """Which processes are bound to a view, indexed [view, p]: those that must deliver its messages, and those whose own
    messages all of the former must deliver. Without views nobody is excused, and both arrays have no rows."""

    receivers: np.ndarray
    senders: np.ndarray


def nobody_excused(members: int) -> Bound:
    return Bound(np.empty((0, members), np.bool_), np.empty((0, members), np.bool_))


def bound_to(in_view: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """For each message, given its view, the row of processes bound to that view; everybody if there are no views."""
    if not len(rows):
        return np.ones((len(in_view), rows.shape[1]), np.bool_)
    return np.asarray(rows[in_view] | (in_view < 0)[:, None])


class Settled(NamedTuple):
    """How many deliveries are certainly missing, the first of them by its send, and how many messages are still in flight."""

    lost: int
    row: int
    process: int
    because_of: int
    """The process because of which the first was due: the sender, or else one that delivered the message."""
    in_flight: int


@compiled
def settle(
    messages: Messages, reached_view: np.ndarray, correct: np.ndarray, bound: Bound, later: np.ndarray, in_flight: np.ndarray
) -> Settled:
    """Find the lost messages, and mark in `in_flight` those that may still be delivered after the segment. `later`: which
    processes have events after it; `reached_view`: each process's view, in which it delivers nothing of earlier views."""
    members = len(messages.base)
    lost, lost_row, lost_process, lost_because_of, flying = 0, -1, -1, -1, 0
    for origin in range(members):
        for row in range(messages.first_row[origin], messages.first_row[origin + 1]):
            viewed = len(messages.in_view) > 0
            view = messages.in_view[row] if viewed else -1
            owed, live, first_owed = 0, False, -1
            reached_by = origin if correct[origin] and (view < 0 or bound.senders[view, origin]) else -1
            for process in range(members):
                counts = correct[process] and (view < 0 or bound.receivers[view, process])
                if messages.status[row, process] == OWED:
                    if later[process] and not (viewed and view < reached_view[process]):
                        live = True
                    elif counts:
                        if owed == 0:
                            first_owed = process
                        owed += 1
                elif messages.status[row, process] == DELIVERED and counts and reached_by < 0:
                    reached_by = process
            if live:
                in_flight[row] = True
                flying += 1
            elif reached_by >= 0 and owed > 0:
                lost += owed
                if lost_row < 0 or messages.sent_at[row] < messages.sent_at[lost_row]:
                    lost_row, lost_process, lost_because_of = row, first_owed, reached_by
    return Settled(lost, lost_row, lost_process, lost_because_of, flying)
