"""Audits a live run: judges its events so far with the audit's kernels, one segment after the other.

Events are judged up to a watermark: the logical time that all processes are known to have reached. All that one segment passes
on to the next is each process's vector clock and the messages in flight. Nothing else of the past can matter, so this takes
bounded time and memory, however long the run is.

Members report ranges of consecutive messages. Messages that were never separated, neither when sent nor at any delivery, form
one *atom*. They are in order among themselves, so the kernels judge atoms instead of messages. A later delivery may split an
atom in flight; its parts inherit its history. Between segments, messages have their own numbers; within a segment, atoms are
numbered from 0 for each origin, those in flight first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.followed_findings import Found, Wrong
from quire.pipeline.auditing.followed_total import FollowedTotal
from quire.pipeline.auditing.settling import Bound, settle
from quire.pipeline.merge import merge_by_lamport
from quire.trace.kinds import DELIVER, SEND
from quire.trace.views import VIEW_BITS

IN_FLIGHT_MAX = 200_000
_NEVER = 1 << 62
"""Greater than every message number."""
K, ORIGIN, FIRST, COUNT, LAMPORT, DESTS, IN_VIEW = range(7)
"""The columns of a process's events: kind, origin (an index), first message number, number of messages, logical time of the
first, destinations (an index), and the process's view; -1 for none."""
COLUMNS = 7


class Atoms(NamedTuple):
    """The atoms of one origin: where each begins and ends, how many of them were in flight (they come first), and which atom in
    flight each of those is part of."""

    start: np.ndarray
    end: np.ndarray
    old: int
    part_of: np.ndarray
    view: np.ndarray
    dests: np.ndarray


class InFlight(NamedTuple):
    """The atoms of one origin that some process may still deliver. `status` and `vector` are indexed [atom, process]."""

    start: np.ndarray
    end: np.ndarray
    status: np.ndarray
    vector: np.ndarray


