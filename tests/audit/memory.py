"""Judging a trace without files: the same tasks, with the rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from quire.pipeline.labels import Labelled
from quire.pipeline.layout import Layout, RowGroup, World
from quire.pipeline.slices import Events
from quire.trace.kinds import KINDS, SEND
from tests.audit.traces import Trace


def layout_of(trace: Trace) -> Layout:
    """The layout that the trace's files would have, one row group a process."""
    groups = []
    for process, clocks in enumerate(trace.clocks):
        known = [clock for clock in clocks if clock is not None]
        if clocks:
            low, high = (min(known), max(known)) if known else (None, None)
            groups.append(RowGroup("memory", 0, process, len(clocks), 0, low, high))
    world = World("test", len(trace.logs), tuple(sorted(trace.crashed)))
    return Layout(world, tuple(groups), sum(map(len, trace.logs)), all(group.low is not None for group in groups))


def read_from(trace: Trace) -> Callable[..., Events]:
    """A stand-in for `read_events` that reads this trace."""

    def read(
        world: World, groups: Sequence[RowGroup], low: int | None = None, high: int | None = None,
        *, times: bool = True, dests: bool = True, pos: bool = False, every: bool = False, clock: bool = False,
        numbered: bool = False,
    ) -> Events:  # fmt: skip
        rows, counts, sizes = [], [], []
        flat: list[int] = []
        ordered = True
        wanted = {group.process for group in groups}
        for process, (log, clocks) in enumerate(zip(trace.logs, trace.clocks, strict=True)):
            size = 0
            known = [clock for clock in clocks if clock is not None]
            if process in wanted and (len(known) < len(clocks) or any(a >= b for a, b in pairwise(known))):
                ordered = False
            for at, (event, time) in enumerate(zip(log, clocks, strict=True)):
                kind = KINDS.index(event.kind)
                outside = time is not None and ((low is not None and time < low) or (high is not None and time >= high))
                if process not in wanted or (kind > 1 and not every) or outside:
                    continue
                size += 1
                rows.append((kind, event.origin, event.seq, time or 0, at))
                if kind == SEND:
                    counts.append(-1 if event.dests is None else len(event.dests))
                    flat.extend(event.dests or ())
            sizes.append(size)
        columns = np.array(rows, np.int64).reshape(-1, 5)
        return Events(
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            columns[:, 0].astype(np.int8), columns[:, 1].astype(np.int32), columns[:, 2].copy(), columns[:, 3].copy(),
            columns[:, 4].copy(), np.array(counts, np.int32), np.array(flat, np.int32), ordered, np.empty(0, np.int64),
            any(event.kind == "view" for log in trace.logs for event in log),
            np.zeros(len(columns) if numbered else 0, np.bool_),
        )  # fmt: skip

    return read


def labelled(trace: Trace) -> Labelled:
    """What `read_labelled` would read, with all columns of words."""
    logs = trace.logs
    events = [event for log in logs for event in log]
    clocks = [clock for own in trace.clocks for clock in own]
    codes, words = {}, {}
    for name in ("group", "object", "op", "txn"):
        said = [getattr(event, name) for event in events]
        words[name] = sorted({word for word in said if word is not None})
        codes[name] = np.array([-1 if word is None else words[name].index(word) for word in said], np.int32)
    return Labelled(
        np.concatenate(([0], np.cumsum([len(log) for log in logs]))).astype(np.int64),
        np.array([KINDS.index(event.kind) for event in events], np.int8),
        np.array([event.origin for event in events], np.int32),
        np.array([event.seq for event in events], np.int64),
        np.array([clock or 0 for clock in clocks], np.int64),
        all(clock is not None for clock in clocks) and all(a < b for own in trace.clocks for a, b in pairwise(own)),  # type: ignore[operator]
        codes,
        words,
    )
