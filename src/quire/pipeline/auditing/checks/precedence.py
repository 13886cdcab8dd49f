"""FIFO and causal order: no member delivers a message before one addressed to it that comes before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.model.messages import MessageId
from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck
from quire.pipeline.auditing.checks.needs import NUMBERS, unaddressed
from quire.pipeline.auditing.explanations import Explanation, Log, witness_of
from quire.pipeline.auditing.findings import Late, Orders
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.search import Link
from quire.trace.schema import DELIVER, SEND


def contradiction(results: Results) -> str:
    """Why nothing is known of what happened before what, if the logs contradict each other."""
    message = results.of(Orders).unordered
    return "" if message is None else f"the logs contradict each other: a delivery of {message} happened before it was sent"


def late_messages(late: Late | None) -> Iterable[MessageId]:
    return () if late is None else (late.message, late.missed)


def explain_causal(results: Results, log: Log) -> Explanation:
    late = results.of(Orders).causal.first
    assert late is not None
    links = log.chain(late.missed, late.message)
    steps = (f"member {link.member} had {_did(link)} {link.message} before it sent {link.then}" for link in links)
    return _explain(late, log, links, ", and ".join(steps))


def _explain_fifo(results: Results, log: Log) -> Explanation:
    late = results.of(Orders).fifo.first
    assert late is not None
    return _explain(late, log, [], f"member {late.message.origin} had sent {late.missed} before {late.message}")


def _explain(late: Late, log: Log, links: Sequence[Link], though: str) -> Explanation:
    process, message, missed = late.process, late.message, late.missed
    afterwards = log.first(process, DELIVER, missed)
    what = f"before {missed}" if afterwards else f"and never {missed}, which was addressed to it"
    witness = witness_of(
        [missed, *(link.message for link in links[1:]), message],
        [
            *log.first(missed.origin, SEND, missed),
            *log.first(message.origin, SEND, message),
            *log.first(process, DELIVER, message),
            *afterwards,
        ],
        members=[process, *(link.member for link in links)],
        chain=(
            f"member {link.member} {_did(link)} {link.message} at position {link.pos}, "
            f"then sent {link.then} at position {link.then_pos}"
            for link in links
        ),
        missing=None if afterwards else missed,
    )
    return Explanation(witness, f"member {process} delivered {message} {what}, though {though}")


def _did(link: Link) -> str:
    return "delivered" if link.delivered else "sent"


FIFO = AuditCheck(
    guarantee=Guarantee.FIFO,
    holds="no member delivered a message before an earlier one of the same sender",
    needs=(NUMBERS,),
    count=lambda results: results.of(Orders).fifo.count,
    undecided=unaddressed,
    mentions=lambda results: late_messages(results.of(Orders).fifo.first),
    explain=_explain_fifo,
)

CAUSAL = AuditCheck(
    guarantee=Guarantee.CAUSAL,
    holds="no member delivered a message before one that had happened before it",
    needs=(NUMBERS,),
    count=lambda results: results.of(Orders).causal.count,
    undecided=lambda results: contradiction(results) or unaddressed(results),
    mentions=lambda results: late_messages(results.of(Orders).causal.first),
    explain=explain_causal,
)
