"""Integrity: what is delivered was sent, was addressed to the member, and is delivered there once."""

from __future__ import annotations

from quire.model.orders import Guarantee
from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.check import AuditCheck
from quire.pipeline.auditing.checks.needs import NUMBERS, unaddressed
from quire.pipeline.auditing.explanations import Explanation, Log, list_members, witness_of
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.results import Results
from quire.trace.schema import DELIVER, SEND


def _explain(results: Results, log: Log) -> Explanation:
    breach = results.of(Orders).integrity.first
    assert breach is not None
    process, message = breach.process, breach.message
    sends, deliveries = log.at(process, SEND, message), log.at(process, DELIVER, message)
    if breach.kind in (kernel.SENT_AGAIN, kernel.MISATTRIBUTED):
        events = sends
    elif breach.kind == kernel.REPEATED:
        events = deliveries
    else:
        events = [*log.first(message.origin, SEND, message), *deliveries[:1]]
    positions = [event.pos for event in events]
    match breach.kind:
        case kernel.MISATTRIBUTED:
            because = f"member {process} sent {message} at position {positions[0]} in the name of member {message.origin}"
        case kernel.SENT_AGAIN:
            because = f"member {process} sent {message} twice, at positions {positions[0]} and {positions[1]}"
        case kernel.REPEATED:
            because = f"member {process} delivered {message} twice, at positions {positions[0]} and {positions[1]}"
        case kernel.PHANTOM:
            because = f"member {process} delivered {message} at position {positions[-1]}, though it was never sent"
        case _:
            addressed = _addressed(events[0].dests)
            because = f"member {process} delivered {message} at position {positions[-1]}, though it was {addressed}"
    return Explanation(witness_of([message], events, members=[process]), because)


def _addressed(dests: tuple[int, ...] | None) -> str:
    if dests is None:
        # The destinations were found from the logs.
        return "not addressed to it"
    return f"addressed only to {list_members(sorted(set(dests)))}" if dests else "addressed to no member"


INTEGRITY = AuditCheck(
    guarantee=Guarantee.INTEGRITY,
    holds="every delivery was of a message sent to that member, and happened once",
    needs=(NUMBERS,),
    count=lambda results: results.of(Orders).integrity.count,
    undecided=unaddressed,
    mentions=lambda results: [breach.message for breach in (results.of(Orders).integrity.first,) if breach],
    explain=_explain,
)
