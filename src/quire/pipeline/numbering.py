"""Checks the numbering of a process's messages: 0, 1, 2 and so on; a repeated number is the same message sent again."""

from __future__ import annotations

import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.compiled import compiled
from quire.trace.kinds import SEND

NUMBER_END = 2**31 - 1
"""The messages of one origin have numbers below this, so that a vector takes four bytes per member."""

UNKNOWN = np.iinfo(np.int64).max // 4
"""Stands for the first message number of an origin that sends nothing in the segment: all its messages are foreign."""


@compiled
def number_sends(
    start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray, base: np.ndarray
) -> tuple[np.ndarray, int, int, int]:
    """How many new messages each process sends, and the first gap in the numbers as (process, expected, found).

    `base` holds each process's first number; if it is negative, the first number found is written to it.
    """
    members = len(start) - 1
    new = np.zeros(members, np.int64)
    for process in range(members):
        for event in range(start[process], start[process + 1]):
            if kind[event] == SEND and origin[event] == process:
                number = seq[event]
                if base[process] < 0:
                    base[process] = number
                expected = base[process] + new[process]
                if number > expected or number < 0:
                    return new, process, expected, number
                if number == expected:
                    new[process] += 1
        if base[process] < 0:
            base[process] = UNKNOWN
    return new, -1, 0, 0


def count_sends(start: np.ndarray, kind: np.ndarray, origin: np.ndarray, seq: np.ndarray) -> np.ndarray:
    """How many messages each process of a whole trace sends. Raises BadInput if one skips a number."""
    new, process, expected, found = number_sends(start, kind, origin, seq, np.zeros(len(start) - 1, np.int64))
    if process >= 0:
        raise gap(process, expected, found)
    return new


def gap(process: int, expected: int, found: int) -> BadInput:
    """The error for a process that skips a number."""
    return BadInput(
        f"process {process} sends message {process}:{found} instead of {process}:{expected}; "
        "a process must number its messages 0, 1, 2 and so on"
    )