class Follower:
    """Judges a run while it goes on. `total`: whether the run promises total order. Processes are identified by index, in the
    order in which they were added."""

    def __init__(self, *, views: bool, total: bool) -> None:
        self.found = Found()
        self.why = ""
        """Why judging has stopped; empty while it goes on."""
        self._views = views
        self._total = FollowedTotal() if total else None
        self._members = 0
        self._live: list[bool] = []
        self._pending: list[list[np.ndarray]] = []
        self._reached: list[int] = []
        self._view: list[int] = []
        self._high: list[int] = []
        """For each origin, the number after its last known message; -1 before there is any."""
        self._low: list[int] = []
        """For each origin, the number of its first known message; earlier messages are not judged."""
        self._parted: list[bool] = []
        """For each origin, whether some of its sends may be unknown because it was out of contact for a while."""
        self._known = np.zeros((0, 0), np.int64)
        self._flying: list[InFlight] = []
        self._dests: list[np.ndarray] = []
        self._receivers: dict[tuple[int, int], bool] = {}

    # Input.

    def add_process(self) -> int:
        members = self._members = self._members + 1
        self._live.append(True)
        self._pending.append([])
        self._reached.append(0)
        self._view.append(-1)
        self._high.append(-1)
        self._low.append(-1)
        self._parted.append(False)
        self._known = np.pad(self._known, ((0, 1), (0, 1)))
        wider = [
            InFlight(each.start, each.end, np.pad(each.status, ((0, 0), (0, 1))), np.pad(each.vector, ((0, 0), (0, 1))))
            for each in self._flying
        ]
        nothing = np.empty(0, np.int64)
        none = InFlight(nothing, nothing, np.empty((0, members), np.int8), np.empty((0, members), np.int64))
        self._flying = [*wider, none]
        return members - 1

    def address(self, processes: Iterable[int]) -> int:
        """Register a set of destinations and return its index, for the column DESTS."""
        self._dests.append(np.array(sorted(processes), np.int64))
        return len(self._dests) - 1

    def take(self, process: int, events: np.ndarray, reached: int) -> None:
        """Add a process's next events; its later ones will have logical times greater than `reached`."""
        if len(events):
            self._pending[process].append(events)
            last = int(events[-1, LAMPORT] + events[-1, COUNT] - 1)
            self._reached[process] = max(self._reached[process], last)
        self._reached[process] = max(self._reached[process], reached)
        self._live[process] = True

    def survived(self, process: int, view: int) -> None:
        """The process has moved on from this view to a later one."""
        self._receivers[view, process] = True
        while len(self._receivers) > 4096:
            del self._receivers[next(iter(self._receivers))]

    def gone(self, process: int) -> None:
        """A process is gone: do not wait for it."""
        self._live[process] = False
        self._parted[process] = True

    def awaited(self, process: int) -> None:
        """A process that was gone is back: wait until it is heard from again."""
        self._live[process] = True

    def oldest_waiting(self) -> int | None:
        """The logical time of the oldest event that is not judged yet; None if there is none."""
        return min((int(events[0][0, LAMPORT]) for events in self._pending if events), default=None)

    # Judging.

    def advance(self) -> bool:
        """Judge up to the logical time that all processes have reached; return whether there was anything new."""
        live = [reached for reached, live in zip(self._reached, self._live, strict=True) if live]
        if not live or self.why:
            return False
        taken = [self._take_until(process, min(live)) for process in range(self._members)]
        if not any(map(len, taken)):
            return False
        self._judge(taken)
        return True

    def _take_until(self, process: int, until: int) -> np.ndarray:
        """Remove and return a process's events up to a logical time. A range that extends beyond it is split."""
        waiting = self._pending[process]
        if not waiting:
            return np.empty((0, COLUMNS), np.int64)
        events: np.ndarray = np.concatenate(waiting)
        fit = np.clip(until - events[:, LAMPORT] + 1, 0, events[:, COUNT])
        now: np.ndarray = events[fit > 0].copy()
        rest: np.ndarray = events[fit < events[:, COUNT]].copy()
        now[:, COUNT] = fit[fit > 0]
        parted = fit[fit < events[:, COUNT]]
        rest[:, FIRST] += parted
        rest[:, LAMPORT] += parted
        rest[:, COUNT] -= parted
        self._pending[process] = [rest] if len(rest) else []
        return now

    def _judge(self, taken: list[np.ndarray]) -> None:
        taken = self._with_unseen_sends(taken)
        atoms = [self._cut(origin, taken) for origin in range(self._members)]
        parts = [self._expand(events, atoms) for events in taken]
        self.found.messages += sum(int(events[events[:, K] == SEND][:, COUNT].sum()) for events in taken)
        self.found.deliveries += sum(int(events[events[:, K] == DELIVER][:, COUNT].sum()) for events in taken)
        messages = self._rows(atoms)
        logs, state = self._logs(parts, messages), self._state(atoms, messages)
        turn = merge_by_lamport(logs.start, logs.lamport)
        blocks = (len(turn) >> kernel.BLOCK_SHIFT) + 1
        found = kernel.nothing_found(blocks, 64)
        foreign, ordered = kernel.judge(turn, len(turn), logs, messages, state, found, kernel.BLOCK_SHIFT, False)
        if not ordered:
            self.why = "logical times contradict each other"
            return
        self._note(found, foreign, atoms)
        for process, events in enumerate(taken):
            if len(events):
                self._view[process] = int(events[-1, IN_VIEW])
        state.in_view[:] = self._view
        self._keep(messages, state, atoms)
        if self._total is not None and not self.found.total.count:
            self._follow_total(taken)

    def _with_unseen_sends(self, taken: list[np.ndarray]) -> list[np.ndarray]:
        """Add sends that were not observed: others may deliver messages of a process that was gone. They are placed directly
        after the sends that were observed. That assumes less of their causal past than there was, so no false violation can
        follow from it."""
        deliveries = np.concatenate([events[events[:, K] == DELIVER] for events in taken])
        began = min(int(each[0, LAMPORT]) for each in taken if len(each))
        result = []
        for origin, events in enumerate(taken):
            sends, high = events[events[:, K] == SEND], self._high[origin]
            if high >= 0 and self._parted[origin]:
                came = deliveries[deliveries[:, ORIGIN] == origin]
                first, end = (
                    (int(sends[0, FIRST]), int(sends[-1, FIRST] + sends[-1, COUNT])) if len(sends) else (_NEVER, _NEVER)
                )
                before = self._unseen(origin, came, high, first, began, backwards=True)
                last = int(events[-1, LAMPORT] + events[-1, COUNT] - 1) if len(events) else began
                after = self._unseen(origin, came, max(high, end), _NEVER, last, backwards=False)
                events = np.concatenate([before, events, after])
                sends = events[events[:, K] == SEND]
            if len(sends):
                self._low[origin] = int(sends[0, FIRST]) if self._low[origin] < 0 else self._low[origin]
                self._high[origin] = max(high, int(sends[-1, FIRST] + sends[-1, COUNT]))
            result.append(events)
        return [self._without_the_past(events) for events in result]

    def _unseen(self, origin: int, came: np.ndarray, low: int, high: int, lamport: int, *, backwards: bool) -> np.ndarray:
        """Sends for the delivered messages of an origin in this range of numbers, from this logical time on; if `backwards`,
        ending just before it."""
        ranges = _union(np.maximum(came[:, FIRST], low), np.minimum(came[:, FIRST] + came[:, COUNT], high))
        if backwards:
            lamport -= sum(end - first for first, end in ranges)
        rows = []
        for first, end in ranges:
            rows.append((SEND, origin, first, end - first, lamport, -1, first >> VIEW_BITS if self._views else -1))
            lamport += end - first
        return np.array(rows, np.int64).reshape(-1, COLUMNS)

    def _without_the_past(self, events: np.ndarray) -> np.ndarray:
        """The events without deliveries of messages that were sent before their sender was followed."""
        low = np.array(self._low)[events[:, ORIGIN]]
        over = np.clip(low - events[:, FIRST], 0, events[:, COUNT]) * (events[:, K] == DELIVER)
        events = events.copy()
        events[:, FIRST] += over
        events[:, LAMPORT] += over
        events[:, COUNT] -= over
        known: np.ndarray = events[(events[:, K] != DELIVER) | ((low >= 0) & (events[:, COUNT] > 0))]
        return known

    def _cut(self, origin: int, taken: list[np.ndarray]) -> Atoms:
        """Split the messages of an origin, those in flight and those sent now, into this segment's atoms."""
        flying, own = self._flying[origin], taken[origin]
        sends = own[(own[:, K] == SEND) & (own[:, ORIGIN] == origin)]
        of_it = [events[(events[:, K] == DELIVER) & (events[:, ORIGIN] == origin)] for events in taken]
        starts = np.concatenate([flying.start, sends[:, FIRST]])
        ends = np.concatenate([flying.end, sends[:, FIRST] + sends[:, COUNT]])
        edges = [starts, ends, *(each[:, FIRST] for each in of_it), *(each[:, FIRST] + each[:, COUNT] for each in of_it)]
        points = np.unique(np.concatenate(edges))
        low, high = np.searchsorted(points, starts), np.searchsorted(points, ends)
        count = high - low
        at = np.repeat(low, count) + np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        whole = np.repeat(np.arange(len(starts)), count)
        old = int(count[: len(flying.start)].sum())
        sent = whole[old:] - len(flying.start)
        view = points[at] >> VIEW_BITS if self._views else np.full(len(at), -1, np.int64)
        return Atoms(points[at], points[at + 1] if len(at) else points[at], old, whole[:old], view, sends[sent, DESTS])

    def _expand(self, events: np.ndarray, atoms: Sequence[Atoms]) -> np.ndarray:
        """Expand events into one for each atom, with the atom's number in place of the message's. Where there is no such atom,
        the number is -1 minus the message's."""
        low, high = np.zeros(len(events), np.int64), np.zeros(len(events), np.int64)
        for origin, each in enumerate(atoms):
            mine = events[:, ORIGIN] == origin
            first = events[mine, FIRST]
            low[mine], high[mine] = np.searchsorted(each.start, first), np.searchsorted(each.start, first + events[mine, COUNT])
            missing = high[mine] == low[mine]
            if missing.any():
                at = np.flatnonzero(mine)[missing]
                low[at], high[at] = -1, 0
        count = high - low
        parts = np.repeat(events, count, axis=0)
        step = np.arange(len(parts)) - np.repeat(np.cumsum(count) - count, count)
        number = np.repeat(low, count) + step
        for origin, each in enumerate(atoms):
            mine = (parts[:, ORIGIN] == origin) & (number >= 0)
            parts[mine, LAMPORT] += each.start[number[mine]] - parts[mine, FIRST]
        parts[:, FIRST] = np.where(number >= 0, number, -1 - parts[:, FIRST])
        return parts

    def _rows(self, atoms: Sequence[Atoms]) -> kernel.Messages:
        members = self._members
        counts = np.array([len(each.start) for each in atoms], np.int64)
        old = np.array([each.old for each in atoms], np.int64)
        first_row = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        total = int(first_row[-1])
        status, vector = np.zeros((total, members), np.int8), np.zeros((total, members), np.int32)
        seq = np.concatenate([np.arange(count) for count in counts]).astype(np.int64)
        view = np.concatenate([each.view for each in atoms]).astype(np.int32) if self._views else np.empty(0, np.int32)
        for origin, each in enumerate(atoms):
            at, flying = int(first_row[origin]), self._flying[origin]
            status[at : at + each.old] = flying.status[each.part_of]
            for other in range(members):
                known = flying.vector[each.part_of, other]
                vector[at : at + each.old, other] = np.searchsorted(atoms[other].start, known)
            # An atom is preceded by all earlier atoms of its origin.
            vector[at : at + each.old, origin] = np.arange(each.old)
            for dests in np.unique(each.dests):
                rows = at + each.old + np.flatnonzero(each.dests == dests)
                to = np.arange(members) if dests < 0 else self._dests[int(dests)]
                status[np.ix_(rows, to[to < members])] = kernel.OWED
        return kernel.Messages(first_row, old, counts - old, old, seq, status, vector, np.full(total, -1, np.int64), view)

    def _logs(self, parts: Sequence[np.ndarray], messages: kernel.Messages) -> kernel.Logs:
        start = np.concatenate(([0], np.cumsum([len(each) for each in parts]))).astype(np.int64)
        every = np.concatenate(parts)
        view = every[:, IN_VIEW].astype(np.int32) if len(messages.in_view) or self._views else np.empty(0, np.int32)
        return kernel.Logs(
            start, every[:, K].astype(np.int8), every[:, ORIGIN].astype(np.int32), every[:, FIRST].copy(),
            every[:, LAMPORT].copy(), view,
        )  # fmt: skip

    def _state(self, atoms: Sequence[Atoms], messages: kernel.Messages) -> kernel.State:
        known = np.zeros((self._members, self._members), np.int32)
        for origin, each in enumerate(atoms):
            known[:, origin] = np.searchsorted(each.start, self._known[:, origin])
        state = kernel.new_state(self._members, messages.first_row, known)
        state.in_view[:] = self._view
        return state

    def _note(self, found: kernel.Found, foreign: int, atoms: Sequence[Atoms]) -> None:
        tallies = self.found

        def number(origin: int, atom: int) -> int:
            return int(atoms[origin].start[atom]) if 0 <= atom < len(atoms[origin].start) else atom

        for order, tally in ((kernel.FIFO, tallies.fifo), (kernel.CAUSAL, tallies.causal)):
            blocks = np.flatnonzero(found.late[:, order])
            if len(blocks):
                _, process, origin, atom, missing, missing_atom = found.first_late[blocks[0], order].tolist()
                before = (missing, number(missing, missing_atom))
                tally.add(int(found.late[:, order].sum()), Wrong(process, origin, number(origin, atom), before))
        if found.breaches.any():
            _, process, origin, atom, kind = found.first_breach.tolist()
            tallies.integrity.add(int(found.breaches.sum()), Wrong(process, origin, number(origin, atom), kind=kind))
        if foreign:
            # A settled message is delivered nowhere any more, so this one is delivered again, or nobody sent it.
            _, process, origin, atom = found.foreign[0].tolist()
            tallies.integrity.add(foreign, Wrong(process, origin, -1 - atom, kind=kernel.PHANTOM))

    def _keep(self, messages: kernel.Messages, state: kernel.State, atoms: Sequence[Atoms]) -> None:
        """Settle the messages that nobody can deliver any more, and keep the rest in flight, under message numbers."""
        in_flight = np.zeros(len(messages.seq), np.bool_)
        live = np.array(self._live, np.bool_)
        settled = settle(messages, state.in_view, live | self._views, self._bound(atoms), live, in_flight)
        if settled.lost:
            origin = int(np.searchsorted(messages.first_row, settled.row, side="right")) - 1
            seq = int(atoms[origin].start[settled.row - messages.first_row[origin]])
            self.found.agreement.add(settled.lost, Wrong(settled.process, origin, seq, other=settled.because_of))
        if settled.in_flight > IN_FLIGHT_MAX:
            self.why = "too much is in flight"
            return
        ends = [np.concatenate(([0], each.end)) for each in atoms]
        for origin, each in enumerate(atoms):
            at = int(messages.first_row[origin])
            rows = np.flatnonzero(in_flight[at : at + len(each.start)])
            vector = np.stack(
                [ends[other][messages.vector[at + rows, other]] for other in range(self._members)], axis=1
            ) if len(rows) else np.empty((0, self._members), np.int64)  # fmt: skip
            self._flying[origin] = InFlight(each.start[rows], each.end[rows], messages.status[at + rows].copy(), vector)
            self._known[:, origin] = np.maximum(self._known[:, origin], ends[origin][state.known[:, origin]])

    def _bound(self, atoms: Sequence[Atoms]) -> Bound:
        if not self._views:
            nobody = np.empty((0, self._members), np.bool_)
            return Bound(nobody, nobody)
        highest = max((int(each.view.max()) for each in atoms if len(each.view)), default=0)
        receivers = np.zeros((highest + 1, self._members), np.bool_)
        for view, process in self._receivers:
            if view <= highest:
                receivers[view, process] = True
        return Bound(receivers, receivers)

    def _follow_total(self, taken: Sequence[np.ndarray]) -> None:
        assert self._total is not None
        flying = [(each.start, each.end) for each in self._flying]
        disagreement = self._total.follow(taken, flying)
        if disagreement is not None:
            one, other, before, after = disagreement
            self.found.total.add(1, Wrong(one, after[0], after[1], before, other=other))


def _union(starts: np.ndarray, ends: np.ndarray) -> list[tuple[int, int]]:
    """The union of these ranges, as disjoint ranges in order."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(zip(starts.tolist(), ends.tolist(), strict=True)):
        if end <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found
