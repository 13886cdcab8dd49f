"""The audit: which of the orders hold in a trace, judged on Spark where the trace is.

The driver reads footers, hands out tasks, and puts their summaries together; no trace is ever collected.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quire.model.orders import OF_ANY_MESSAGES, RELIABLE, Guarantee, implied_by, in_order
from quire.pipeline.auditing.deliveries import DeliveriesTask
from quire.pipeline.auditing.findings import Findings, judge_trace
from quire.pipeline.auditing.history import parse_versions
from quire.pipeline.auditing.serialisable import SerialisableTask
from quire.pipeline.auditing.significant import SignificantTask, parse_conflicts
from quire.pipeline.auditing.stories import Story
from quire.pipeline.auditing.tasks import AUDIT, Task
from quire.pipeline.auditing.verdicts import Audit, Check, Verdict
from quire.pipeline.auditing.witness import tell
from quire.pipeline.layout import Layout, check_segments, lay_out, segment_count
from quire.pipeline.tasks import Runner, run_on
from quire.trace.schema import RunInfo
from quire.trace.store import open_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HOLDS = {
    Guarantee.INTEGRITY: "every delivery was of a message sent to that member, and happened once",
    Guarantee.AGREEMENT: "every correct destination delivered what it had to",
    Guarantee.FIFO: "no member delivered a message before an earlier one of the same sender",
    Guarantee.CAUSAL: "no member delivered a message before one that had happened before it",
    Guarantee.TOTAL: "no two members delivered two messages in different orders",
    Guarantee.ACYCLIC: "one order of all messages explains every member's deliveries",
    Guarantee.HYBRID: "every group was delivered in one order, and no member delivered a message before one that had caused it",
    Guarantee.SPELLS: "every member delivered one slice of each group's log, from its join to its leave",
    Guarantee.SIGNIFICANT: "conflicting requests began in their significant order, and everywhere alike",
    Guarantee.SERIALISABLE: "one order of the committed transactions explains what each of them read",
}

_NUMBERED = {Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.HYBRID}
"""What needs messages that are numbered without gaps, and destinations."""


def audit(
    spark: SparkSession, directory: str | Path, *, expect: Iterable[Guarantee] | None = None, segments: int | None = None
) -> Audit:
    """Check a run directory, in `segments` parallel pieces (by default as many as its size suggests).

    The orders of any messages are always checked, the others if they are expected; `expect` says which of them, with
    what they imply, decide the verdict, by default those that the run promises. Raises BadInput, in one sentence, for
    what is not a whole trace of one run.
    """
    return audit_with(run_on(spark, AUDIT), Path(directory), expect=expect, segments=segments)


def audit_with(
    run_tasks: Runner, directory: Path, *, expect: Iterable[Guarantee] | None = None, segments: int | None = None
) -> Audit:
    """The same with any way to run tasks."""
    began = time.perf_counter()
    check_segments(segments)
    stored = open_run(directory)
    layout = lay_out(stored)
    expected, expectation = _expectation(expect, stored.info)
    wanted = in_order({*OF_ANY_MESSAGES, *expected})
    found = judge_trace(
        layout,
        segments or segment_count(layout),
        run_tasks,
        _beside(layout, wanted, stored.info),
        sparse=_NUMBERED.isdisjoint(expected),
    )
    checks = _checks(wanted, found, tell(layout, found, run_tasks), layout)
    wall_s = time.perf_counter() - began
    return Audit(
        run=stored.info.run,
        events=layout.rows,
        processes=stored.info.members,
        messages=found.messages,
        checks=checks,
        expected=expected,
        expectation=expectation,
        segments=found.segments,
        wall_s=round(wall_s, 6),
        events_per_s=round(layout.rows / wall_s, 1),
    )


def _expectation(expect: Iterable[Guarantee] | None, info: RunInfo) -> tuple[tuple[Guarantee, ...], str]:
    if expect is not None:
        return in_order(implied_by(expect)), "as asked"
    if info.promises:
        return in_order(implied_by(info.promises)), "as the run promises"
    return in_order(RELIABLE), "the run promises no order, so only integrity and agreement are expected"


def _beside(layout: Layout, wanted: Sequence[Guarantee], info: RunInfo) -> list[Task]:
    """The tasks for what cannot be judged in segments."""
    grouped = Guarantee.HYBRID in wanted or Guarantee.SPELLS in wanted
    tasks: list[Task] = [DeliveriesTask(layout.world, layout.groups, grouped)]
    if Guarantee.SIGNIFICANT in wanted:
        tasks.append(SignificantTask(layout.world, layout.groups, parse_conflicts(info.settings)))
    if Guarantee.SERIALISABLE in wanted:
        tasks.append(SerialisableTask(layout.world, layout.groups, parse_versions(info.settings.get("versions"))))
    return tasks


def _checks(
    wanted: Sequence[Guarantee], found: Findings, stories: dict[Guarantee, Story], layout: Layout
) -> dict[Guarantee, Check]:  # fmt: skip
    counts = {
        Guarantee.INTEGRITY: found.breaches,
        Guarantee.AGREEMENT: found.lost,
        Guarantee.FIFO: found.late[0],
        Guarantee.CAUSAL: found.late[1],
        Guarantee.TOTAL: found.total.pairs,
        Guarantee.ACYCLIC: found.total.knots,
        Guarantee.HYBRID: found.within.pairs + found.late[1],
        Guarantee.SPELLS: found.spells.violations,
        Guarantee.SIGNIFICANT: found.significant.violations,
        Guarantee.SERIALISABLE: found.serialisable.violations,
    }
    checks = {}
    for guarantee in wanted:
        count = counts[guarantee]
        if count:
            witness, because = stories[guarantee]
            checks[guarantee] = Check(verdict=Verdict.VIOLATED, violations=count, witness=witness, because=because)
        elif reason := _undecided(guarantee, found):
            checks[guarantee] = Check(verdict=Verdict.UNDECIDED, because=reason)
        else:
            because = _HOLDS[guarantee] if layout.rows else "nothing happened"
            checks[guarantee] = Check(verdict=Verdict.HOLDS, because=because)
    return checks


def _undecided(guarantee: Guarantee, found: Findings) -> str:
    """Why a check without a violation cannot be said to hold, or nothing."""
    if guarantee is Guarantee.SPELLS:
        return "" if found.spells.changes else "the trace records no joins and leaves: it has no rows of the kind view"
    if guarantee is Guarantee.SIGNIFICANT:
        return found.significant.why
    if guarantee is Guarantee.SERIALISABLE:
        return found.serialisable.why
    if found.unjudged and guarantee in _NUMBERED:
        return found.unjudged
    if guarantee is Guarantee.HYBRID and not found.within.grouped:
        return "the trace does not say to which groups its messages were sent"
    if found.unordered and guarantee in (Guarantee.CAUSAL, Guarantee.HYBRID):
        origin, seq = found.unordered
        return f"the logs contradict each other: a delivery of {origin}:{seq} happened before it was sent"
    if found.unrecorded and guarantee in _NUMBERED:
        return f"the trace does not say to whom {found.unrecorded} of its {found.messages} messages were addressed"
    return ""
