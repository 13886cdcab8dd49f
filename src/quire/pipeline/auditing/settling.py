"""Agreement, after the kernel has gone through a segment: what was lost, and what may still be delivered after it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quire.pipeline.auditing.kernel import DELIVERED, OWED, Messages
from quire.pipeline.compiled import compiled


class Bound(NamedTuple):
    """[view, p]: who has to have what was delivered in a view, and whose messages all of those must have. Without views
    nobody is excused, and both have no rows."""

    receivers: np.ndarray
    senders: np.ndarray


def nobody_excused(members: int) -> Bound:
    return Bound(np.empty((0, members), np.bool_), np.empty((0, members), np.bool_))


def bound_to(in_view: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """For messages of these views a row each of who is bound, given a row for each view; everybody where there is none."""
    if not len(rows):
        return np.ones((len(in_view), rows.shape[1]), np.bool_)
    return np.asarray(rows[in_view] | (in_view < 0)[:, None])


class Settled(NamedTuple):
    """How many deliveries agreement lacks for certain, the first of them by its send, and how many rows are in flight."""

    lost: int
    row: int
    process: int
    because_of: int
    """The process by which the first was due: its sender, or else one that delivered it."""
    in_flight: int


@compiled
def settle(
    messages: Messages, reached_view: np.ndarray, correct: np.ndarray, bound: Bound, later: np.ndarray, in_flight: np.ndarray
) -> Settled:
    """Find what was lost, and mark the rows that members may still deliver after the segment. `later`: who has events then;
    `reached_view`: to which view each has come, beyond which it delivers nothing of earlier ones."""
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
