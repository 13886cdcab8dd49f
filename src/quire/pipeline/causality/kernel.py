"""Computes vector times in one compiled loop over a segment's events.

Entry q of an event's vector time is the number of events of process q that happened before the event or are the event itself:
one more than the position of the last of them. (An implied delivery has the position of its event.) Vector times pass from one
process to another only with messages, so every message has a row with the vector time of its send. The rows of one origin are
contiguous, in the order of sending, beginning with those of messages sent before the segment.

A segment may be processed without knowing what came before. Then the rows of older messages are empty, and each vector is
accompanied by what it *heard*: for each origin, the number of its last older message in the past, plus one. With the vectors of
those messages, and those of the processes at the segment's start, every vector can be completed later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quire.pipeline.compiled import compiled, first_not_below
from quire.trace.kinds import DELIVER, SEND


class Logs(NamedTuple):
    """The segment's events. Those of process p are at `start[p]` to `start[p + 1]`, in local order."""

    start: np.ndarray
    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    pos: np.ndarray


class Messages(NamedTuple):
    """The rows of messages. Those of origin o are at `first_row[o]` to `first_row[o + 1]`: first `old[o]` messages sent before
    the segment, then `new[o]` messages sent in it, numbered from `base[o]` on."""

    first_row: np.ndarray
    old: np.ndarray
    new: np.ndarray
    base: np.ndarray
    seq: np.ndarray
    """The numbers of the old messages."""
    vector: np.ndarray
    heard: np.ndarray
    """What each vector heard; has no columns if the rows of old messages are complete."""


class State(NamedTuple):
    """The state of every process at one point of the loop."""

    cursor: np.ndarray
    """Its next event."""
    sent: np.ndarray
    """How many of its new messages it has sent."""
    known: np.ndarray
    """Its vector time."""
    heard: np.ndarray
    """What its vector heard; has no columns if the rows of old messages are complete."""


@compiled
def older_deliveries(
    turn: np.ndarray, start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray,
    base: np.ndarray, new: np.ndarray,
) -> tuple[np.ndarray, bool]:  # fmt: skip
    """The delivered messages that are not sent in this segment, as (origin, number), and whether `turn` puts causes first.

    `base` and `new` give the range of each process's message numbers that are sent in the segment.
    """
    members = len(start) - 1
    cursor = start[:members].copy()
    sent = np.zeros(members, np.int64)
    found = np.empty((np.sum(kind == DELIVER), 2), np.int64)
    count = 0
    for process in turn:
        index = cursor[process]
        cursor[process] += 1
        source, number = origin[index], seq[index]
        if kind[index] == SEND:
            if source == process and number == base[process] + sent[process]:
                sent[process] += 1
        elif kind[index] == DELIVER and 0 <= source < members:
            ahead = number - base[source]
            if 0 <= ahead < new[source]:
                if ahead >= sent[source]:
                    return found[:count], False
            else:
                found[count, 0] = source
                found[count, 1] = number
                count += 1
    return found[:count], True


@compiled
def advance(
    first: int,
    last: int,
    turn: np.ndarray,
    logs: Logs,
    messages: Messages,
    state: State,
    clocks: np.ndarray,
    events: np.ndarray,
) -> None:
    """Process the steps from `first` to before `last`, updating the state and the rows; call again to continue.

    `clocks` receives the vector time of each step's event and `events` the event's index, unless these arrays are empty.
    """
    _, kinds, origins, numbers, positions = logs
    first_row, old, new, base, seq, vector, vector_heard = messages
    cursor, sent, known, heard = state
    members, hearing = known.shape[1], heard.shape[1]
    for step in range(first, last):
        process = turn[step]
        index = cursor[process]
        cursor[process] += 1
        origin, number = origins[index], numbers[index]
        if kinds[index] == DELIVER and 0 <= origin < members:
            ahead, own = number - base[origin], first_row[origin] + old[origin]
            row = own + ahead
            if ahead < 0:
                row = first_not_below(seq, first_row[origin], own, number)
            if (ahead < 0 and row < own and seq[row] == number) or 0 <= ahead < new[origin]:
                for other in range(members):
                    known[process, other] = max(known[process, other], vector[row, other])
                for other in range(hearing):
                    heard[process, other] = max(heard[process, other], vector_heard[row, other])
        known[process, process] = positions[index] + 1
        if kinds[index] == SEND and origin == process and number == base[process] + sent[process]:
            row = first_row[process] + old[process] + sent[process]
            sent[process] += 1
            for other in range(members):
                vector[row, other] = known[process, other]
            for other in range(hearing):
                vector_heard[row, other] = heard[process, other]
        if len(clocks):
            events[step - first] = index
            for other in range(members):
                clocks[step - first, other] = known[process, other]


@compiled
def logical_times(
    turn: np.ndarray, start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray, new: np.ndarray,
    implied: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The smallest logical times of a whole trace: for each event, the length of the longest causal chain up to it.

    `implied` marks rows that do not count in a chain; it is empty if all do.
    """
    members = len(start) - 1
    cursor = start[:members].copy()
    sent = np.zeros(members, np.int64)
    first_row = np.zeros(members + 1, np.int64)
    for process in range(members):
        first_row[process + 1] = first_row[process] + new[process]
    of_message = np.zeros(first_row[members], np.int64)
    time = np.zeros(members, np.int64)
    lamport = np.empty(len(kind), np.int64)
    for process in turn:
        index = cursor[process]
        cursor[process] += 1
        source, number = origin[index], seq[index]
        if kind[index] == DELIVER and 0 <= source < members and 0 <= number < new[source]:
            time[process] = max(time[process], of_message[first_row[source] + number])
        if not (len(implied) and implied[index]):
            time[process] += 1
        lamport[index] = time[process]
        if kind[index] == SEND and source == process and number == sent[process]:
            of_message[first_row[process] + number] = time[process]
            sent[process] += 1
    return lamport
