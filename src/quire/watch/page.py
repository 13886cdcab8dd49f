"""The HTML of the live page: an empty skeleton, which its script fills with the data that the server sends."""

from __future__ import annotations

from quire.report import space_time
from quire.report.html import Html, join, tag
from quire.report.page import DIAGRAM, STYLES, THEME, asset, document

_OWN_SCRIPTS = ("parts.js", "sight.js", "charts.js", "waits.js", "timeline.js", "cards.js", "verdict.js", "watch.js")
_PAUSE = ("pause", "Pause", "Let the diagram stand still, or move on (Space outside of it)")
_VIEWS = "A bar: the member is in this view. A line: something happened, which is said above; red where a member was lost."


def watch_page() -> str:
    styles = [*map(asset, STYLES), asset("watch.css", "quire.watch")]
    scripts = [*map(asset, (*THEME, *DIAGRAM)), *(asset(name, "quire.watch") for name in _OWN_SCRIPTS)]
    return document(
        "Quire watches",
        _header(),
        _section("verdict", "Verdict so far", _verdict()),
        _section("happened", "What happened", tag("ol", id="incidents", class_="incidents", aria_live="polite")),
        _section("members", "Members", tag("div", id="cards", class_="cards")),
        _section("waiting", "Who waits for whom", tag("div", id="waits")),
        _section(
            "views", "Views over time", tag("p", _VIEWS, class_="lead"), tag("div", id="timeline", class_="scroll", tabindex=0)
        ),
        _section("numbers", "Rates, latencies and queues", _spans(), tag("div", id="charts", class_="charts")),
        _section("links", "Links", tag("div", id="links-body")),
        space_time.section(f"The last events, as they come. {space_time.ADVICE}", _PAUSE),
        None,
        styles=styles,
        scripts=scripts,
        listens=True,
        skip="the page",
    )


def _header() -> Html:
    return tag(
        "header",
        tag("p", "Quire", tag("span", "watches what runs"), class_="mark-line"),
        tag("h1", "…", id="title"),
        tag("ul", id="facts", class_="facts"),
        tag("p", "Connecting …", id="connection", class_="connection", role="status"),
        tag("noscript", tag("p", "This page needs JavaScript, which is in it; nothing is loaded from elsewhere.")),
    )


def _verdict() -> Html:
    """Its headline is read aloud when it changes; the numbers below it change all the time."""
    headline = tag("div", id="headline", aria_live="polite")
    return tag(
        "div", headline, tag("p", id="judged", class_="lead"), tag("div", id="checks", class_="checks"), id="verdict-body"
    )


def _section(name: str, title: str, *parts: Html) -> Html:
    return tag("section", tag("h2", title), *parts, id=name)


def _spans() -> Html:
    buttons = (("minutes", "5 minutes", "true"), ("day", "24 hours", "false"))
    return tag(
        "div",
        join(*(tag("button", text, type="button", id=f"span-{name}", aria_pressed=on) for name, text, on in buttons)),
        class_="spans",
    )
