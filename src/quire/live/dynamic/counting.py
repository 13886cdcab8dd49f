"""What a member of a group whose members change counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quire.live.dynamic.deliveries import Waiting
from quire.live.dynamic.events import View
from quire.live.dynamic.joining import DynamicSettings
from quire.live.dynamic.submitting import Submitting
from quire.live.inbox import Inbox
from quire.live.metrics import Sample


def samples(
    settings: DynamicSettings,
    view: View | None,
    delivered: Mapping[str, int],
    submitting: Submitting,
    inbox: Inbox[Waiting],
    journalled: tuple[int, int],
    *,
    blocked: bool,
) -> Iterator[Sample]:
    base = {"group": settings.network.group, "member": settings.me}
    yield Sample("quire_view", "The number of the view that this member is in.", "gauge", view.number if view else 0, base)
    yield Sample("quire_members", "How many members the view has.", "gauge", len(view.members) if view else 0, base)
    yield Sample("quire_blocked", "Whether this member cannot reach a majority.", "gauge", int(blocked), base)
    yield Sample("quire_messages_sent_total", "Messages this member has accepted.", "counter", submitting.accepted, base)
    unsettled = submitting.accepted - submitting.settled
    yield Sample("quire_messages_unsettled", "This member's messages that are not delivered yet.", "gauge", unsettled, base)
    for origin, count in sorted(delivered.items()):
        labels = base | {"origin": origin}
        yield Sample("quire_messages_delivered_total", "Messages delivered, by origin.", "counter", count, labels)
    yield Sample(
        "quire_messages_in_inbox", "Delivered messages that the application has not read.", "gauge", inbox.messages, base
    )
    batches, size = journalled
    if batches:
        yield Sample("quire_journal_batches_total", "Batches of records, one sync each.", "counter", batches, base)
        yield Sample("quire_journal_bytes_total", "Bytes of these records.", "counter", size, base)
