"""The status of a member of a group whose members change, for observers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quire.live import clock
from quire.live.dynamic.counting import samples
from quire.live.dynamic.deliveries import DeliveredRun, Waiting
from quire.live.dynamic.events import Blocked, Excluded, GroupEvent, Restored, View, ViewMessage
from quire.live.dynamic.node import Node
from quire.live.dynamic.quorum import Quorum
from quire.live.dynamic.submitting import UNSETTLED_MESSAGES_MAX, Submitting
from quire.live.held import Held
from quire.live.inbox import Inbox
from quire.live.metrics import exposition
from quire.live.observing.feed import Feed
from quire.live.observing.status import Condition, JournalStatus, LinkStatus, Queue, Status, ViewStatus, first_held, shown


class MemberStatus:
    """Reads the status of a member, and changes nothing."""

    def __init__(
        self,
        node: Node,
        quorum: Quorum,
        submitting: Submitting,
        inbox: Inbox[Waiting],
        delivered: Mapping[str, int],
    ) -> None:
        self._node, self._quorum, self._submitting, self._inbox = node, quorum, submitting, inbox
        self._delivered = delivered

    def waiting(self) -> Sequence[Held]:
        """All messages that are held back. Those that the application does not take come first: they wait for this member."""
        found = self._node.held_back()
        unread_s, first = self._inbox.unread_s(), self._inbox.first(DeliveredRun)
        if unread_s is not None and first is not None:
            me, count = self._node.settings.me, self._inbox.messages
            found.insert(0, Held(first.origin, first.first, count, (me,), self._inbox.why(), unread_s))
        return found

    def status(self, view: View | None, ending: str) -> Status:
        """`ending`: why nothing more can be submitted; empty while it can."""
        node, submitting, inbox = self._node, self._submitting, self._inbox
        settings = node.settings
        held = self.waiting()
        condition, why = self._condition(view, ending)
        return Status(
            kind="group",
            group=settings.network.group,
            me=settings.me,
            protocol=settings.rules.protocol,
            condition=condition,
            why=why,
            view=None if view is None else ViewStatus(view.number, view.members),
            members=() if view is None else view.members,
            sent=submitting.accepted,
            unsettled=submitting.accepted - submitting.settled,
            delivered=dict(self._delivered),
            queues={
                "inbox": Queue(inbox.messages, inbox.bytes, settings.network.inbox_messages_max),
                "outbox": Queue(submitting.accepted - submitting.settled, 0, UNSETTLED_MESSAGES_MAX),
            },
            links=tuple(self._links()),
            waiting=first_held([*map(shown, held)]),
            waiting_in_all=len(held),
            journal=None if node.journal is None else JournalStatus(*self.journalled()),
        )

    def metrics(self, view: View | None) -> str:
        counted = self._node, view, self._delivered, self._submitting, self._inbox, self.journalled()
        return exposition(samples(*counted, blocked=self._quorum.is_blocked))

    def journalled(self) -> tuple[int, int]:
        return (0, 0) if self._node.journal is None else self._node.journal.batches()

    def _condition(self, view: View | None, ending: str) -> tuple[Condition, str]:
        mode = self._node.process.member.core.mode
        if mode in ("left", "closed"):
            return "ended", ending
        if view is None:
            return "joining", self._quorum.awaited()
        if self._quorum.is_blocked:
            return "blocked", self._quorum.why()
        if mode == "joining":
            return "joining", f"the others went on without this member after view {view.number}, and it asks to join again"
        if self._inbox.unread_s() is not None:
            return "unread", self._inbox.why()
        return ("changing", "the next view is being agreed upon") if mode == "frozen" else ("running", "")

    def _links(self) -> list[LinkStatus]:
        process, now = self._node.process, clock.now()
        suspects = process.member.core.suspects
        return [
            LinkStatus(
                peer=name,
                connected=peer.is_ready,
                suspected=name in suspects,
                sent=peer.outgoing.sent,
                received=peer.incoming.received,
                unacknowledged_bytes=peer.outgoing.bytes,
                silent_s=round(max(0.0, now - peer.heard_at), 3),
            )
            for name, peer in sorted(process.peers.items())
        ]


def tell(feed: Feed, event: GroupEvent) -> None:
    """Add an event of the application to the feed for observers."""
    match event:
        case View():
            feed.tell("view", event.members, view=event.number)
        case Blocked():
            feed.tell("blocked", event.missing, why=event.why, view=event.view)
        case ViewMessage():
            pass
        case Excluded():
            feed.tell("excluded", view=event.view, why="the others went on without this member")
        case Restored():
            feed.tell("restored", view=event.view, why="its state was replaced by that of the group, or of its journal")
        case _:
            feed.tell("unblocked", view=event.view, why="a majority is there again")
