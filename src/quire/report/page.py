"""The HTML page of a report: a self-contained file, whose content security policy allows nothing else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from importlib import resources

import msgspec

from quire.report.html import Html, clean, join, tag

STYLES = ("page.css", "diagram.css")
THEME = ("theme.js",)
DIAGRAM = ("model.js", "layout.js", "colours.js", "frame.js", "views.js", "view.js", "panel.js", "diagram.js")


def page(title: str, *sections: object, data: object = None) -> str:
    """A whole document. `data` is what the diagram draws; without it no script but that of the colours is there."""
    scripts = THEME if data is None else (*THEME, *DIAGRAM, "start.js")
    given = None if data is None else tag("script", _json(data), type="application/json", id="data")
    return document(title, *sections, given, styles=map(asset, STYLES), scripts=map(asset, scripts))


def document(
    title: str,
    *sections: object,
    styles: Iterable[str],
    scripts: Iterable[str],
    listens: bool = False,
    skip: str = "the report",
) -> str:
    """A document of these parts, with these styles and scripts and no others. `listens`: whether it may ask the server that it
    came from; it never asks anybody else."""
    style = "\n".join(styles)
    script = "\n".join(['"use strict";', "(() => {", *scripts, "})();"])
    connect = "; connect-src 'self'" if listens else ""
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        f"base-uri 'none'; form-action 'none'{connect}"
    )
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", name="generator", content="quire"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Html(style)),
    )
    *shown, last = sections
    body = join(
        tag("a", f"Skip to {skip}", href="#report", class_="skip"),
        tag("main", *shown, id="report"),
        last,
        tag("script", Html(script)),
    )
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}</body>\n</html>\n'


def asset(name: str, package: str = "quire.report") -> str:
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _json(data: object) -> Html:
    """JSON that can stand in a page: nothing in it ends the element that holds it."""
    text = clean(msgspec.json.encode(data).decode())
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
