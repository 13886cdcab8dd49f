"""FIFO and causal order: no member delivers a message before an earlier one that is addressed to it, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.model.messages import MessageId
from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck
from quire.pipeline.auditing.checks.needs import MESSAGES, NUMBERS, as_delivered
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.findings import Late, Orders
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.search import Link
from quire.trace.kinds import DELIVER, SEND


def contradiction(results: Results) -> str:
    """Why happened-before is not known: the logs contradict each other. Empty if they do not."""
    message = results.of(Orders).unordered
    return "" if message is None else f"the logs contradict each other: a delivery of {message} happened before it was sent"


def late_messages(late: Late | None) -> Iterable[MessageId]:
    return () if late is None else (late.message, late.missed)


def explain_causal(results: Results, log: Log) -> Explanation:
    late = results.of(Orders).causal.first
    assert late is not None
    links = log.chain(late.missed, late.message)
    steps = (
        f"{log.member(link.member)} had {_did(link)} {log.message(link.message)} before it sent {log.message(link.then)}"
        for link in links
    )
    return _explain(late, log, links, ", and ".join(steps))


def _explain_fifo(results: Results, log: Log) -> Explanation:
    late = results.of(Orders).fifo.first
    assert late is not None
    return _explain(
        late,
        log,
        [],
        f"{log.member(late.message.origin)} had sent {log.message(late.missed)} before {log.message(late.message)}",
    )


def _explain(late: Late, log: Log, links: Sequence[Link], though: str) -> Explanation:
    process, message, missed = late.process, late.message, late.missed
    afterwards = log.first(process, DELIVER, missed)
    name = log.message(missed)
    what = f"before {name}" if afterwards else f"and never {name}, which was addressed to it"
    witness = log.witness(
        [missed, *(link.message for link in links[1:]), message],
        [
            *log.first(missed.origin, SEND, missed),
            *log.first(message.origin, SEND, message),
            *log.first(process, DELIVER, message),
            *afterwards,
        ],
        members=[process, *(link.member for link in links)],
        chain=(
            f"{log.member(link.member)} {_did(link)} {log.message(link.message)} {log.position_of(link.member, link.pos)}, "
            f"then sent {log.message(link.then)} {log.position_of(link.member, link.then_pos)}"
            for link in links
        ),
        missing=None if afterwards else missed,
    )
    return Explanation(witness, f"{log.member(process)} delivered {log.message(message)} {what}, though {though}")


def _did(link: Link) -> str:
    return "delivered" if link.delivered else "sent"


_FIFO_HOLDS = "no member delivered a message before an earlier one of the same sender"
_CAUSAL_HOLDS = "no member delivered a message before one that had happened before it"

FIFO = AuditCheck(
    guarantee=Guarantee.FIFO,
    holds=_FIFO_HOLDS,
    needs=(MESSAGES, NUMBERS),
    count=lambda results: results.of(Orders).fifo.count,
    partly=as_delivered(_FIFO_HOLDS),
    mentions=lambda results: late_messages(results.of(Orders).fifo.first),
    explain=_explain_fifo,
)

CAUSAL = AuditCheck(
    guarantee=Guarantee.CAUSAL,
    holds=_CAUSAL_HOLDS,
    needs=(MESSAGES, NUMBERS),
    count=lambda results: results.of(Orders).causal.count,
    undecided=contradiction,
    partly=as_delivered(_CAUSAL_HOLDS),
    mentions=lambda results: late_messages(results.of(Orders).causal.first),
    explain=explain_causal,
)
