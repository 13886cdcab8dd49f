"""The last events of the watched processes as the page's space-time diagram, which asks for them while it is in sight."""

from __future__ import annotations

from typing import Any

from quire.report.order import Event, steps
from quire.trace.kinds import VIEW
from quire.watch.member import WatchedProcess
from quire.watch.recent import MARKS_MAX, Mark
from quire.watch.scene import Scene

DRAWN_MAX = 12
"""The most processes in the diagram: more would be hard to tell apart."""
MARKS_DRAWN = 420


def can_be_drawn(process: WatchedProcess) -> bool:
    return process.process is not None and bool(process.recent.marks)


def diagram(scene: Scene) -> dict[str, Any] | None:
    """The last events, in the format of the report's diagram; None if no process provides any."""
    processes = list(scene.processes.values())
    drawn = [each for each in processes if can_be_drawn(each)]
    drawn = sorted(drawn, key=lambda each: -each.recent.marks[-1].time_ns)[:DRAWN_MAX]
    drawn.sort(key=processes.index)
    if not drawn:
        return None
    row = {each.process: index for index, each in enumerate(drawn)}
    # Of a process that does much, little time is kept. What others did before that is left out, too; by logical time, because
    # clocks of different hosts may disagree by more.
    since = max((each.recent.marks[0].lamport for each in drawn if len(each.recent.marks) == MARKS_MAX), default=0)
    marks = [(process, mark) for process in drawn for mark in process.recent.marks if mark.lamport >= since]
    marks.sort(key=lambda each: each[1].time_ns)
    marks = marks[-MARKS_DRAWN:]
    marks.sort(key=lambda each: (row[each[0].process], each[1].pos))
    start = min(mark.time_ns for _, mark in marks)

    def origin_of(mark: Mark) -> int:
        return row.get(mark.origin, -1)

    events = [
        Event(row[process.process], mark.kind, origin_of(mark), mark.seq, mark.lamport, mark.count) for process, mark in marks
    ]
    names = [each.name for each in drawn]
    count = len(marks)
    return {
        "members": names,
        "process": [process.name for process, _ in marks],
        "kind": [mark.kind for _, mark in marks],
        "origin": [scene.name_of(mark.origin) for _, mark in marks],
        "seq": [scene.sends.number(mark.origin, mark.seq) if mark.kind != VIEW else mark.seq for _, mark in marks],
        "count": [mark.count for _, mark in marks],
        "cut": [False] * count,
        "pos": [mark.pos for _, mark in marks],
        "last_pos": [mark.pos + mark.count - 1 for _, mark in marks],
        "time": [mark.time_ns - start for _, mark in marks],
        "until": [mark.time_ns - start for _, mark in marks],
        "offsets": {},
        "step": steps(events),
        "bytes": [mark.size for _, mark in marks],
        "dests": [None] * count,
        "names": {},
        "incidents": [_incident(scene, process, mark) for process, mark in marks if mark.incident is not None],
        "ended": [each.name for each in drawn if each.missing],
        "packets": {"process": [], "pos": [], "time": [], "name": None},
        "span": (max(mark.time_ns for _, mark in marks) - start) / 1e9,
    }


def _incident(scene: Scene, process: WatchedProcess, mark: Mark) -> dict[str, Any]:
    assert mark.incident is not None
    op, number, others, _ = mark.incident
    return {
        "process": process.name,
        "pos": mark.pos,
        "op": op,
        "number": number,
        "others": [scene.name_of(other) for other in others],
        "incarnation": "",
        "text": "",
    }
