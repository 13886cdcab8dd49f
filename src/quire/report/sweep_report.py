"""The report of a sweep: its figures, with the claims they are compared to, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from quire.report.charts import Across, Point, Series, line_chart
from quire.report.formatting import count, number
from quire.report.html import Html, join, table, tag
from quire.report.page import page
from quire.sweep.experiments.contract import Experiment
from quire.sweep.figures import Claim, Figure, label
from quire.sweep.store import StoredSweep, open_sweep

_FAILURES_SHOWN = 20
_LABEL_MAX = 38
"""Letters that fit beside a chart."""


class Measured(NamedTuple):
    """All seeds of one point of a series."""

    mean: float
    low: float
    high: float
    seeds: int


Curves = dict[str, dict[float, Measured]]


def report_sweep(directory: Path) -> str:
    """The page for the sweep in this directory; raises BadInput in one sentence if there is none."""
    stored = open_sweep(directory)
    file = stored.grid.file
    figures = file.figure or _usual_figures(stored)
    return page(
        f"{file.title} · Quire",
        _header(stored),
        *(_figure(figure, stored) for figure in figures),
        _failures(stored.errors),
        _what_was_measured(stored, directory),
    )


def curves(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> Curves:
    """The series of a figure: for each its points, all seeds together."""
    values: dict[str, dict[float, list[float]]] = {}
    quantities = figure.quantities()
    for row in rows:
        x = row[figure.x]
        if not figure.takes(row) or isinstance(x, str):
            continue
        for quantity in quantities:
            if row.get(quantity) is not None:
                names = [label(row[figure.by])] if figure.by else []
                names += [quantity] if len(quantities) > 1 or not figure.by else []
                values.setdefault(" · ".join(names), {}).setdefault(float(x), []).append(float(row[quantity]))
    return {
        name: {x: Measured(fmean(each), min(each), max(each), len(each)) for x, each in sorted(points.items())}
        for name, points in values.items()
    }


def agrees(claim: Claim, measured: Measured) -> bool:
    """Whether what was measured is within the claim's tolerance; rounding in the sum of many seeds is forgiven."""
    return abs(measured.mean - claim.y) <= claim.tolerance * abs(claim.y) + 1e-9


def _header(stored: StoredSweep) -> Html:
    file, cells = stored.grid.file, stored.grid.cells
    facts = [
        stored.grid.experiment.summary,
        count(len(cells), "cell"),
        f"{len(stored.rows):,} measured",
        f"Quire {stored.quire}",
    ]
    sign = tag("span", "?", class_="sign-big", aria_hidden="true")
    unfinished = "This sweep is not finished: the same command resumes it"
    return tag(
        "header",
        tag("p", "Quire", tag("span", "report of a sweep"), class_="mark-line"),
        tag("h1", file.title),
        tag("ul", *(tag("li", fact) for fact in facts), class_="facts"),
        tag("p", file.about, class_="lead") if file.about else None,
        tag("p", f"After: {file.source}.", class_="lead") if file.source else None,
        None if len(stored.rows) == len(cells) else tag("p", sign, unfinished, class_="banner undecided"),
    )


def _axis(experiment: Experiment, name: str) -> str:
    quantity = experiment.quantity(name)
    words = name.replace("_", " ")
    if quantity is not None:
        whole = f"{words} ({quantity.unit})"
        return whole if quantity.unit and quantity.unit not in words and len(whole) <= _LABEL_MAX else words
    return "load (messages/s of each sender)" if name == "load" else words


def _figure(figure: Figure, stored: StoredSweep) -> Html:
    experiment = stored.grid.experiment
    found = curves(figure, stored.rows)
    quantities = figure.quantities()
    if not found:
        return tag("section", tag("h2", figure.title), tag("p", "Nothing has been measured yet.", class_="lead"))
    short = _short_names(list(found))
    series = [
        Series(
            name=short[name],
            points=tuple(Point(x, each.mean, each.low, each.high, _says(short[name], x, each)) for x, each in points.items()),
            claims=tuple(
                Point(claim.x, claim.y, says=f"{_who(claim)}: {number(claim.y)} at {number(claim.x)}")
                for claim in figure.claim
                if _series_of(claim, found) == name
            ),
        )
        for name, points in found.items()
    ]
    y_label = _axis(experiment, quantities[0]) if len(quantities) == 1 else _common_unit(experiment, quantities)
    chart = line_chart(
        series,
        title=figure.title,
        x_label=figure.x_label or _axis(experiment, figure.x),
        y_label=y_label,
        log_x=figure.log_x,
        log_y=figure.log_y,
        across=[Across(line.y, line.label) for line in figure.line],
    )
    return tag(
        "section",
        tag("h2", figure.title),
        tag("div", chart, _said(figure), class_="beside"),
        _comparison(figure, found),
    )


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """The names without the words that all of them have."""
    common = set.intersection(*(set(name.split()) for name in names)) if len(names) > 1 else set()
    return {name: " ".join(word for word in name.split() if word not in common) or name for name in names}


