"""Records the trace of a store: every read, write, commit and abort, at the client and at the replicas.

docs/trace.md says which columns mean what.
"""

from __future__ import annotations

from quire.protocols.node import Notice
from quire.protocols.transactions.notices import Traced
from quire.trace.event_recorder import EventRecorder
from quire.trace.log import Address


def record(recorder: EventRecorder, notice: Notice) -> None:
    """Record a notice of a node if it belongs in a trace."""
    if isinstance(notice, Traced):
        address = Address(dests=notice.dests, object=notice.key, op=notice.op, txn=str(notice.t))
        if notice.kind == "view":
            recorder.record_view(*notice.id, address)
        elif notice.kind == "send":
            recorder.record_send(*notice.id, address, notice.size)
        else:
            recorder.record_delivery(*notice.id, address, notice.size)
