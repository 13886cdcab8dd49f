"""Total and acyclic order: any two members agree on the order of their common messages; all members' orders have no cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.model.messages import MessageId
from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck, Question, TaskKind
from quire.pipeline.auditing.checks.needs import MESSAGES
from quire.pipeline.auditing.deliveries import DeliveriesResult, DeliveriesTask, judge_all_deliveries
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.total import Disagreement, InOrder
from quire.pipeline.auditing.verdicts import Witness
from quire.trace.kinds import DELIVER


def _make(question: Question) -> DeliveriesTask:
    return DeliveriesTask(question.layout.world, question.layout.groups)


DELIVERIES = TaskKind(DeliveriesTask, DeliveriesResult, judge_all_deliveries, _make)
"""Compares all deliveries of every correct member in one task."""


def disagreeing_messages(found: Disagreement | None) -> Iterable[MessageId]:
    return () if found is None else (found.before, found.after)


def explain_disagreement(found: Disagreement, log: Log) -> Explanation:
    witness = _witness(found.steps(), log)
    return Explanation(
        witness,
        f"{log.member(found.one)} delivered {log.message(found.before)} before {log.message(found.after)}, "
        f"but {log.member(found.other)} the other way round",
    )


def _explain_total(results: Results, log: Log) -> Explanation:
    found = results.of(DeliveriesResult).total.disagreement
    assert found is not None
    return explain_disagreement(found, log)


def _explain_acyclic(results: Results, log: Log) -> Explanation:
    found = results.of(DeliveriesResult).total
    if found.disagreement is not None:
        return explain_disagreement(found.disagreement, log)
    steps = ", ".join(
        f"{log.member(step.member)} {'delivered ' if index == 0 else ''}"
        f"{log.message(step.before)} before {log.message(step.after)}"
        for index, step in enumerate(found.cycle)
    )
    return Explanation(_witness(found.cycle, log), steps)


def _witness(steps: Sequence[InOrder], log: Log) -> Witness:
    return log.witness(
        [step.before for step in steps],
        [
            event
            for step in steps
            for message in (step.before, step.after)
            for event in log.first(step.member, DELIVER, message)
        ],
        members=[step.member for step in steps],
    )


TOTAL = AuditCheck(
    guarantee=Guarantee.TOTAL,
    holds="no two members delivered two messages in different orders",
    needs=(MESSAGES,),
    tasks=(DELIVERIES,),
    count=lambda results: results.of(DeliveriesResult).total.pairs,
    mentions=lambda results: disagreeing_messages(results.of(DeliveriesResult).total.disagreement),
    explain=_explain_total,
)

ACYCLIC = AuditCheck(
    guarantee=Guarantee.ACYCLIC,
    holds="one order of all messages explains every member's deliveries",
    needs=(MESSAGES,),
    tasks=(DELIVERIES,),
    count=lambda results: results.of(DeliveriesResult).total.cycles,
    mentions=lambda results: [step.before for step in results.of(DeliveriesResult).total.cycle],
    explain=_explain_acyclic,
)
