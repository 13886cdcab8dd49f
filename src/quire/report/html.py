"""Builds HTML safely: all text is escaped, unless it is HTML that was built here."""

from __future__ import annotations

import re
from html import escape

_VOID = frozenset({"meta", "link", "br", "input"})
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
"""Characters that HTML does not allow, or that change the writing direction of the text around them."""


class Html(str):
    """Text that is already HTML, and is not escaped again."""

    __slots__ = ()


def clean(value: object) -> str:
    """Text with a visible mark in place of each character that must not be on a page."""
    return _CONTROL.sub("\ufffd", str(value))


def to_html(value: object) -> Html:
    return value if isinstance(value, Html) else Html(escape(clean(value)))


def join(*parts: object) -> Html:
    """The parts one after the other; None is nothing."""
    return Html("".join(to_html(part) for part in parts if part is not None))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. `class_` is the attribute class, `view_box` is viewBox, `data_x` is data-x; None and False leave one out."""
    written = "".join(
        f" {_attribute(key)}" if value is True else f' {_attribute(key)}="{escape(clean(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def _attribute(key: str) -> str:
    return "viewBox" if key == "view_box" else key.rstrip("_").replace("_", "-")


def table(head: tuple[object, ...], rows: list[tuple[object, ...]], *, numeric: frozenset[int] = frozenset()) -> Html:
    """A table in a box that scrolls by itself where the page is too narrow for it."""

    def cells(name: str, row: tuple[object, ...]) -> Html:
        scope = "col" if name == "th" else None
        return join(
            *(tag(name, cell, class_="number" if index in numeric else None, scope=scope) for index, cell in enumerate(row))
        )

    body = join(*(tag("tr", cells("td", row)) for row in rows))
    return tag("div", tag("table", tag("thead", tag("tr", cells("th", head))), tag("tbody", body)), class_="scroll", tabindex=0)
