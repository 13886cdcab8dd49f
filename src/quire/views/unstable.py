"""The runs of messages that a member holds in a view, kept for retransmission until every member has delivered them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from quire.model.messages import Run
from quire.views.packets import Data

_LOOK_AFTER_RUNS = 4
_LOOK_AFTER_BYTES = 1 << 20
"""So many more runs for each other member, or bytes, are held before it is worth while to look what of them can be dropped."""


class UnstableRuns:
    """For each member, its runs in order. A run is never split: it is added, retransmitted and dropped as a whole. `window`:
    how many messages a member may send before some of them are stable."""

    def __init__(self, members: int, window: int) -> None:
        self._window = window
        self.count = [0] * members
        """How many messages of each member have come, including those that were dropped since."""
        self.bytes = [0] * members
        """The size of each member's messages that are kept."""
        self._runs: list[deque[tuple[int, int, Data]]] = [deque() for _ in range(members)]
        """Those runs: where each ends, and its size."""
        self._dropped = [0] * members
        """How many messages of each member are not kept any more."""
        self._runs_left, self._bytes_left = _LOOK_AFTER_RUNS * (members - 1), _LOOK_AFTER_BYTES
        """How many more are held before that."""
        self.has_grown = False
        """Whether it is worth while to look what can be dropped."""

    def add(self, data: Data, run: Run) -> bool:
        """Add a run, with the packet in which it came, if it is the next of its member; otherwise, as with a duplicate, return
        False."""
        origin, end, size, runs = run.origin, run.first + run.count, len(run.body.payload), self._runs[run.origin]
        if run.first != self.count[origin]:
            return False
        if not runs:
            self._dropped[origin] = run.first
        runs.append((end, size, data))
        self.count[origin] = end
        self.bytes[origin] += size
        self._bytes_left -= size
        self._runs_left = 0 if end - self._dropped[origin] > self._window else self._runs_left - 1
        self.has_grown = self._runs_left <= 0 or self._bytes_left <= 0
        return True

    def restore(self, cut: Sequence[int], runs: Iterable[Data]) -> None:
        """Take over the runs that remain of a view that ended with this cut."""
        for data in runs:
            run = data.run
            self.count[run.origin] = run.first
            self.add(data, run)
        self.count = list(cut)

    def between(self, origin: int, first: int, last: int) -> Iterator[Data]:
        """The runs of a member that begin at message `first` or later, and end at `last` or before."""
        return (data for end, _, data in self._runs[origin] if first <= data.run.first and end <= last)

    def find(self, run: Run) -> Data:
        """The packet in which a run that is kept here came."""
        return next(data for _, _, data in reversed(self._runs[run.origin]) if data.run.first == run.first)

    def within(self, cut: Sequence[int]) -> Iterator[Data]:
        """Every run that lies in the cut."""
        for origin, last in enumerate(cut):
            yield from self.between(origin, 0, last)

    def holds(self, cut: Sequence[int]) -> bool:
        return all(count >= last for count, last in zip(self.count, cut, strict=True))

    def drop(self, stable: Iterable[int]) -> None:
        """Drop the stable runs: every member has delivered so many messages of each."""
        self.has_grown = False
        self._runs_left, self._bytes_left = _LOOK_AFTER_RUNS * (len(self.count) - 1), _LOOK_AFTER_BYTES
        for origin, (runs, count) in enumerate(zip(self._runs, stable, strict=True)):
            while runs and runs[0][0] <= count:
                self._dropped[origin], size, _ = runs.popleft()
                self.bytes[origin] -= size

    def dropped(self, origin: int) -> int:
        """How many messages of a member come before the first one that is kept."""
        return self._dropped[origin] if self._runs[origin] else self.count[origin]

    def messages(self, origin: int) -> int:
        """How many messages of a member are kept."""
        return self.count[origin] - self.dropped(origin)
