"""Decides what leaves a streaming causal order: an event leaves once everything that happened before it has left.

An event's vector says how many events of each source are in its past, so it may leave when that many have left. Which events
can leave does not depend on the order in which they are examined. Those that leave together are sorted by the number of events
in their past, then by source; this extends causality, because an event after another has more in its past. Source: Birman,
Schiper and Stephenson 1991, with sources for senders.

Contradictory vectors may put events in a cycle. None of these could ever leave, so they are rejected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from quire.pipeline.compiled import compiled
from quire.pipeline.ordering.keys import circle
from quire.pipeline.ordering.reading import Format
from quire.pipeline.ordering.stream.intake import KEY_CLOCK, KEY_RANK, KEY_VECTOR, Waiting, all_waiting, write_waiting
from quire.pipeline.ordering.stream.release import keep_one_of_each, set_apart, with_positions, without_keys
from quire.pipeline.ordering.stream.writing import write_events


class CausalTask(msgspec.Struct, frozen=True, tag="causal"):
    directory: str
    waiting: tuple[Waiting, ...]
    sources: tuple[str, ...]
    left: tuple[int, ...]
    """How many events of each source have left."""
    position: int
    out: str
    format: Format


class CausallyReleased(msgspec.Struct, frozen=True):
    rows: int
    left: tuple[int, ...]
    waiting: tuple[Waiting, ...]
    rejected: tuple[Waiting, ...]


@compiled
def ready(rank: np.ndarray, number: np.ndarray, vectors: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Which events may leave; they must be sorted by source and number. `left` is updated."""
    events, sources = vectors.shape
    end = np.zeros(sources, np.int64)
    for event in range(events):
        end[rank[event]] += 1
    end = np.cumsum(end)
    head = np.empty(sources, np.int64)
    head[0] = 0
    head[1:] = end[:-1]
    found = np.zeros(events, np.bool_)
    progress = True
    while progress:
        progress = False
        for source in range(sources):
            while head[source] < end[source] and number[head[source]] == left[source] + 1:
                event = head[source]
                lacking = False
                for other in range(sources):
                    if other != source and vectors[event, other] > left[other]:
                        lacking = True
                        break
                if lacking:
                    break
                found[event] = True
                left[source] += 1
                head[source] += 1
                progress = True
    return found


def release_causally(task: CausalTask) -> CausallyReleased:
    events = all_waiting(task.directory, task.waiting)
    order = np.lexsort((np.asarray(events[KEY_CLOCK]), np.asarray(events[KEY_RANK])))
    events = events.take(order)
    rank, number = np.asarray(events[KEY_RANK]), np.asarray(events[KEY_CLOCK])
    same = (rank[1:] == rank[:-1]) & (number[1:] == number[:-1])
    rejected: tuple[Waiting, ...] = ()
    if same.any():
        events, rejected = keep_one_of_each(
            events, same, task.directory, "there is another event of its source with its number"
        )
        rank, number = np.asarray(events[KEY_RANK]), np.asarray(events[KEY_CLOCK])
    vectors = _vectors(events[KEY_VECTOR])
    left = np.array(task.left, np.int64)
    leaving = ready(rank.astype(np.int64), number, vectors, left)
    going = np.flatnonzero(leaving)
    going = going[np.lexsort((rank[going], vectors[going].sum(axis=1)))]
    if len(going):
        out = without_keys(events.take(going))
        write_events(with_positions(out, task.position), Path(task.out), task.format)
    staying = np.flatnonzero(~leaving)
    for found in circles(rank[staying], number[staying], vectors[staying], left):
        names = [f"event {number[event]} of source {task.sources[rank[event]]}" for event in staying[found].tolist()]
        rejected = (*rejected, set_apart(task.directory, events.take(staying[found]), circle(names)))
        leaving[staying[found]] = True
    waiting_events = events.take(np.flatnonzero(~leaving))
    waiting = (write_waiting(task.directory, waiting_events),) if waiting_events.num_rows else ()
    return CausallyReleased(len(going), tuple(left.tolist()), waiting, rejected)


def circles(rank: np.ndarray, number: np.ndarray, vectors: np.ndarray, left: np.ndarray) -> list[list[int]]:
    """Cycles of events that wait for each other, each for the next and the last for the first, among those that could not
    leave.

    Only the next event of each source matters: an event that waits for a later one waits for that one too.
    """
    following = np.flatnonzero(number == left[rank] + 1)
    head = dict(zip(rank[following].tolist(), following.tolist(), strict=True))
    waits = {
        source: {other for other in np.flatnonzero(vectors[event] > left).tolist() if other != source and other in head}
        for source, event in head.items()
    }
    found: list[list[int]] = []
    while True:
        while free := [source for source, others in waits.items() if not others]:
            for source in free:
                del waits[source]
            waits = {source: others & waits.keys() for source, others in waits.items()}
        if not waits:
            return found
        path = [min(waits)]
        while (step := min(waits[path[-1]])) not in path:
            path.append(step)
        path = path[path.index(step) :]
        found.append([head[source] for source in path])
        waits = {source: others - set(path) for source, others in waits.items() if source not in path}


def _vectors(column: Any) -> np.ndarray:
    column = column.combine_chunks()
    return np.asarray(column.flatten()).reshape(len(column), -1)
