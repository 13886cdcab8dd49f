"""Events and the events that they follow, as a graph: what is in a circle, how deep each is, and an order of all of them.

The order keeps to the times of the events where it can: an event takes its place at its own time, or at that of the last of
its causes, whichever is later. Of those at one time the causes come first, because fewer are behind them; so ties of times
are never taken for causes, and no clock that is behind turns a cause and its effect round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quire.pipeline.compiled import compiled


class Arranged(NamedTuple):
    """For each event, the time at which it takes its place and how many are behind it in the longest chain. Those with the
    depth -1 follow themselves, or events that do."""

    time: np.ndarray
    depth: np.ndarray


def arrange(effect: np.ndarray, cause: np.ndarray, time: np.ndarray) -> Arranged:
    """Given pairs of events, by their indices, of which the one follows the other, and everybody's own time."""
    events = len(time)
    by_cause = np.argsort(cause, kind="stable")
    begin = np.searchsorted(cause[by_cause], np.arange(events + 1))
    waiting = np.bincount(effect, minlength=events).astype(np.int64)
    return Arranged(*spread_times(begin.astype(np.int64), effect[by_cause].astype(np.int64), waiting, time.astype(np.int64)))


@compiled
def spread_times(
    begin: np.ndarray, effects: np.ndarray, waiting: np.ndarray, own: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """From the events without causes on: `effects[begin[e] : begin[e + 1]]` follow e, which follows `waiting[e]` others."""
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
    """A circle among the events that have no depth, from its least event on: each follows the next."""
    stuck = np.flatnonzero((depth[effect] < 0) & (depth[cause] < 0))
    # Everybody left has a cause that is left, so that following one of them each leads into a circle.
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
    """Put every event in a lane of its host, given in an order in which causes come first: after the first of its causes
    (`causes[begin[e] : begin[e + 1]]`) at that host that is still the last of its lane, or else in a new one. Every execution,
    one after the other, has the same lanes."""
    events = len(begin) - 1  # Some may be in no order, because they repeat others.
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
def news(
    order: np.ndarray, process: np.ndarray, number: np.ndarray, begin: np.ndarray, causes: np.ndarray, row: np.ndarray,
    members: int, rows: int,
) -> np.ndarray:  # fmt: skip
    """Which of the pairs tell a process something that it does not know by then, given in an order in which causes come first.

    `number` is the place of an event at its process, and `row` a place for the vector of an event that others name, -1 for one
    that nobody does.
    """
    known = np.zeros((members, members), np.int64)
    vector = np.zeros((rows, members), np.int64)
    told = np.zeros(len(causes), np.bool_)
    for event in order:
        own = process[event]
        # Of several causes one may account for another: the later are looked at first, because they know more.
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
