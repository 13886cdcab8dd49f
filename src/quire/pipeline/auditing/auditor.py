"""The audit's entry points: check the guarantees of a run, on Spark or in this process.

The driver reads Parquet footers, hands out tasks and combines their summaries; it never collects the trace itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.model.orders import OF_ANY_MESSAGES, RELIABLE, Guarantee
from quire.pipeline.auditing.check import AuditCheck, Question
from quire.pipeline.auditing.checks.needs import NUMBERS, recorded, unaddressed
from quire.pipeline.auditing.explanations import Explanation, look_up
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.judging import judge_trace
from quire.pipeline.auditing.registry import audit_job, find_checks, with_implied
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.verdicts import Audit, Check, Verdict
from quire.pipeline.layout import Layout, check_segments, lay_out, segment_count
from quire.pipeline.tasks import Runner, run_here, run_on
from quire.trace.executions import read_executions
from quire.trace.schema import RunInfo
from quire.trace.store import open_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_PROMISES = "the run promises no order"


def audit(
    spark: SparkSession, directory: str | Path, *, expect: Iterable[str] | None = None, segments: int | None = None
) -> Audit:
    """Check a run directory, in `segments` parallel segments (by default, a number that fits its size).

    The orders that apply to any messages are always checked, the other guarantees only if they are expected. `expect` lists
    the guarantees that decide the verdict, together with those they imply; the default is what the run promises. Raises
    BadInput, with a message of one sentence, if the directory is not the complete trace of one run.
    """
    return audit_with(run_on(spark, audit_job()), Path(directory), expect=expect, segments=segments)


def audit_here(directory: Path, *, expect: Iterable[str] | None = None, segments: int | None = None) -> Audit:
    """Like `audit`, but in this process, without Spark: for traces that are not large."""
    audited = audit_with(run_here(audit_job()), directory, expect=expect, segments=segments)
    return msgspec.structs.replace(audited, on_spark=False)


def audit_with(
    run_tasks: Runner, directory: Path, *, expect: Iterable[str] | None = None, segments: int | None = None
) -> Audit:
    """Like `audit`, with any task runner."""
    began = time.perf_counter()
    check_segments(segments)
    stored = open_run(directory)
    layout = lay_out(stored)
    expected, expectation = _expectation(expect, stored.info)
    checks = find_checks([*OF_ANY_MESSAGES, *(check.guarantee for check in expected)])
    question = Question(layout, stored.info, frozenset(check.guarantee for check in checks))
    kinds = dict.fromkeys(kind for check in checks for kind in check.tasks)
    results = judge_trace(
        layout,
        segments or segment_count(layout),
        run_tasks,
        [piece for kind in kinds for piece in kind.pieces(question)],
        sparse=not any(NUMBERS in check.needs for check in expected),
        viewed=Guarantee.VIRTUAL_SYNCHRONY in {*stored.info.promises, *question.wanted},
        executions=_executions(directory, checks),
    )
    for whole in run_tasks([kind.make(question) for kind in kinds if not kind.settled(results.of(kind.result))]):
        results.add(whole)
    results.add(recorded(stored.info))
    if expect is None and not stored.info.promises and unaddressed(results):
        expected = tuple(check for check in expected if check.guarantee != Guarantee.AGREEMENT)
        expectation = f"{_NO_PROMISES}, and {unaddressed(results)}, so only integrity is expected"
    not_applicable = {check.guarantee: why for check in checks if check not in expected and (why := _lacks(check, results))}
    checks = tuple(check for check in checks if check.guarantee not in not_applicable)
    explanations = _explain(checks, results, layout, run_tasks)
    found = results.of(Orders)
    wall_s = time.perf_counter() - began
    return Audit(
        run=stored.info.run,
        events=layout.events,
        processes=stored.info.members,
        messages=found.messages,
        checks={check.guarantee: _verdict(check, results, explanations, layout) for check in checks},
        expected=tuple(check.guarantee for check in expected),
        expectation=expectation,
        not_applicable=not_applicable,
        notes=stored.info.outcome.notes,
        segments=found.segments,
        wall_s=round(wall_s, 6),
        events_per_s=round(layout.events / wall_s, 1),
    )


def _executions(directory: Path, checks: Iterable[AuditCheck]) -> np.ndarray | None:
    """The logical times at which the run's executions begin; None if it holds only one. Raises BadInput if one of the checks
    cannot tell executions apart."""
    found = read_executions(directory)
    if found is None:
        return None
    if others := [check.guarantee for check in checks if check.guarantee not in OF_ANY_MESSAGES]:
        raise BadInput(
            f"{directory} holds {len(found.labels):,} executions, which cannot be checked for {', '.join(others)} at once; "
            "take one out with `quire export --format run --execution LABEL`"
        )
    return found.begins


def _expectation(expect: Iterable[str] | None, info: RunInfo) -> tuple[tuple[AuditCheck, ...], str]:
    if expect is not None:
        return find_checks(with_implied(expect)), "as asked"
    if info.promises:
        return find_checks(with_implied(info.promises)), "as the run promises"
    return find_checks(RELIABLE), f"{_NO_PROMISES}, so only integrity and agreement are expected"


def _lacks(check: AuditCheck, results: Results) -> str:
    """Why the check does not apply to a trace of this kind; empty if it does."""
    return next((need.why for need in check.needs if need.lacking(results)), "")


def _explain(checks: Iterable[AuditCheck], results: Results, layout: Layout, run: Runner) -> dict[str, Explanation]:
    """Explain the violated checks, with one or two small jobs over the trace."""
    violated = [check for check in checks if check.count(results) and not _lacks(check, results)]
    messages = [message for check in violated for message in check.mentions(results)]
    log = look_up(layout, messages, run, timed=not results.of(Orders).rebuilt)
    return {check.guarantee: check.explain(results, log) for check in violated}


def _verdict(check: AuditCheck, results: Results, explanations: dict[str, Explanation], layout: Layout) -> Check:
    if check.guarantee in explanations:
        witness, because = explanations[check.guarantee]
        return Check(verdict=Verdict.VIOLATED, violations=check.count(results), witness=witness, because=because)
    if reason := _lacks(check, results) or check.undecided(results):
        return Check(verdict=Verdict.UNDECIDED, because=reason)
    return Check(verdict=Verdict.HOLDS, because=(check.partly(results) or check.holds) if layout.rows else "nothing happened")
