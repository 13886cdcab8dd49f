"""The verdict section of a report: the audit's checks, with sentences and drawn counterexamples."""

from __future__ import annotations

from quire.pipeline.auditing.verdicts import Audit, Check, LoggedEvent, Verdict
from quire.report.html import Html, join, tag

_SIGNS = {Verdict.HOLDS: "✓", Verdict.VIOLATED: "✗", Verdict.UNDECIDED: "?"}


def section(audit: Audit | None, drawn: dict[str, Html | None]) -> Html:
    if audit is None:
        return tag("section", tag("h2", "Verdict"), tag("p", "This run was not audited.", class_="lead"), id="verdict")
    sign = tag("span", _SIGNS[audit.verdict], class_="sign-big", aria_hidden="true")
    judged = f"{audit.events:,} events and {audit.messages:,} messages were judged."
    return tag(
        "section",
        tag("h2", "Verdict"),
        tag("p", sign, _headline(audit), class_=f"banner {audit.verdict}"),
        tag("p", f"Expected {', '.join(audit.expected)}: {audit.expectation}. {judged}", class_="lead"),
        tag("div", *(_check(audit, guarantee, check, drawn) for guarantee, check in audit.checks.items()), class_="checks"),
        *(
            tag("p", f"Not applicable: {', '.join(names)}, because {reason}.", class_="lead")
            for reason, names in audit.reasons_not_applicable().items()
        ),
        id="verdict",
    )


def _headline(audit: Audit) -> str:
    broken = [guarantee for guarantee in audit.expected if audit.checks[guarantee].verdict == Verdict.VIOLATED]
    if broken:
        return f"Violated: {', '.join(broken)}"
    open_ = [guarantee for guarantee in audit.expected if audit.checks[guarantee].verdict == Verdict.UNDECIDED]
    if open_:
        return f"Could not be decided: {', '.join(open_)}"
    return "Everything expected holds"


def _logged(event: LoggedEvent) -> str:
    if event.at is None:
        return f"member {event.member}, position {event.pos}: {event.event} {event.message}"
    return f"{event.at} ({event.place}): {event.text or f'{event.event} {event.message}'}"


def _check(audit: Audit, guarantee: str, check: Check, drawn: dict[str, Html | None]) -> Html:
    expected = guarantee in audit.expected
    times = f" {check.violations:,} ×" if check.violations else ""
    badge = tag("span", f"{_SIGNS[check.verdict]} {check.verdict}{times}", class_=f"badge {check.verdict}")
    head = join(tag("b", guarantee), badge, None if expected else tag("span", "not expected", class_="aside"))
    parts = [
        tag("p", head, class_="check-head"),
        tag("p", f"{check.because[:1].upper()}{check.because[1:]}.", class_="because"),
    ]
    if check.witness is not None:
        # Total and acyclic order often share their witness; it is drawn once.
        same = next(other for other, its in audit.checks.items() if its.witness == check.witness)
        parts.append(
            drawn.get(guarantee) or Html("") if same == guarantee else tag("p", f"Drawn under {same}.", class_="because")
        )
        if check.witness.chain:
            parts.append(tag("ol", *(tag("li", step) for step in check.witness.chain), class_="chain"))
        events = map(_logged, check.witness.positions)
        parts.append(
            tag(
                "div",
                tag(
                    "details",
                    tag("summary", "Where to find it in the logs"),
                    tag("ul", *(tag("li", event) for event in events)),
                ),
                tag("button", "Show in the diagram", type="button", class_="show-witness", data_check=guarantee),
                class_="more",
            )
        )
    return tag("article", *parts, class_=f"check{'' if expected else ' unexpected'}{' open' if check.witness else ''}")