def _says(name: str, x: float, each: Measured) -> str:
    spread = f"{count(each.seeds, 'seed')}, {number(each.low)} to {number(each.high)}"
    return f"{name} at {number(x)}: {number(each.mean)} ({spread})"


def _common_unit(experiment: Experiment, names: Sequence[str]) -> str:
    units = {quantity.unit for name in names if (quantity := experiment.quantity(name)) is not None}
    return units.pop() if len(units) == 1 else "value"


def _series_of(claim: Claim, found: Curves) -> str:
    return claim.series or next(iter(found), "")


def _who(claim: Claim) -> str:
    return "the paper" if claim.says == "paper" else "corrected"


def _said(figure: Figure) -> Html | None:
    if not figure.paper and not figure.truth:
        return None
    return tag(
        "div",
        join(tag("h3", "The paper says"), tag("p", figure.paper)) if figure.paper else None,
        join(tag("h3", "What is true"), tag("p", figure.truth)) if figure.truth else None,
        tag(
            "p",
            "Diamonds are claimed, filled marks are measured: the mean of all seeds. The shade is the range.",
            class_="hint",
        ),
        class_="said",
    )


def _comparison(figure: Figure, found: Curves) -> Html | None:
    if not figure.claim:
        return None
    rows: list[tuple[object, ...]] = []
    agree = 0
    for claim in figure.claim:
        name = _series_of(claim, found)
        measured = found.get(name, {}).get(claim.x)
        if measured is None:
            rows.append((name, number(claim.x), number(claim.y), _who(claim), "not measured", "", ""))
            continue
        fits = agrees(claim, measured)
        agree += fits
        off = f"{(measured.mean - claim.y) / claim.y * 100:+.1f} %" if claim.y else number(measured.mean)
        verdict = tag("span", "✓ agrees" if fits else "✗ differs", class_=f"badge {'holds' if fits else 'violated'}")
        rows.append((name, number(claim.x), number(claim.y), _who(claim), number(measured.mean), off, verdict))
    head = ("series", figure.x.replace("_", " "), "claimed", "by", "measured", "difference", "")
    return tag(
        "details",
        tag("summary", f"{agree} of {len(figure.claim)} claims agree with what was measured"),
        table(head, rows, numeric=frozenset({1, 2, 4, 5})),
        open=agree < len(figure.claim),
    )


def _usual_figures(stored: StoredSweep) -> tuple[Figure, ...]:
    """For a grid that names no figures: some quantities against the first setting with several numbers."""
    rows, experiment = stored.rows, stored.grid.experiment
    names = [name for name in experiment.cell.__struct_fields__ if name != "seed"]
    varied = [name for name in names if len({row[name] for row in rows}) > 1]
    numeric = [name for name in varied if not isinstance(rows[0][name], str)]
    if not numeric:
        return ()
    by = next((name for name in varied if name != numeric[0]), "")
    fixed = {name: rows[0][name] for name in varied if name not in (numeric[0], by)}
    measured = [quantity for quantity in experiment.quantities if quantity.unit]
    return tuple(
        Figure(title=quantity.summary[:1].upper() + quantity.summary[1:], x=numeric[0], y=quantity.name, by=by, where=fixed)
        for quantity in measured[:6]
    )


def _failures(errors: Mapping[str, str]) -> Html | None:
    if not errors:
        return None
    rows: list[tuple[object, ...]] = list(errors.items())
    return tag(
        "section",
        tag("h2", "Cells that failed"),
        tag("p", f"{count(len(errors), 'cell')} failed and will be tried again by the same command.", class_="lead"),
        table(("cell", "because"), rows[:_FAILURES_SHOWN]),
    )


def _what_was_measured(stored: StoredSweep, directory: Path) -> Html:
    rows: list[tuple[object, ...]] = []
    usual = stored.grid.experiment.cell()
    for name in usual.__struct_fields__:
        values = list(dict.fromkeys(label(getattr(cell, name)) for cell in stored.grid.cells.values()))
        if values == [label(getattr(usual, name))]:
            continue
        shown = ", ".join(values) if len(values) <= 24 else f"{', '.join(values[:3])} … {values[-1]} ({len(values)} values)"
        rows.append((name, shown))
    return tag(
        "section",
        tag("h2", "What was measured"),
        table(("setting", "values"), rows),
        tag("p", f"Other settings have their defaults. Everything is in {directory.name}/results, as Parquet.", class_="lead"),
        id="what-ran",
    )
