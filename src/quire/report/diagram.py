"""The space-time diagram: the data that the page's script draws, and the controls around the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from quire.pipeline.columns import numbers
from quire.report.happenings import Happened
from quire.report.html import Html, join, tag
from quire.report.marks import NAMES
from quire.report.order import Event, steps
from quire.report.window import Window

_OFFSETS_MAX = 50_000
"""Of so many messages in marks with others the page knows when each was sent or delivered; of further ones only a range."""
_BUTTONS = (
    ("zoom-out", "−", "Zoom out (−)"),
    ("zoom-in", "+", "Zoom in (+)"),
    ("fit", "Fit", "Show everything (0)"),
    ("axis", "By time", "Switch between order and time (T)"),
    ("packets", "Packets", "Show packets (P)"),
    ("close", "Close runs", "Draw consecutive messages as one mark again (C)"),
)
_LEGEND = (
    ("send", "sent"),
    ("deliver", "delivered"),
    ("receive", "received"),
    ("held", "held back"),
    ("run", "n consecutive messages"),
    ("other", "other event"),
    ("install", "in a view"),
    ("crash", "crashed"),
    ("excluded", "excluded"),
    ("left", "left"),
    ("resume", "restarted"),
    ("blocked", "waits for a majority"),
    ("cut", "cut off from others"),
    ("chosen", "selected"),
    ("past", "its causal past"),
    ("future", "its causal future"),
    ("awaited", "waited for"),
)
_SIGNS = {"run": "n", "crash": "✕", "excluded": "⊘", "left": "☐", "resume": "▷", "blocked": "‖", "cut": "//"}
_KEYS = (
    (("←", "→"), "along a member"),
    (("↑", "↓"), "to another member"),
    (("Enter",), "select, then open"),
    (("+", "−"), "zoom"),
    (("0",), "fit"),
    (("/",), "search"),
    (("Esc",), "clear"),
)
_ADVICE = "Select a message to see what it depends on, what depends on it, and what it waited for."
_LABEL = "Space-time diagram: members are lines, messages are arrows"


def data(window: Window, happened: Sequence[Happened] = (), ended: Sequence[int] = ()) -> dict[str, Any]:
    """The window as plain lists for the page: one value a mark, names by their number in a list of names; what happened to
    members of views; and of whom the end is drawn, because they crashed."""
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
        "names": {name: _names(rows, name) for name in NAMES},
        "happenings": happened,
        "ended": ended,
        "packets": {
            "process": numbers(window.packets, "process")[0].tolist(),
            "pos": numbers(window.packets, "pos")[0].tolist(),
            "time": (numbers(window.packets, "time_ns")[0] - start).tolist() if clocked else None,
            "name": _names(window.packets, "packet"),
        },
    }


def _offsets(window: Window) -> dict[int, list[int]]:
    """By the number of the mark, the times of its messages after its first, as far as they are not too many."""
    known: dict[int, list[int]] = {}
    left = _OFFSETS_MAX
    for mark, offsets in enumerate(window.marks.offsets_ns):
        if offsets is not None and len(offsets) <= left:
            known[mark] = offsets
            left -= len(offsets)
    return known


def _names(rows: pa.Table, column: str) -> dict[str, Any] | None:
    """The names in a column, and for each row the number of its own, -1 for none; None where there are none at all."""
    values: Any = rows[column].combine_chunks()
    if values.null_count == len(values):
        return None
    return {"names": values.dictionary.to_pylist(), "of": values.indices.fill_null(-1).to_pylist()}


def section(window: Window) -> Html:
    lead = f"Showing {window.description}. {_ADVICE}"
    canvas = tag("canvas", id="diagram", tabindex=0, role="application", aria_describedby="in-view keys", aria_label=_LABEL)
    return tag(
        "section",
        tag("h2", "Space and time"),
        tag("p", lead, class_="lead"),
        tag("noscript", tag("p", "The diagram needs JavaScript, which is in this file; nothing is loaded from elsewhere.")),
        _toolbar(),
        tag(
            "div",
            tag("div", canvas, class_="stage"),
            tag("aside", id="details", aria_live="polite"),
            class_="diagram-and-details",
        ),
        tag("p", id="in-view", class_="hidden"),
        tag(
            "ul",
            *(
                tag("li", tag("i", _SIGNS.get(sign), class_=f"sign {sign}"), text, class_=f"of-{sign}")
                for sign, text in _LEGEND
            ),
            class_="legend",
        ),
        _keys(),
        id="space-time",
    )


def _beside(canvas: Html) -> Html:
    """The drawing, and beside it what is said about the selected messages."""
    details = tag("aside", id="details", aria_live="polite")
    return tag("div", tag("div", canvas, class_="stage"), details, class_="diagram-and-details")


def _toolbar() -> Html:
    search = tag(
        "input",
        type="search",
        id="search",
        placeholder="Find 1:17, member 3, a name …",
        autocomplete="off",
        aria_label="Search",
    )
    buttons = (tag("button", text, id=name, type="button", title=title, aria_label=title) for name, text, title in _BUTTONS)
    return tag(
        "div",
        tag("div", search, class_="search"),
        tag("output", id="found", for_="search"),
        tag("div", *buttons, class_="buttons"),
        class_="toolbar",
    )


def _keys() -> Html:
    said = [join(*(join(tag("kbd", key), " ") for key in keys), what, " · ") for keys, what in _KEYS]
    return tag("p", *said, "drag to move, Ctrl and wheel or pinch to zoom", id="keys", class_="keys")
