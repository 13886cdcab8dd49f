"""Dispatches each packet to the part that handles it: at a member, at a process that is joining, and at one that has left."""

from __future__ import annotations

from quire.views.effects import Close
from quire.views.membership import Membership
from quire.views.packets import (
    ASKING_HOW_IT_ENDED,
    IN_ORDER,
    ORDERED,
    Accept,
    AskHeld,
    AskHistory,
    AskState,
    Closed,
    Decide,
    Fetch,
    Fill,
    Gone,
    GroupPacket,
    Held,
    History,
    Installed,
    Join,
    Prepare,
    Promise,
    Refuse,
    Stale,
    StatePart,
    Status,
    Vote,
    Welcome,
)


class Reception:
    def __init__(self, membership: Membership) -> None:
        self.core = membership.core
        self.membership = membership

    def take_as_member(self, name: str, incarnation: int, packet: GroupPacket, *, hasty: bool) -> None:
        core, membership = self.core, self.membership
        rank = core.ranks.get((name, incarnation))
        here = rank is not None
        match packet:
            case Join():
                self._join_asked(name, packet)
            case AskState() if not here:
                membership.donor.state_asked(name, packet)
            case AskHistory():
                membership.donor.history_asked(name, packet, admitted=here)
            case Stale():
                membership.told_stale(packet)
            case Installed():
                membership.previous_view.has_installed(name, packet.epoch)
            case Decide() if packet.epoch < core.view.epoch:
                membership.say_installed(name)
            case Welcome() if packet.epoch == core.view.epoch:
                membership.say_installed(name)
            case _ if packet.epoch == core.view.epoch:
                if not isinstance(packet, IN_ORDER):
                    self._take_in_ballot(name, packet, hasty=hasty)
                elif rank is not None and core.is_myself_in_view():
                    self._take_in_order(name, rank, packet)

    def _take_in_ballot(self, name: str, packet: GroupPacket, *, hasty: bool) -> None:
        agreement = self.membership.agreement
        match packet:
            case Prepare():
                agreement.prepare_came(name, packet)
            case Promise():
                agreement.promise_came(name, packet, hasty=hasty)
            case Refuse():
                agreement.refused(packet.round)
            case Accept():
                agreement.accept_came(name, packet)
            case Vote():
                agreement.vote_came(name, packet.ballot)
            case Decide():
                self.membership.told_decision(name, packet.value)
            case Fetch():
                agreement.fetch_came(name, packet)
            case Fill():
                agreement.fill_came(packet)

    def _take_in_order(self, name: str, rank: int, packet: GroupPacket) -> None:
        core, ordering = self.core, self.membership.ordering
        if core.mode != "normal":
            return
        if isinstance(packet, AskHeld):
            core.send(Held(packet.epoch, packet.token, tuple(ordering.unstable.count)), (name,))
        elif isinstance(packet, Held):
            ordering.reads.answered(packet.token, name, packet.held)
            ordering.release()
        elif isinstance(packet, ORDERED):
            ordering.take(rank, packet)
        elif isinstance(packet, Status) and packet.known is not None:
            ordering.heard(rank, packet.known)

    def _join_asked(self, name: str, packet: Join) -> None:
        core, incarnation = self.core, packet.joiner.participant.incarnation
        if incarnation > core.view.latest.get(name, 0):
            self.membership.agreement.joiners[name] = packet.joiner
        elif core.is_here(name, incarnation):
            self.membership.previous_view.welcome((name,))
        else:
            core.send(Stale(core.view.epoch, core.view), (name,))

    def take_as_stranger(self, name: str, packet: GroupPacket) -> None:
        """Handle a packet at a process that is no member, and wants to join."""
        core, membership = self.core, self.membership
        match packet:
            case StatePart():
                membership.learner.state_came(name, packet)
            case History():
                membership.learner.history_came(name, packet)
            case Gone():
                membership.learner.gone_came(name)
            case Welcome():
                membership.welcomed(packet)
            case Stale():
                membership.told_stale(packet)
            case Closed():
                core.table = dict(packet.table)
                core.settle()
                core.mode = "closed"
                core.out.append(Close(packet.epoch))
            case _:
                self.take_after_the_end(name, packet)

    def answer_late(self, name: str, packet: GroupPacket) -> None:
        """Answer a process that is still in an earlier view: with the outcome if that was the view before this one, otherwise
        with `Stale`."""
        core = self.core
        if self.membership.previous_view.is_of(packet.epoch):
            self.membership.previous_view.tell(name, packet)
        elif core.mode in ("normal", "frozen", "closed") and not isinstance(packet, Fetch):
            core.send(Stale(core.view.epoch, core.view), (name,))

    def take_after_the_end(self, name: str, packet: GroupPacket) -> None:
        """Handle a packet at a process that has left, or whose group has ended: it only tells how its last view ended."""
        core, previous_view = self.core, self.membership.previous_view
        if isinstance(packet, Installed):
            previous_view.has_installed(name, packet.epoch)
        elif isinstance(packet, ASKING_HOW_IT_ENDED) and previous_view.is_of(packet.epoch):
            previous_view.tell(name, packet)
        elif core.mode == "closed" and isinstance(packet, (Join, AskState, AskHistory)):
            core.send(Closed(core.view.epoch, dict(core.table)), (name,))
