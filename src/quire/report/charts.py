"""Draws charts as SVG, coloured by the page's style, and legible without a script and on paper."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quire.report.axes import Scale
from quire.report.html import Html, join, tag

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 14, 46
COLOURS = 8


class Point(msgspec.Struct, frozen=True):
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    says: str = ""
    """What appears when a reader points at it."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    points: tuple[Point, ...]
    claims: tuple[Point, ...] = ()
    marks: bool = True
    filled: bool = False


class Across(msgspec.Struct, frozen=True):
    """A line across the whole chart."""

    y: float
    label: str


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    across: Sequence[Across] = (),
) -> Html:
    """Lines with their ranges, claims as diamonds, and references as dashed lines; a key above if there is more than one.

    A logarithm has no place for zero: such points are left out.
    """
    if log_y:
        series = [msgspec.structs.replace(each, points=tuple(point for point in each.points if point.y > 0)) for each in series]
    every = [point for each in series for point in (*each.points, *each.claims)]
    ys = [bound for point in every for bound in (point.low, point.y, point.high) if bound is not None]
    x = Scale([point.x for point in every], LEFT + 8, WIDTH - RIGHT - 8, log=log_x)
    y = Scale([*ys, *(line.y for line in across)], HEIGHT - BOTTOM, TOP, log=log_y, from_zero=True).widen()
    body = join(
        _grid(x, y),
        *(_across(line, y) for line in across),
        *(_range(each, number, x, y) for number, each in enumerate(series)),
        *(_line(each, number, x, y) for number, each in enumerate(series)),
        _labels(x_label, y_label),
    )
    return tag("figure", _key(series), _svg(body, title), class_="chart")


def bar_chart(bars: Sequence[tuple[float, float, float, str]], *, title: str, x_label: str, y_label: str, log_x: bool) -> Html:
    """Bars from one value to another, of a height, each with what it says when pointed at."""
    x = Scale([edge for low, high, *_ in bars for edge in (low, high)], LEFT, WIDTH - RIGHT, log=log_x)
    y = Scale([height for _, _, height, _ in bars], HEIGHT - BOTTOM, TOP, from_zero=True).widen()
    drawn = [
        tag(
            "rect", tag("title", says), class_="bar", x=x(low) + 0.5, y=y(height),
            width=round(max(x(high) - x(low) - 1, 1.0), 2), height=round(max(y(0) - y(height), 0.0), 2),
        )
        for low, high, height, says in bars
    ]  # fmt: skip
    return tag("figure", _svg(join(_grid(x, y), *drawn, _labels(x_label, y_label)), title), class_="chart")


def _svg(body: Html, title: str) -> Html:
    return tag("svg", tag("title", title), body, view_box=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=title, class_="plot")


def _key(series: Sequence[Series]) -> Html | None:
    if len(series) < 2:
        return None
    return tag(
        "ul",
        *(
            tag("li", tag("svg", _mark(8, 8, number), view_box="0 0 16 16", class_=f"swatch s{number % COLOURS}"), each.name)
            for number, each in enumerate(series)
        ),
        class_="key",
    )


def _grid(x: Scale, y: Scale) -> Html:
    parts: list[Html] = []
    for value, text in y.ticks(5):
        at = y(value)
        parts.append(tag("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at))
        parts.append(tag("text", text, class_="tick", x=LEFT - 8, y=at, dy="0.32em", text_anchor="end"))
    for value, text in x.ticks(6):
        parts.append(tag("text", text, class_="tick", x=x(value), y=HEIGHT - BOTTOM + 18, text_anchor="middle"))
        parts.append(tag("line", class_="axis", x1=x(value), x2=x(value), y1=HEIGHT - BOTTOM, y2=HEIGHT - BOTTOM + 4))
    parts.append(tag("line", class_="axis", x1=LEFT, x2=WIDTH - RIGHT, y1=HEIGHT - BOTTOM, y2=HEIGHT - BOTTOM))
    return join(*parts)


def _labels(x_label: str, y_label: str) -> Html:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return join(
        tag("text", x_label, class_="label", x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 6, text_anchor="middle"),
        tag("text", y_label, class_="label", transform=f"translate(13 {middle}) rotate(-90)", text_anchor="middle"),
    )


def _across(line: Across, y: Scale) -> Html:
    at = y(line.y)
    return join(
        tag("line", class_="across", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at),
        tag("text", line.label, class_="note", x=WIDTH - RIGHT - 4, y=at - 5, text_anchor="end"),
    )


def _range(series: Series, number: int, x: Scale, y: Scale) -> Html | None:
    bounded = [point for point in series.points if point.low is not None and point.high is not None]
    if len(bounded) < 2 or all(point.low == point.high for point in bounded):
        return None
    upper = [f"{x(point.x)},{y(point.high or 0)}" for point in bounded]
    lower = [f"{x(point.x)},{y(point.low or 0)}" for point in reversed(bounded)]
    return tag("polygon", class_=f"range s{number % COLOURS}", points=" ".join([*upper, *lower]))


def _line(series: Series, number: int, x: Scale, y: Scale) -> Html:
    colour = f"s{number % COLOURS}"
    path = " ".join(f"{x(point.x)},{y(point.y)}" for point in series.points)
    parts = [tag("polyline", class_=f"line {colour}", points=path)] if len(series.points) > 1 else []
    if series.filled and len(series.points) > 1:
        first, last = series.points[0], series.points[-1]
        area = f"{x(first.x)},{y(0)} {path} {x(last.x)},{y(0)}"
        parts.insert(0, tag("polygon", class_=f"range {colour}", points=area))
    if series.marks:
        parts += [
            tag("g", tag("title", point.says), _mark(x(point.x), y(point.y), number), class_=f"mark {colour}")
            for point in series.points
        ]
    for claim in series.claims:
        cx, cy = x(claim.x), y(claim.y)
        parts.append(
            tag(
                "path", tag("title", claim.says), class_=f"claim {colour}",
                d=f"M{cx} {round(cy - 7.5, 2)}l7.5 7.5l-7.5 7.5l-7.5 -7.5z",
            )
        )  # fmt: skip
    return join(*parts)


def _mark(x: float, y: float, number: int) -> Html:
    """A shape for each series, so that they can be told apart without colour."""
    match number % 4:
        case 0:
            return tag("circle", cx=x, cy=y, r=3.6)
        case 1:
            return tag("rect", x=round(x - 3.3, 2), y=round(y - 3.3, 2), width=6.6, height=6.6)
        case 2:
            return tag("path", d=f"M{x} {round(y - 4.4, 2)}l4.2 7.4h-8.4z")
        case _:
            return tag("path", d=f"M{x} {round(y + 4.4, 2)}l4.2 -7.4h-8.4z")
