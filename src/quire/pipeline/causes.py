"""Graph algorithms on events and their direct causes: topological depth, cycles, an order, lanes, and redundant edges.

The order follows the events' times where it can: an event is placed at its own time or at that of its latest cause, whichever
is later. Among events at the same time, causes come first, because they have a smaller depth. So a tie in time is never
mistaken for causality, and a clock that is behind never swaps a cause and its effect.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quire.pipeline.compiled import compiled


class Arranged(NamedTuple):
    """For each event, the time at which it is placed and its depth: the length of the longest chain of causes behind it. The
    depth is -1 for events on a cycle, and for those after one."""

    time: np.ndarray
    depth: np.ndarray


def arrange(effect: np.ndarray, cause: np.ndarray, time: np.ndarray) -> Arranged:
    """Place events, given the pairs (effect, cause) as event indices, and each event's own time."""
    events = len(time)
    waiting = np.bincount(effect, minlength=events).astype(np.int64)
    begin = begins(cause, events)
    return Arranged(*spread_times(begin, _group(cause, effect, begin), waiting, time.astype(np.int64)))


@compiled
def _group(cause: np.ndarray, effect: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """The effects, grouped by their causes."""
    end, grouped = begin.copy(), np.empty(len(effect), np.int64)
    for pair in range(len(effect)):
        grouped[end[cause[pair]]] = effect[pair]
        end[cause[pair]] += 1
    return grouped


def in_order(execution: np.ndarray, time: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """The order of events by execution, time and depth. (Times come nearly sorted, depths do not, and few times are equal; so
    only events with equal times are sorted by depth.)"""
    if execution.any():
        order = np.lexsort((time, execution))
        tied = (np.diff(time[order]) == 0) & (np.diff(execution[order]) == 0)
    else:
        order = np.argsort(time, kind="stable")
        tied = np.diff(time[order]) == 0
    if tied.any():
        among = np.concatenate((tied, [False])) | np.concatenate(([False], tied))
        group = np.concatenate(([0], np.cumsum(~tied)))[among]
        those = order[among]
        order[among] = those[np.lexsort((depth[those], group))]
    return order


def begins(numbers: np.ndarray, count: int) -> np.ndarray:
    """Where each number below `count` begins if these are sorted, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=count)))).astype(np.int64)


@compiled
def spread_times(
    begin: np.ndarray, effects: np.ndarray, waiting: np.ndarray, own: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Propagate times and depths, starting at the events without causes. The effects of event e are
    `effects[begin[e] : begin[e + 1]]`, and it has `waiting[e]` causes."""
    events = len(own)
    time, depth = own.copy(), np.full(events, -1, np.int64)
    ready = np.empty(events, np.int64)
    count = 0
    reached = np.zeros(events, np.int64)
    for event in range(events):
        if waiting[event] == 0:
            ready[count] = event
            count += 1
    done = 0
    while done < count:
        event = ready[done]
        done += 1
        depth[event] = reached[event]
        for at in range(begin[event], begin[event + 1]):
            effect = effects[at]
            time[effect] = max(time[effect], time[event])
            reached[effect] = max(reached[effect], reached[event] + 1)
            waiting[effect] -= 1
            if waiting[effect] == 0:
                ready[count] = effect
                count += 1
    return time, depth


def circle(effect: np.ndarray, cause: np.ndarray, depth: np.ndarray) -> list[int]:
    """A cycle among the events without a depth, beginning with its lowest event: each event follows the next."""
    stuck = np.flatnonzero((depth[effect] < 0) & (depth[cause] < 0))
    # Every event left has a cause that is left, so following one cause of each leads into a cycle.
    follows = dict(zip(effect[stuck][::-1].tolist(), cause[stuck][::-1].tolist(), strict=True))
    path = [min(follows)]
    seen = {path[0]: 0}
    while (step := follows[path[-1]]) not in seen:
        seen[step] = len(path)
        path.append(step)
    found = path[seen[step] :]
    least = found.index(min(found))
    return found[least:] + found[:least]


@compiled
def lanes(
    order: np.ndarray, begin: np.ndarray, causes: np.ndarray, execution: np.ndarray, host: np.ndarray, hosts: int
) -> np.ndarray:  # fmt: skip
    """Assign every event to a lane of its host, in an order that puts causes first. An event continues the lane of its first
    cause (of `causes[begin[e] : begin[e + 1]]`) at the same host that is still the last of its lane; otherwise it starts a new
    lane. Consecutive executions reuse the same lanes."""
    events = len(begin) - 1  # Events that repeat others are not in `order`.
    lane = np.full(events, -1, np.int64)
    last = np.zeros(events, np.bool_)
    count, current = np.zeros(hosts, np.int64), -1
    for event in order:
        if execution[event] != current:
            current = execution[event]
            count[:] = 0
        for at in range(begin[event], begin[event + 1]):
            if last[causes[at]] and host[causes[at]] == host[event]:
                last[causes[at]] = False
                lane[event] = lane[causes[at]]
                break
        if lane[event] < 0:
            lane[event] = count[host[event]]
            count[host[event]] += 1
        last[event] = True
    return lane


@compiled
def chains(
    order: np.ndarray, begin: np.ndarray, causes: np.ndarray, execution: np.ndarray, host: np.ndarray, hosts: int,
    is_cause: np.ndarray, rows: int, limit: int,
) -> tuple[np.ndarray, bool]:  # fmt: skip
    """Assign every event to a lane of its host in which it follows all that is there, directly or through other hosts, in an
    order that puts causes first; and whether `limit` lanes suffice for that. So a host whose events are all ordered has one
    lane. Consecutive executions reuse the same lanes. At most `rows` events of an execution are causes of others."""
    lane, chain = np.full(len(begin) - 1, -1, np.int64), np.full(len(begin) - 1, -1, np.int64)
    # Which events of each lane happened before an event that others follow. Of all lanes, an execution has only some.
    row, vector, width, kept = (
        np.full(len(begin) - 1, -1, np.int64),
        np.empty((rows, limit), np.int32),
        np.zeros(rows, np.int64),
        0,
    )
    column, used, columns = np.full(limit, -1, np.int64), np.empty(limit, np.int64), 0
    count, own = np.zeros(limit, np.int32), np.zeros(limit, np.int32)
    # The lanes of a host are linked, and numbered among each other.
    first, last = np.full(hosts, -1, np.int64), np.full(hosts, -1, np.int64)
    following, number, known, current = np.full(limit, -1, np.int64), np.zeros(limit, np.int64), 0, -1
    for event in order:
        if execution[event] != current:
            current, kept = execution[event], 0
            for at in range(columns):
                column[used[at]] = -1
            columns = 0
        own[:columns] = 0
        for at in range(begin[event], begin[event + 1]):
            source = row[causes[at]]
            for other in range(width[source]):
                own[other] = max(own[other], vector[source, other])
        chosen, here = -1, host[event]
        for at in range(begin[event], begin[event + 1]):
            its = chain[causes[at]]
            if chosen < 0 and host[causes[at]] == here and own[column[its]] == count[column[its]]:
                chosen = its
        if chosen < 0:
            chosen = first[here]
            while chosen >= 0 and column[chosen] >= 0 and own[column[chosen]] != count[column[chosen]]:
                chosen = following[chosen]
        if chosen < 0:
            if known == limit:
                return lane, False
            chosen = known
            known += 1
            if first[here] < 0:
                first[here] = chosen
            else:
                following[last[here]] = chosen
                number[chosen] = number[last[here]] + 1
            last[here] = chosen
        if column[chosen] < 0:
            column[chosen], used[columns] = columns, chosen
            count[columns] = 0
            columns += 1
        chain[event], lane[event] = chosen, number[chosen]
        count[column[chosen]] += 1
        own[column[chosen]] = count[column[chosen]]
        if is_cause[event]:
            row[event], width[kept] = kept, columns
            vector[kept, :columns] = own[:columns]
            kept += 1
    return lane, True


@compiled
def news(
    order: np.ndarray, process: np.ndarray, number: np.ndarray, begin: np.ndarray, causes: np.ndarray, row: np.ndarray,
    members: int, rows: int,
) -> np.ndarray:  # fmt: skip
    """Which (effect, cause) pairs are not redundant: they tell the effect's process something it does not know yet.

    `order` puts causes first. `number` is the position of an event at its process. `row` is where to keep the vector of an
    event that others name as a cause; -1 if none does.
    """
    known = np.zeros((members, members), np.int64)
    vector = np.zeros((rows, members), np.int64)
    told = np.zeros(len(causes), np.bool_)
    for event in order:
        own = process[event]
        # One of several causes may imply another: later ones are tried first, because they know more.
        for at in range(begin[event + 1] - 1, begin[event] - 1, -1):
            cause = causes[at]
            source = process[cause]
            if source != own and known[own, source] <= number[cause]:
                told[at] = True
                for other in range(members):
                    known[own, other] = max(known[own, other], vector[row[cause], other])
        known[own, own] = number[event] + 1
        if row[event] >= 0:
            for other in range(members):
                vector[row[event], other] = known[own, other]
    return told
