"""The space-time diagram of a window of a trace: the data that the page's script draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from quire.pipeline.columns import numbers
from quire.report import space_time
from quire.report.html import Html
from quire.report.incidents import Happened
from quire.report.marks import NAMES
from quire.report.order import Event, steps
from quire.report.window import Window
from quire.trace.schema import TEXT

_OFFSETS_MAX = 50_000
"""How many messages in marks of several get their individual times; for further ones, the page knows only the mark's range."""


def data(
    window: Window, happened: Sequence[Happened] = (), ended: Sequence[int] = (), hosts: Sequence[str] = ()
) -> dict[str, Any]:
    """The window as plain lists for the page: one value per mark, with names as indices into a list; the view events; and the
    crashed members whose end is drawn."""
    marks, rows = window.marks, window.marks.rows
    process, origin, seq = (numbers(rows, name)[0].tolist() for name in ("process", "origin", "seq"))
    lamport, ordered = numbers(rows, "lamport")
    time, timed = numbers(rows, "time_ns")
    clocked = bool(len(rows)) and bool(timed.all()) and bool(numbers(window.packets, "time_ns")[1].all())
    at = (time if clocked or not ordered.all() else lamport).tolist()
    start = int(time.min()) if clocked else 0
    events = zip(process, marks.kind.tolist(), origin, seq, at, marks.count.tolist(), strict=True)
    return {
        "members": list(window.members),
        "hosts": [hosts[member] for member in window.members] if hosts else None,
        "process": process,
        "kind": marks.kind.tolist(),
        "origin": origin,
        "seq": seq,
        "count": marks.count.tolist(),
        "cut": marks.cut.tolist(),
        "pos": numbers(rows, "pos")[0].tolist(),
        "last_pos": marks.last_pos.tolist(),
        "time": (time - start).tolist() if clocked else None,
        "until": (marks.until_ns - start).tolist() if clocked else None,
        "offsets": _offsets(window) if clocked else {},
        "step": steps([Event(*event) for event in events]),
        "bytes": marks.payload_bytes.tolist(),
        "dests": [None if dests is None else len(dests) for dests in rows["dests"].to_pylist()],
        "names": {name: _names(rows, name) for name in (*NAMES, TEXT) if name in rows.column_names},
        "incidents": happened,
        "ended": ended,
        "packets": {
            "process": numbers(window.packets, "process")[0].tolist(),
            "pos": numbers(window.packets, "pos")[0].tolist(),
            "time": (numbers(window.packets, "time_ns")[0] - start).tolist() if clocked else None,
            "name": _names(window.packets, "packet"),
        },
    }


def _offsets(window: Window) -> dict[int, list[int]]:
    """By mark, the times of its messages relative to the first, up to the limit."""
    known: dict[int, list[int]] = {}
    left = _OFFSETS_MAX
    for mark, offsets in enumerate(window.marks.offsets_ns):
        if offsets is not None and len(offsets) <= left:
            known[mark] = offsets
            left -= len(offsets)
    return known


def _names(rows: pa.Table, column: str) -> dict[str, Any] | None:
    """The distinct names in a column, and each row's index into them (-1 for none); None if the column has no names."""
    values: Any = rows[column].combine_chunks()
    if not isinstance(values, pa.DictionaryArray):
        values = values.dictionary_encode()
    if values.null_count == len(values):
        return None
    return {"names": values.dictionary.to_pylist(), "of": values.indices.fill_null(-1).to_pylist()}


def section(window: Window) -> Html:
    return space_time.section(f"Showing {window.description}. {space_time.ADVICE}")
