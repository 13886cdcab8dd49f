"""Decides what leaves a streaming order of events that name the events they follow: each leaves when all of those have left.

Events that leave together are sorted by depth (the longest chain of them behind an event), then by name. An event waits for one
that has not arrived, however long it takes. Events that follow each other in a circle could never leave, so they are rejected,
and so is an event with the name of another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.causes import arrange, circle
from quire.pipeline.ordering.following import explain_circle
from quire.pipeline.ordering.reading import Format
from quire.pipeline.ordering.stream.departed import Names, halves, have_left, with_more
from quire.pipeline.ordering.stream.intake import KEY_CAUSES, KEY_NAME, Waiting, all_waiting, write_waiting
from quire.pipeline.ordering.stream.release import keep_one_of_each, set_apart, with_positions, without_keys
from quire.pipeline.ordering.stream.writing import write_events


class FollowingTask(msgspec.Struct, frozen=True, tag="following"):
    directory: str
    waiting: tuple[Waiting, ...]
    names: tuple[Names, ...]
    """The names of the events that have left."""
    secret: int
    """Of their fingerprints."""
    position: int
    out: str
    format: Format
    complete: bool
    """Nothing more will arrive, so events wait for nothing that is not there."""


class FollowingReleased(msgspec.Struct, frozen=True):
    rows: int
    names: tuple[Names, ...]
    missing: int
    """How many references to events that never arrived were ignored."""
    waiting: tuple[Waiting, ...]
    rejected: tuple[Waiting, ...]


class _Links(NamedTuple):
    """Pairs of an event and one that it follows, by their indices, and the events that follow one that is not here."""

    effect: np.ndarray
    cause: np.ndarray
    lacking: np.ndarray


def release_following(task: FollowingTask) -> FollowingReleased:
    events, rejected = _once_each(task)
    links = _links(events, task)
    circles = _circles(links, events.num_rows)
    names = events[KEY_NAME]
    for found in circles:
        reason = explain_circle([names[event].as_py() for event in found])
        rejected = (*rejected, set_apart(task.directory, events.take(found), reason))
    in_circle = np.zeros(events.num_rows, np.bool_)
    in_circle[[event for found in circles for event in found]] = True
    links = _without(links, in_circle)
    depth = _depths(links, events.num_rows, wait=not task.complete)
    leaving = ~in_circle & (depth >= 0)
    going = np.flatnonzero(leaving)
    going = going[np.argsort(depth[going], kind="stable")]  # They are sorted by name already.
    left = with_more(task.directory, task.names, halves(names.take(going).combine_chunks(), task.secret))
    if len(going):
        out = without_keys(events.take(going))
        write_events(with_positions(out, task.position), Path(task.out), task.format)
    staying = np.flatnonzero(~leaving & ~in_circle)
    waiting = (write_waiting(task.directory, events.take(staying)),) if len(staying) else ()
    missing = len(links.lacking) if task.complete else 0
    return FollowingReleased(len(going), left, missing, waiting, rejected)


def _once_each(task: FollowingTask) -> tuple[pa.Table, tuple[Waiting, ...]]:
    """The events that wait, sorted by name, without those whose name another event has."""
    events = all_waiting(task.directory, task.waiting)
    events = events.take(pc.sort_indices(events[KEY_NAME]))
    rejected: tuple[Waiting, ...] = ()
    again = have_left(task.directory, task.names, halves(events[KEY_NAME].combine_chunks(), task.secret))
    if again.any():
        reason = "an event of its name has left already"
        rejected = (set_apart(task.directory, events.filter(pa.array(again)), reason),)
        events = events.filter(pa.array(~again))
    names = events[KEY_NAME].combine_chunks()
    same = np.asarray(pc.equal(names.slice(1), names.slice(0, max(0, len(names) - 1))))
    if same.any():
        events, more = keep_one_of_each(events, same, task.directory, "there is another event of its name")
        rejected += more
    return events, rejected


def _links(events: pa.Table, task: FollowingTask) -> _Links:
    causes: Any = events[KEY_CAUSES].combine_chunks()
    names: Any = events[KEY_NAME].combine_chunks()
    effect = np.repeat(np.arange(events.num_rows), np.asarray(pc.list_value_length(causes).fill_null(0)))
    wanted: Any = pc.list_flatten(causes)
    cause = np.asarray(pc.index_in(wanted, names).fill_null(-1)).astype(np.int64)
    elsewhere = np.flatnonzero(cause < 0)
    left = have_left(task.directory, task.names, halves(wanted.take(pa.array(elsewhere)), task.secret))
    here = cause >= 0
    return _Links(effect[here], cause[here], effect[elsewhere[~left]])


def _circles(links: _Links, events: int) -> list[list[int]]:
    """Circles of events that follow each other, which have no event in common."""
    found: list[list[int]] = []
    while True:
        depth = _depths(links, events, wait=False)
        if (depth >= 0).all():
            return found
        found.append(circle(links.effect, links.cause, depth))
        solved = np.isin(links.effect, found[-1])
        links = links._replace(effect=links.effect[~solved], cause=links.cause[~solved])


def _without(links: _Links, gone: np.ndarray) -> _Links:
    """The links of the remaining events; those to events that are gone are links to events that are not here."""
    stays = ~gone[links.effect]
    effect, cause = links.effect[stays], links.cause[stays]
    here = ~gone[cause]
    lacking = np.concatenate((links.lacking[~gone[links.lacking]], effect[~here]))
    return _Links(effect[here], cause[here], lacking)


def _depths(links: _Links, events: int, *, wait: bool) -> np.ndarray:
    """The depth of each event; -1 on a circle and behind one and, if events wait, for those that lack an event, and behind."""
    blocked = links.lacking if wait else links.lacking[:0]
    # An event that follows itself is never reached.
    effect, cause = np.concatenate((links.effect, blocked)), np.concatenate((links.cause, blocked))
    return arrange(effect, cause, np.zeros(events, np.int64)).depth
