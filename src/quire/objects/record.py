"""Records the trace of an object group: every request and response, with the instances that send and receive them."""

from __future__ import annotations

from quire.protocols.node import Notice
from quire.protocols.objects.declarations import Catalogue
from quire.protocols.objects.notices import Answered, Refused, Sent, Started
from quire.trace.event_recorder import EventRecorder
from quire.trace.log import Address


def record(recorder: EventRecorder, me: int, notice: Notice) -> None:
    """Record a notice of a node, if it belongs in a trace."""
    if isinstance(notice, Sent):
        group = None if notice.shared is None else f"{me}:{notice.shared}"
        address = Address(group, notice.to, notice.object, notice.op, str(notice.sender))
        recorder.record_send(me, notice.number, address, notice.size)
    elif isinstance(notice, Started):
        address = Address(object=notice.instance.object, op=notice.op, txn=str(notice.instance))
        recorder.record_delivery(notice.source, notice.number, address, len(notice.payload))
    elif isinstance(notice, Refused):
        address = Address(op=notice.op, txn=str(notice.instance))
        recorder.record_delivery(notice.source, notice.number, address, notice.size)
    elif isinstance(notice, Answered):
        address = Address(op=notice.status, txn=str(notice.instance))
        recorder.record_delivery(notice.source, notice.number, address, len(notice.payload))


def conflicts(catalogue: Catalogue) -> dict[str, dict[str, list[str]]]:
    """For `settings.conflicts` of a run: for each object, each operation with those that conflict with it."""
    return {
        name: {op: sorted(against) for op, against in placed.type.conflicting.items()}
        for name, placed in catalogue.objects.items()
    }
