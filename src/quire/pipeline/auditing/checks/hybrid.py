"""Hybrid order: total within each group, and causal across all of them."""

from __future__ import annotations

from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck, Need
from quire.pipeline.auditing.checks.needs import NUMBERS, as_delivered
from quire.pipeline.auditing.checks.precedence import contradiction, explain_causal, late_messages
from quire.pipeline.auditing.checks.total import DELIVERIES, disagreeing_messages, explain_disagreement
from quire.pipeline.auditing.deliveries import DeliveriesResult
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.results import Results

GROUPS = Need(
    lambda results: not results.of(DeliveriesResult).within.grouped,
    "the trace does not say to which groups its messages were sent",
)


def _explain(results: Results, log: Log) -> Explanation:
    within = results.of(DeliveriesResult).within
    if within.disagreement is None:
        return explain_causal(results, log)
    witness, because = explain_disagreement(within.disagreement, log)
    return Explanation(witness, f"within group {within.group}, {because}")


_HOLDS = "every group was delivered in one order, and no member delivered a message before one that had caused it"

HYBRID = AuditCheck(
    guarantee=Guarantee.HYBRID,
    holds=_HOLDS,
    needs=(NUMBERS, GROUPS),
    tasks=(DELIVERIES,),
    count=lambda results: results.of(DeliveriesResult).within.pairs + results.of(Orders).causal.count,
    undecided=contradiction,
    partly=as_delivered(_HOLDS),
    mentions=lambda results: [
        *disagreeing_messages(results.of(DeliveriesResult).within.disagreement),
        *late_messages(results.of(Orders).causal.first),
    ],
    explain=_explain,
)
