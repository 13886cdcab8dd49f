"""The HTML around the space-time diagram: its controls, its legend and its keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Sequence

from quire.report.html import Html, join, tag

Button = tuple[str, str, str]
"""Its name, its text, and what it does."""

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
ADVICE = "Select a message to see what it depends on, what depends on it, and what it waited for."
_LABEL = "Space-time diagram: members are lines, messages are arrows"


def section(lead: str, *buttons: Button) -> Html:
    """`buttons`: further ones, after those that every diagram has."""
    canvas = tag("canvas", id="diagram", tabindex=0, role="application", aria_describedby="in-view keys", aria_label=_LABEL)
    return tag(
        "section",
        tag("h2", "Space and time"),
        tag("p", lead, class_="lead", id="diagram-lead"),
        tag("noscript", tag("p", "The diagram needs JavaScript, which is in this file; nothing is loaded from elsewhere.")),
        _toolbar(buttons),
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


def _toolbar(further: Sequence[Button]) -> Html:
    search = tag(
        "input",
        type="search",
        id="search",
        placeholder="Find 1:17, member 3, a name …",
        autocomplete="off",
        aria_label="Search",
    )
    buttons = (
        tag("button", text, id=name, type="button", title=title, aria_label=title)
        for name, text, title in (*_BUTTONS, *further)
    )
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
