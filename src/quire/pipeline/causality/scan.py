"""Computes the exact vector times at the start of every segment, by a left-to-right scan over the segments' summaries.

A vector that a segment computed on its own is completed by taking the entrywise maximum with: its process's vector at the
segment's start; the start vectors of all processes that have events of this segment in its past; and the vectors of the older
messages that it heard. For each origin the last older message is enough, because an origin's vectors only grow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quire.pipeline.causality.segments import Start, Summary, Survey

_SHIFT = 40
"""Packs a message into one integer: the origin in the high bits, the message number in the low ones."""

CARRIED_MAX = 64_000_000
"""If more vector entries than this would cross segments, the trace is processed in one piece instead."""


class Plan:
    """Which messages cross segments: for each segment, those it delivers from earlier ones (`older`), and those it sends that
    later ones deliver (`wanted`)."""

    def __init__(self, older: list[np.ndarray], wanted: list[np.ndarray], bases: list[np.ndarray]) -> None:
        self.older = older
        self.wanted = wanted
        self.bases = bases


def plan(surveys: Sequence[Survey]) -> Plan | None:
    """Find the messages that cross segments; None if the trace cannot be cut by the recorded logical times."""
    if not all(survey.fit for survey in surveys):
        return None
    members = len(surveys[0].new)
    bases = [np.zeros(members, np.int64)]
    for survey in surveys:
        if not np.array_equal(survey.base[survey.new > 0], bases[-1][survey.new > 0]):
            return None  # A process repeats a send in a later segment, or skips a number.
        bases.append(bases[-1] + survey.new)
    ends = np.array(bases[1:])
    older: list[np.ndarray] = []
    wanted: list[list[np.ndarray]] = [[] for _ in surveys]
    carried = 0
    for survey, base in zip(surveys, bases, strict=False):
        origin, number = survey.older.T
        real = (number >= 0) & (number < bases[-1][origin])
        messages = survey.older[real]
        origin, number = messages.T
        if (number >= base[origin]).any():
            return None  # A delivery's logical time does not follow its send's.
        older.append(messages)
        carried += messages.size * members
        for source in range(members):
            own = messages[origin == source]
            segment = np.searchsorted(ends[:, source], own[:, 1], side="right")
            for index in np.unique(segment):
                wanted[index].append(own[segment == index])
    if carried > CARRIED_MAX:
        return None
    nothing = np.empty((0, 2), np.int64)
    return Plan(older, [np.unique(np.concatenate([nothing, *found]), axis=0) for found in wanted], bases)


def scan(crossing: Plan, summaries: Sequence[Summary]) -> list[Start]:
    """The exact start state of every segment."""
    members = len(crossing.bases[0])
    known = np.zeros((members, members), np.int32)
    keys = np.concatenate([_key(messages) for messages in crossing.wanted])
    order = np.argsort(keys)
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys))
    keys = keys[order]
    vectors = np.zeros((len(keys), members), np.int32)
    starts = []
    filled = 0
    for older, base, summary in zip(crossing.older, crossing.bases, summaries, strict=False):
        carried = vectors[np.searchsorted(keys, _key(older))]
        starts.append(Start(base, known, older[:, 0], older[:, 1], carried))
        complete = _complete(np.concatenate((summary.known, summary.vector)),
                             np.concatenate((summary.heard, summary.vector_heard)), known, older, carried)  # fmt: skip
        # The vector of a process without events in the segment stays as it was.
        known, of_messages = np.maximum(complete[:members], known), complete[members:]
        vectors[rank[filled : filled + len(of_messages)]] = of_messages
        filled += len(of_messages)
    return starts


def _key(messages: np.ndarray) -> np.ndarray:
    key: np.ndarray = (messages[:, 0] << _SHIFT) | messages[:, 1]
    return key


def _complete(vector: np.ndarray, heard: np.ndarray, entered: np.ndarray, older: np.ndarray, carried: np.ndarray) -> np.ndarray:
    complete = vector.copy()
    keys = _key(older)
    for process in range(vector.shape[1]):
        seen = vector[:, process] > 0
        complete[seen] = np.maximum(complete[seen], entered[process])
        informed = np.flatnonzero(heard[:, process] > 0)
        rows = np.searchsorted(keys, (process << _SHIFT) | (heard[informed, process].astype(np.int64) - 1))
        complete[informed] = np.maximum(complete[informed], carried[rows])
    return complete
