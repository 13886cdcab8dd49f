"""Events of a live run with their text columns, in the form that the audit's checks of transactions and calls take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from quire.pipeline.auditing.calls import COLUMNS
from quire.pipeline.labels import Labelled
from quire.trace.kinds import SEND

OBJECT, OP, TXN = (COLUMNS.index(name) for name in ("object", "op", "txn"))
ENDS = ("commit", "abort")
"""Operations that record how a transaction ended; they count wherever they are recorded."""


class Worded(NamedTuple):
    """An event with the values of its text columns, in the order of COLUMNS."""

    kind: int
    origin: int
    seq: int
    lamport: int
    words: tuple[str | None, ...]


Logs = Sequence[Sequence[Worded]]
"""The events of each process."""


def explained(logs: Logs) -> list[list[Worded]]:
    """The events without those that refer to a message whose send is not known."""
    sent = {(event.origin, event.seq) for log in logs for event in log if event.kind == SEND}
    return [[event for event in log if event.words[OP] in ENDS or (event.origin, event.seq) in sent] for log in logs]


def labelled(logs: Logs) -> tuple[Labelled, np.ndarray]:
    """The events of all processes in the audit's form, and the number of the first message that each process sent."""
    first = [next((event.seq for event in log if event.kind == SEND), 0) for log in logs]
    every = [event for log in logs for event in log]
    start = np.concatenate(([0], np.cumsum([len(log) for log in logs]))).astype(np.int64)
    codes, words = {}, {}
    for at, name in enumerate(COLUMNS):
        words[name] = sorted({word for event in every if (word := event.words[at]) is not None})
        code: dict[str | None, int] = {word: number for number, word in enumerate(words[name])}
        codes[name] = np.array([code.get(event.words[at], -1) for event in every], np.int32)
    numbers = np.array([event[:4] for event in every], np.int64).reshape(-1, 4)
    kind, origin, seq, lamport = (numbers[:, column].copy() for column in range(4))
    rows = Labelled(start, kind.astype(np.int8), origin.astype(np.int32), seq, lamport, True, codes, words)
    return rows, np.array(first, np.int64)
