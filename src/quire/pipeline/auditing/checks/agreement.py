"""Agreement: what one correct member sends or delivers, every correct destination delivers."""

from __future__ import annotations

from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck
from quire.pipeline.auditing.checks.needs import MESSAGES, NUMBERS, unaddressed
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.results import Results
from quire.trace.kinds import DELIVER, SEND


def _explain(results: Results, log: Log) -> Explanation:
    lost = results.of(Orders).agreement.first
    assert lost is not None
    message, process = lost.message, lost.process
    events = log.first(message.origin, SEND, message)
    sender = log.member(message.origin)
    because = f"{log.member(process)} never delivered {log.message(message)}, which {sender} had sent to it"
    if lost.because_of != message.origin:
        events = [*events, *log.first(lost.because_of, DELIVER, message)]
        because += f" and {log.member(lost.because_of)} delivered"
    return Explanation(log.witness([message], events, members=[process], missing=message), because)


AGREEMENT = AuditCheck(
    guarantee=Guarantee.AGREEMENT,
    holds="every correct destination delivered what it had to",
    needs=(MESSAGES, NUMBERS),
    count=lambda results: results.of(Orders).agreement.count,
    undecided=unaddressed,
    mentions=lambda results: [lost.message for lost in (results.of(Orders).agreement.first,) if lost],
    explain=_explain,
)
