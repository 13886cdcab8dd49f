"""Integrity: what is delivered was sent, was addressed to the member, and is delivered there once."""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.orders import Guarantee
from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.check import AuditCheck
from quire.pipeline.auditing.checks.needs import NUMBERS, unaddressed
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.search import Found
from quire.trace.kinds import DELIVER, SEND


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
    who, what, where = log.member(process), log.message(message), [log.position(event) for event in events]
    match breach.kind:
        case kernel.MISATTRIBUTED:
            because = f"{who} sent {what} {where[0]} in the name of {log.member(message.origin)}"
        case kernel.SENT_AGAIN:
            because = f"{who} sent {what} twice, {_both(events, log)}"
        case kernel.REPEATED:
            because = f"{who} delivered {what} twice, {_both(events, log)}"
        case kernel.PHANTOM:
            because = f"{who} delivered {what} {where[-1]}, though it was never sent"
        case _:
            because = f"{who} delivered {what} {where[-1]}, though it was {_addressed(events[0].dests, log)}"
    return Explanation(log.witness([message], events, members=[process]), because)


def _both(events: Sequence[Found], log: Log) -> str:
    if events[0].said is None:
        return f"at positions {events[0].pos} and {events[1].pos}"
    return f"{log.position(events[0])} and {log.position(events[1])}"


def _addressed(dests: tuple[int, ...] | None, log: Log) -> str:
    if dests is None:
        # The send does not record its destinations: they were derived from the logs.
        return "not addressed to it"
    return f"addressed only to {log.members(sorted(set(dests)))}" if dests else "addressed to no member"


def _as_sent(results: Results) -> str:
    why = unaddressed(results)
    known = "every delivery was of a message that had been sent, and happened once"
    return why and f"{known}; whether it was for that member is not known, because {why}"


INTEGRITY = AuditCheck(
    guarantee=Guarantee.INTEGRITY,
    holds="every delivery was of a message sent to that member, and happened once",
    needs=(NUMBERS,),
    count=lambda results: results.of(Orders).integrity.count,
    partly=_as_sent,
    mentions=lambda results: [breach.message for breach in (results.of(Orders).integrity.first,) if breach],
    explain=_explain,
)
