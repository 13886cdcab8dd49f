"""Hybrid order: total within each group, and causal across all of them."""

from __future__ import annotations

from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck, Need, Question, TaskKind
from quire.pipeline.auditing.checks.needs import NUMBERS, as_delivered
from quire.pipeline.auditing.checks.precedence import contradiction, explain_causal, late_messages
from quire.pipeline.auditing.checks.total import disagreeing_messages, explain_disagreement
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.in_groups import ROWS_PER_PIECE, GroupsResult, GroupsTask, cut_by_group, judge_groups
from quire.pipeline.auditing.results import Results

GROUPS = Need(
    lambda results: not results.of(GroupsResult).within.grouped,
    "the trace does not say to which groups its messages were sent",
)


def _make(question: Question) -> GroupsTask:
    layout = question.layout
    return GroupsTask(layout.world, layout.groups, pieces=1 + layout.rows // ROWS_PER_PIECE)


WITHIN_GROUPS = TaskKind(GroupsTask, GroupsResult, judge_groups, _make, cut_by_group)
"""Judges the deliveries of every correct member, group by group."""


def _explain(results: Results, log: Log) -> Explanation:
    within = results.of(GroupsResult).within
    if within.disagreement is None:
        return explain_causal(results, log)
    witness, because = explain_disagreement(within.disagreement, log)
    return Explanation(witness, f"within group {within.group}, {because}")


_HOLDS = "every group was delivered in one order, and no member delivered a message before one that had caused it"

HYBRID = AuditCheck(
    guarantee=Guarantee.HYBRID,
    holds=_HOLDS,
    needs=(NUMBERS, GROUPS),
    tasks=(WITHIN_GROUPS,),
    count=lambda results: results.of(GroupsResult).within.pairs + results.of(Orders).causal.count,
    undecided=contradiction,
    partly=as_delivered(_HOLDS),
    mentions=lambda results: [
        *disagreeing_messages(results.of(GroupsResult).within.disagreement),
        *late_messages(results.of(Orders).causal.first),
    ],
    explain=_explain,
)
