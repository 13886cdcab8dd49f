"""View events for the diagram: those in the window, and the state of each member where the window begins."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.pipeline.columns import kinds, numbers
from quire.pipeline.layout import Layout, RowGroup
from quire.pipeline.reading import TraceReader
from quire.report.window import Window
from quire.trace.kinds import VIEW
from quire.trace.views import ViewEvent

_COLUMNS = ("kind", "process", "pos", "seq", "dests", "object", "op", "txn")
_KNOWN = frozenset(each.value for each in ViewEvent)
_BOUNDS = {
    ViewEvent.CUT: "cut",
    ViewEvent.HEALED: "cut",
    ViewEvent.BLOCKED: "block",
    ViewEvent.UNBLOCKED: "block",
}
"""Which events begin and end which kind of section on a member's line; all others belong to a stay in a view."""


class Happened(msgspec.Struct, frozen=True):
    process: int
    pos: int
    op: str
    number: int
    """The number of the view."""
    text: str
    """For an installed view, its members; for a restart, how many messages were kept."""
    incarnation: str
    others: tuple[int, ...]
    """The members of an installed view; or those from which the process is cut off, or that it can reach again."""


def read_happenings(run: str, groups: Sequence[RowGroup]) -> list[Happened]:
    """Read all view events in these row groups."""
    found = []
    with TraceReader(run) as reader:
        for _, table in reader.read_each(groups, _COLUMNS):
            rows = table.take(np.flatnonzero(kinds(table["kind"]) == VIEW))
            seq = numbers(rows, "seq")[0].tolist()
            for number, row in zip(seq, rows.to_pylist(), strict=True):
                if row["op"] in _KNOWN:
                    others = tuple(row["dests"] or ())
                    text, incarnation = row["object"] or "", row["txn"] or ""
                    found.append(Happened(row["process"], row["pos"], row["op"], number, text, incarnation, others))
    return found


def within(window: Window, found: Sequence[Happened]) -> list[Happened]:
    """The events in the window and, for each member drawn, the last event of each kind before it."""
    process, pos = (numbers(window.marks.rows, name)[0] for name in ("process", "pos"))
    shown: list[Happened] = []
    for member in window.members:
        own = np.flatnonzero(process == member)
        first = int(pos[own].min()) if len(own) else 0
        last = int(window.marks.last_pos[own].max()) if len(own) else -1
        earlier: dict[str, Happened] = {}
        for each in found:
            if each.process == member and each.pos < first:
                earlier[_BOUNDS.get(ViewEvent(each.op), "stay")] = each
        shown += sorted(earlier.values(), key=lambda each: each.pos)
        shown += [each for each in found if each.process == member and first <= each.pos <= last]
    return shown


def ended(window: Window, layout: Layout) -> list[int]:
    """The crashed processes whose last event is in the window."""
    process = numbers(window.marks.rows, "process")[0]
    lasts = {group.process: group.first_pos + group.rows - 1 for group in layout.groups}
    return [
        member
        for member in layout.world.crashed
        if len(own := np.flatnonzero(process == member)) and int(window.marks.last_pos[own].max()) == lasts[member]
    ]
