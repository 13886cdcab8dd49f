"""Merges the logs of all processes into one order that respects local order and puts each send before its deliveries.

If logical times are recorded, a merge by them gives this order. If they are missing or wrong, it is rebuilt: a process advances
until it reaches a delivery whose send has not been seen, and is woken by that send. If all remaining processes wait for one
another, some delivery precedes its own send, and no such order exists.
"""

from __future__ import annotations

import numpy as np

from quire.pipeline.compiled import compiled
from quire.trace.kinds import DELIVER, SEND


@compiled
def merge_by_lamport(start: np.ndarray, lamport: np.ndarray) -> np.ndarray:
    """The process whose event is next at each step, by (logical time, process)."""
    members = len(start) - 1
    turn = np.empty(start[members] - start[0], np.int32)
    cursor = start[:members].copy()
    heap = np.empty(members, np.int32)
    size = 0
    for process in range(members):
        if cursor[process] < start[process + 1]:
            # Sift up: the heap is ordered by (logical time of the next event, process).
            at = size
            size += 1
            heap[at] = process
            while at > 0:
                parent = (at - 1) // 2
                above, below = heap[parent], heap[at]
                if lamport[cursor[above]] < lamport[cursor[below]] or (
                    lamport[cursor[above]] == lamport[cursor[below]] and above < below
                ):
                    break
                heap[parent], heap[at] = below, above
                at = parent
    step = 0
    while size > 0:
        process = heap[0]
        turn[step] = process
        step += 1
        cursor[process] += 1
        if cursor[process] == start[process + 1]:
            size -= 1
            heap[0] = heap[size]
            if size == 0:
                break
            process = heap[0]
        # Sift down. Consecutive events of one process stay at the top after one or two comparisons.
        at = 0
        key = lamport[cursor[process]]
        while True:
            child = 2 * at + 1
            if child >= size:
                break
            candidate = heap[child]
            least = lamport[cursor[candidate]]
            if child + 1 < size:
                other = heap[child + 1]
                time = lamport[cursor[other]]
                if time < least or (time == least and other < candidate):
                    child, candidate, least = child + 1, other, time
            if key < least or (key == least and process < candidate):
                break
            heap[at] = candidate
            at = child
        heap[at] = process
    return turn


@compiled
def rebuild(
    start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray, messages: np.ndarray
) -> tuple[np.ndarray, bool, np.ndarray]:
    """The process whose event is next at each step, whether that order puts causes first, and otherwise who waits for what.

    `messages`: how many messages each process sends; deliveries of other messages do not wait. If no order exists, a waiting
    delivery is let through, so that checks which do not need the order can still be made. The last value then has a row for
    each process at the first deadlock: origin and number of the message whose delivery it has reached, and the index of that
    delivery; -1 for a process that is not waiting.
    """
    members = len(start) - 1
    turn = np.empty(start[members] - start[0], np.int32)
    cursor = start[:members].copy()
    sent = np.zeros(members, np.int64)
    waits_for = np.full(members, -1, np.int32)
    waits_since = np.zeros(members, np.int64)
    ready = np.empty(members, np.int32)
    count = members
    for process in range(members):
        ready[process] = members - 1 - process
    step = 0
    exists, stuck = True, np.full((members, 3), -1, np.int64)
    while step < len(turn):
        if count == 0:
            if exists:
                exists = False
                for process in range(members):
                    if waits_for[process] >= 0:
                        stuck[process, 0] = waits_for[process]
                        stuck[process, 1] = waits_since[process]
                        stuck[process, 2] = cursor[process]
            for process in range(members):
                if waits_for[process] >= 0:
                    waits_for[process] = -1
                    turn[step] = process
                    step += 1
                    cursor[process] += 1
                    ready[0] = process
                    count = 1
                    break
        count -= 1
        process = ready[count]
        while cursor[process] < start[process + 1]:
            event = cursor[process]
            source, number = origin[event], seq[event]
            if kind[event] == SEND:
                if source == process and number == sent[process]:
                    sent[process] += 1
                    for other in range(members):
                        if waits_for[other] == process and waits_since[other] < sent[process]:
                            waits_for[other] = -1
                            ready[count] = other
                            count += 1
            elif kind[event] == DELIVER and 0 <= source < members and sent[source] <= number < messages[source]:
                waits_for[process] = source
                waits_since[process] = number
                break
            turn[step] = process
            step += 1
            cursor[process] += 1
    return turn, exists, stuck
