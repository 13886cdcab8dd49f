"""The verdict that keeps up against the audit, on random groups that change: the same is found, however the run is cut."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np

from quire.pipeline.auditing.following import COLUMNS, Follower
from quire.trace.kinds import DELIVER, SEND, VIEW
from quire.trace.views import VIEW_BITS
from tests.audit import view_oracle
from tests.audit.traces import Trace
from tests.audit.view_traces import Group
from tests.kit.effort import runs

TRACES = runs(300, 3000)
NOT_FOLLOWED = {"jump", "other members", "outside", "elsewhere", "no sessions", "sent again"}
"""Faults of views and sessions themselves, which are left to the audit."""


class WithoutRestarts(Group):
    def resume(self, p: int) -> None:
        """With one, judging begins anew."""


class Followed:
    """A follower that hears the logs of a trace bit by bit."""

    def __init__(self, trace: Trace) -> None:
        self.follower = Follower(views=True, total=True)
        self._trace = trace
        self._sent_in: dict[tuple[int, int], int] = {}
        self._addresses: dict[tuple[int, ...], int] = {}
        self._handed = [0] * len(trace.logs)
        self._in_view = [(-1, "")] * len(trace.logs)
        for process, log in enumerate(trace.logs):
            self.follower.add_process()
            view = -1
            for event in log:
                view = event.seq if event.op == "install" else view
                if event.kind == "send":
                    self._sent_in[process, event.seq] = view

    def hear(self, process: int, until: int) -> None:
        log, clocks, rows = self._trace.logs[process], self._trace.clocks[process], []
        while self._handed[process] < len(log) and (clock := clocks[self._handed[process]] or 0) <= until:
            event = log[self._handed[process]]
            self._handed[process] += 1
            view, life = self._in_view[process]
            if event.op == "install":
                if view >= 0 and life == event.txn:
                    self.follower.survived(process, view)
                self._in_view[process] = event.seq, event.txn or ""
                rows.append((VIEW, -1, 0, 1, clock, -1, event.seq))
            elif event.kind in ("send", "deliver"):
                number = self._sent_in[event.origin, event.seq] << VIEW_BITS | event.seq
                kind, dests = (SEND, self._address(event.dests or ())) if event.kind == "send" else (DELIVER, -1)
                rows.append((kind, event.origin, number, 1, clock, dests, view))
        self.follower.take(process, np.array(rows, np.int64).reshape(-1, COLUMNS), until)

    def _address(self, dests: tuple[int, ...]) -> int:
        if dests not in self._addresses:
            self._addresses[dests] = self.follower.address(dests)
        return self._addresses[dests]


def disagree(trace: Trace) -> bool:
    """Whether two processes deliver two messages in opposite orders."""
    orders = [list(dict.fromkeys((e.origin, e.seq) for e in log if e.kind == "deliver")) for log in trace.logs]
    return any(
        [message for message in one if message in other] != [message for message in other if message in one]
        for one, other in combinations(orders, 2)
    )


def test_the_same_is_found_as_by_the_audit_however_the_run_is_cut() -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        rng = random.Random(seed)
        group = WithoutRestarts(rng)
        group.faults -= NOT_FOLLOWED
        trace = group.run()
        whole = view_oracle.orders(trace.logs, trace.crashed)
        assert whole is not None
        followed = Followed(trace)
        last = max((clock or 0 for clocks in trace.clocks for clock in clocks), default=0)
        for until in (*sorted(rng.randrange(last + 1) for _ in range(rng.randint(0, 6))), 1 << 40):
            for process in range(len(trace.logs)):
                followed.hear(process, until)
            while followed.follower.advance():
                pass
        found = followed.follower.found
        for name in ("integrity", "fifo", "causal"):
            assert (getattr(found, name).count > 0) == (getattr(whole, name) > 0), f"seed {seed}: {name}"
            seen[name] += getattr(whole, name) > 0
        assert (found.total.count > 0) == disagree(trace), f"seed {seed}: total"
        seen["total"] += disagree(trace)
        # Who went on without a message is blamed at once, though it may crash later. Of the last view nobody has gone on yet.
        blamed = found.agreement.first
        assert blamed is None or whole.agreement or trace.crashed, f"seed {seed}: {blamed}"
        seen["agreement"] += blamed is not None and whole.agreement > 0
        seen["clean"] += not any(whole)
    assert min(seen[name] for name in ("integrity", "fifo", "causal", "total", "agreement", "clean")) >= TRACES // 100, seen
