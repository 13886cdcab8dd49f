"""The metrics of a member of a group whose members change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from quire.live import clock
from quire.live.dynamic.deliveries import Waiting
from quire.live.dynamic.events import View
from quire.live.dynamic.node import Node
from quire.live.dynamic.submitting import Submitting
from quire.live.inbox import Inbox
from quire.live.metrics import Sample
from quire.views.peers import Peer


def samples(
    node: Node,
    view: View | None,
    delivered: Mapping[str, int],
    submitting: Submitting,
    inbox: Inbox[Waiting],
    journalled: tuple[int, int],
    *,
    blocked: bool,
) -> Iterator[Sample]:
    base = {"group": node.settings.network.group, "member": node.settings.me}
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
    yield from _links(node, base)


def _links(node: Node, base: Mapping[str, str]) -> Iterator[Sample]:
    """Samples of what is held back, and one of each metric for every other known process."""
    held = sum(each.count for each in node.held_back())
    yield Sample("quire_messages_held_back", "Messages not yet delivered here.", "gauge", held, base)
    now = clock.now()
    measures: tuple[tuple[str, str, str, Callable[[Peer], float]], ...] = (
        ("quire_link_up", "Whether the peer is connected.", "gauge", lambda peer: peer.is_ready),
        ("quire_link_frames_sent_total", "Frames sent to the peer.", "counter", lambda peer: peer.outgoing.sent),
        ("quire_link_frames_received_total", "Frames received from it.", "counter", lambda peer: peer.incoming.received),
        ("quire_link_bytes_unacknowledged", "Bytes sent and not yet acknowledged.", "gauge", lambda peer: peer.outgoing.bytes),
        ("quire_link_silent_seconds", "Seconds since the peer was heard.", "gauge", lambda peer: now - peer.heard_at),
    )
    for name, help_, kind, measure in measures:
        for peer in node.process.peers.values():
            yield Sample(name, help_, kind, float(measure(peer)), {**base, "peer": peer.name})
