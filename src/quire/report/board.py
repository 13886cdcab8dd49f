"""The place of the diagram on the page: what the script fills, and what a reader can do there."""

from __future__ import annotations

from quire.report.html import Html, join, tag
from quire.report.window import Window

_BUTTONS = (
    ("zoom-out", "−", "Zoom out (−)"),
    ("zoom-in", "+", "Zoom in (+)"),
    ("fit", "Fit", "Show everything (0)"),
    ("axis", "By time", "Change between order and time (T)"),
    ("packets", "Packets", "Show packets (P)"),
)
_LEGEND = (
    ("send", "sent"),
    ("deliver", "delivered"),
    ("receive", "received"),
    ("held", "held back"),
    ("chosen", "chosen"),
    ("past", "its past"),
    ("future", "its future"),
    ("awaited", "waited for"),
)
_KEYS = (
    (("←", "→"), "along a member"),
    (("↑", "↓"), "to another"),
    (("Enter",), "choose"),
    (("+", "−"), "zoom"),
    (("0",), "fit"),
    (("/",), "search"),
    (("Esc",), "clear"),
)
_LABEL = "Space-time diagram: members are lines, messages are arrows"


def section(shown: Window) -> Html:
    lead = f"Shown: {shown.where}. Choose a message to see what it depended on, what depended on it, and what it waited for."
    canvas = tag("canvas", id="diagram", tabindex=0, role="application", aria_describedby="keys", aria_label=_LABEL)
    return tag(
        "section",
        tag("h2", "Space and time"),
        tag("p", lead, class_="lead"),
        tag("noscript", tag("p", "The diagram needs JavaScript, which is in this file; nothing is loaded from elsewhere.")),
        _toolbar(),
        tag("div", tag("div", canvas, class_="stage"), tag("aside", id="details", aria_live="polite"), class_="board"),
        tag(
            "ul",
            *(tag("li", tag("i", class_=f"sign {sign}"), text, class_=f"of-{sign}") for sign, text in _LEGEND),
            class_="legend",
        ),
        _keys(),
        id="space-time",
    )


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
