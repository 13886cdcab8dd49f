"""The report of a run: its verdicts, its diagram, its costs, and what ran."""

from __future__ import annotations

from pathlib import Path

from quire.pipeline.auditing.verdicts import Audit, Verdict, Witness
from quire.pipeline.layout import Layout, lay_out
from quire.report import costs, diagram, incidents, verdicts, window, witnesses
from quire.report.formatting import count, number
from quire.report.html import Html, join, table, tag
from quire.report.page import page
from quire.report.scan import Scan, scan
from quire.trace.schema import RunInfo
from quire.trace.store import open_run


def report_run(directory: Path, audit: Audit | None, *, centre: str = "witness", events: int = window.EVENTS) -> str:
    """The page for the run in this directory, with the result of an audit of it if there is one.

    Raises BadInput, in one sentence, for what is not a whole run, or where the centre is not in it.
    """
    wanted = window.parse_centre(centre)
    stored = open_run(directory)
    layout = lay_out(stored)
    info = stored.info
    marked, witness = _marked(audit), _first_witness(audit)
    shown = window.read_window(
        layout,
        window.find_centre(layout, wanted, witness.positions if witness else ()),
        events,
        keep=witness.members if witness else (),
        alone={(member, pos) for events in marked.values() for member, pos in events},
    )
    found = scan(layout)
    drawn = _drawn(layout, audit)
    chosen = centre if isinstance(wanted, tuple) else None
    happened = incidents.within(shown, incidents.read_happenings(layout.world.run, found.viewed))
    trace = diagram.data(shown, happened, incidents.ended(shown, layout), layout.hosts)
    data = {"run": info.run, "witnesses": marked, "chosen": chosen, "trace": trace}
    return page(
        f"{info.run} · Quire",
        _header(info, layout, found),
        verdicts.section(audit, drawn),
        diagram.section(shown),
        _what_happened(info),
        costs.section(found),
        _what_ran(info),
        data=data,
    )


def _first_witness(audit: Audit | None) -> Witness | None:
    """The witness of the most important violation: of an expected guarantee, if any, else of any."""
    if audit is None:
        return None
    violated = [(g, check) for g, check in audit.checks.items() if check.verdict == Verdict.VIOLATED and check.witness]
    violated.sort(key=lambda each: each[0] not in audit.expected)
    return violated[0][1].witness if violated else None


def _drawn(layout: Layout, audit: Audit | None) -> dict[str, Html | None]:
    if audit is None:
        return {}
    messages = sorted({message for check in audit.checks.values() for message in witnesses.named(check)})
    found = window.find_messages(layout, messages)
    return {guarantee: witnesses.draw(check, found, layout.hosts) for guarantee, check in audit.checks.items()}


def _marked(audit: Audit | None) -> dict[str, list[tuple[int, int]]]:
    """For each violated check the events of its witness, by process and position, so that the diagram can show them."""
    if audit is None:
        return {}
    return {
        guarantee: [(event.member, event.pos) for event in check.witness.positions]
        for guarantee, check in audit.checks.items()
        if check.witness is not None
    }


def _header(info: RunInfo, layout: Layout, found: Scan) -> Html:
    facts = [info.protocol, count(info.members, "member"), info.source]
    if info.seed is not None:
        facts.append(f"seed {info.seed}")
    facts += [count(found.messages, "message"), count(layout.events, "event")]
    if info.outcome.crashed:
        facts.append(f"crashed: {', '.join(map(str, info.outcome.crashed))}")
    return tag(
        "header",
        tag("p", "Quire", tag("span", "report of a run"), class_="mark-line"),
        tag("h1", info.run),
        tag("ul", *(tag("li", fact) for fact in facts), class_="facts"),
    )


def _what_happened(info: RunInfo) -> Html:
    """The faults, and the views or successors that resulted, which may be of processes that have no line in the diagram."""
    if not info.outcome.happened:
        return join()
    rows: list[tuple[object, ...]] = [(f"{each.at_s:.3f}", each.what, each.about) for each in info.outcome.happened]
    shown = table(("second", "what", "members"), rows, numeric=frozenset({0}))
    return tag("section", tag("h2", "What happened"), shown, id="what-happened")


def _what_ran(info: RunInfo) -> Html:
    rows: list[tuple[object, ...]] = [("protocol", info.protocol), ("promises", ", ".join(info.promises) or "nothing")]
    rows += [(f"option {name.replace('_', '-')}", _flat(value)) for name, value in info.options.items()]
    rows += [("members", info.members), *(("note", note) for note in info.outcome.notes)]
    rows += [(f"group {name}", _members(members)) for name, members in list(info.groups.items())[:50]]
    rows += [(name, shown) for name, value in info.settings.items() if (shown := _flat(value))]
    rows += [(f"version of {name}", value) for name, value in info.versions.items()]
    complete = "every message reached every member that was to deliver it" if info.outcome.complete else "incomplete"
    rows += [("outcome", complete)]
    return tag("section", tag("h2", "What ran"), table(("setting", "value"), rows), id="what-ran")


def _members(members: tuple[int, ...]) -> str:
    if len(members) > 3 and members == tuple(range(members[0], members[-1] + 1)):
        return f"members {members[0]} to {members[-1]}"
    return "members " + ", ".join(map(str, members))


def _flat(value: object) -> Html:
    """Nested settings as one line."""
    if isinstance(value, dict):
        shown = [(name, each) for name, each in value.items() if each not in (None, [], (), {})]
        return join(
            *(join(" · " if index else None, tag("b", name), " ", _flat(each)) for index, (name, each) in enumerate(shown))
        )
    if isinstance(value, list | tuple):
        return join(", ".join(map(str, value)))
    if isinstance(value, bool):
        return join("yes" if value else "no")
    return join(number(value) if isinstance(value, int | float) else value)
