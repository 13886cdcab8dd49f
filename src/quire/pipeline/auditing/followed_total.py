"""Total order of a live run: the audit's merge of delivery sequences, applied to the deliveries that still matter.

A message can be forgotten when nobody will deliver it any more, and the same holds for everything that anyone delivered before
it. The remaining sequences are compared as the audit compares those of a whole trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing.total import disagreements, first_deliveries, judge_sequences
from quire.trace.kinds import DELIVER

K, ORIGIN, FIRST, COUNT = range(4)
Message = tuple[int, int]


class FollowedTotal:
    def __init__(self) -> None:
        self._pending: list[np.ndarray] = []
        """For each process, its deliveries in order, as rows (origin, first number, number after the last)."""

    def follow(
        self, taken: Sequence[np.ndarray], in_flight: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> tuple[int, int, Message, Message] | None:
        """Add deliveries and look for a disagreement. `in_flight`: for each origin, the ranges that may still be delivered.

        Returns the first two processes that disagree and two messages: the first process delivered them in this order, the
        second the other way round. None if all agree.
        """
        while len(self._pending) < len(taken):
            self._pending.append(np.empty((0, 3), np.int64))
        for process, events in enumerate(taken):
            new = events[events[:, K] == DELIVER]
            rows = np.stack([new[:, ORIGIN], new[:, FIRST], new[:, FIRST] + new[:, COUNT]], axis=1)
            self._pending[process] = np.concatenate([self._pending[process], rows])
        origin, first = self._part(in_flight)
        names, ids = np.unique(np.stack([origin, first], axis=1), axis=0, return_inverse=True)
        ids, start = ids.reshape(-1).astype(np.int64), self._starts()
        ids_once, start_once = first_deliveries(ids, start, len(names))
        result = judge_sequences(
            ids_once, start_once, len(names),
            lambda found: [MessageId(int(names[each, 0]), int(names[each, 1])) for each in found],
            lambda ids, start, size, _: disagreements(ids, start, size),
        )  # fmt: skip
        self._forget(ids, start, names, in_flight)
        if result.disagreement is None:
            return None
        found = result.disagreement
        before, after = found.before, found.after
        return found.one, found.other, (before.origin, before.seq), (after.origin, after.seq)

    def _starts(self) -> np.ndarray:
        return np.concatenate(([0], np.cumsum([len(each) for each in self._pending]))).astype(np.int64)

    def _part(self, in_flight: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """Split all pending ranges at every boundary of any range, so that the same messages have the same row everywhere."""
        every = np.concatenate(self._pending) if self._pending else np.empty((0, 3), np.int64)
        points = {}
        for origin in np.unique(every[:, 0]).tolist():
            own = every[every[:, 0] == origin]
            starts, ends = in_flight[origin] if origin < len(in_flight) else (np.empty(0, np.int64), np.empty(0, np.int64))
            points[origin] = np.unique(np.concatenate([own[:, 1], own[:, 2], starts, ends]))
        for process, rows in enumerate(self._pending):
            low, high = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
            for origin, edges in points.items():
                mine = rows[:, 0] == origin
                low[mine], high[mine] = np.searchsorted(edges, rows[mine, 1]), np.searchsorted(edges, rows[mine, 2])
            count = high - low
            at = np.repeat(low, count) + np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
            parted = np.repeat(rows, count, axis=0)
            for origin, edges in points.items():
                mine = parted[:, 0] == origin
                parted[mine, 1], parted[mine, 2] = edges[at[mine]], edges[at[mine] + 1]
            self._pending[process] = parted
        every = np.concatenate(self._pending) if self._pending else every
        return every[:, 0], every[:, 1]

    def _forget(
        self, ids: np.ndarray, start: np.ndarray, names: np.ndarray, in_flight: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> None:
        """Drop the settled messages that have only settled messages before them at every process."""
        settled = np.ones(len(names), np.bool_)
        for origin in np.unique(names[:, 0]).tolist():
            if origin >= len(in_flight) or not len(in_flight[origin][0]):
                continue
            starts, ends = in_flight[origin]
            mine = names[:, 0] == origin
            at = np.searchsorted(starts, names[mine, 1], side="right") - 1
            settled[mine] = ~((at >= 0) & (names[mine, 1] < ends[np.maximum(at, 0)]))
        while True:
            prefix = [_prefix(settled[ids[low:high]]) for low, high in pairwise(start)]
            beyond = [ids[low + count : high] for (low, high), count in zip(pairwise(start), prefix, strict=True)]
            still = np.unique(np.concatenate(beyond)) if beyond else np.empty(0, np.int64)
            if not settled[still].any():
                break
            settled[still] = False
        self._pending = [rows[count:] for rows, count in zip(self._pending, prefix, strict=True)]


def _prefix(flags: np.ndarray) -> int:
    """The length of the leading run of set flags."""
    return int(np.argmin(flags)) if len(flags) and not flags.all() else len(flags)
