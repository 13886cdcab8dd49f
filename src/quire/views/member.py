"""One member of a group whose membership changes, as a state machine without input or output.

Inputs are its methods: `submit`, `read`, `leave`, `move`, `close`; `receive`, for a packet; `tick`, when some time has passed;
`suspect` and `trust`, from the failure detector; `synced`, when the journal is durable up to a record; `checkpointed`, with a
snapshot that was asked for. Each returns effects, in order. There is no clock, socket, file or randomness in here.

It needs reliable FIFO links between running processes. What was sent to a process that has ended is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.model.errors import BadInput
from quire.model.payloads import Messages
from quire.views.core import GroupSettings
from quire.views.effects import Effect, Leave, LeaveRefused
from quire.views.membership import Membership
from quire.views.packets import ASKING_HOW_IT_ENDED, IN_VIEW, ORDERED, AskHeld, GroupPacket, Status
from quire.views.reception import Reception
from quire.views.records import Kept, Record, Submitted
from quire.views.standstill import slow_relays
from quire.views.view import Participant

NOTHING: Sequence[Effect] = ()


class Member:
    """A member of a group. `Member(…)` makes one that was never in the group; `founds`: whether it is a founder, which may vote
    for the first view. The caller must know, durably, that this founder was never started before. `Member.restart(…)` makes
    one from its journal."""

    def __init__(self, settings: GroupSettings, me: Participant, session: str, *, founds: bool) -> None:
        self._begin(Membership.begin(settings, me, session, founds=founds))

    @classmethod
    def restart(cls, settings: GroupSettings, records: Iterable[Record]) -> Member:
        member = cls.__new__(cls)
        member._begin(Membership.recover(settings, records))
        return member

    def _begin(self, membership: Membership) -> None:
        self.core = membership.core
        self.membership = membership
        self._reception = Reception(membership)
        self._future: list[tuple[str, int, GroupPacket]] = []
        """Packets that came before their view began here."""
        self._rounds = 0
        self.waits = False
        """Whether acknowledgements wait for the application, so that `end_turn` must be called again."""

    def start(self) -> list[Effect]:
        """The first effects of a process: the records that it writes, and the state that it recovered."""
        return self._effects()

    # What the application wants.

    def submit(self, messages: Messages) -> list[Effect]:
        """Have these operations executed once, in order, at every member. Their bytes must not change any more."""
        core = self.core
        if core.closing or core.leaving or core.mode in ("left", "closed"):
            raise BadInput("the group is closing, or this member is leaving, so nothing more can be submitted")
        first = core.operations.submit(messages)
        if core.settings.journal:
            core.operations.written(core.save(Submitted(first, tuple(messages.payloads))))
        else:
            core.operations.may_be_sent()
        return self._effects()

    def read(self, token: int) -> list[Effect]:
        """Ask to be told when the state here has every operation that was completed before now."""
        self.membership.reads.append(token)
        return self._effects()

    def leave(self) -> list[Effect]:
        """Leave the group, once everything that was sent is delivered."""
        core = self.core
        if core.closing:
            raise BadInput("the group is closing, so members cannot leave it any more")
        core.leaving = True
        if core.mode == "joining":
            # It may have been admitted meanwhile. The others learn from its next incarnation that it does not come.
            self.membership.come_back(core.me.incarnation + 1)
            core.mode = "left"
            core.out.append(Leave(core.view.epoch))
        return self._effects()

    def move(self, cluster: str) -> list[Effect]:
        """Move to another cluster, from the next view on."""
        core = self.core
        if core.closing or core.leaving or core.mode in ("left", "closed"):
            raise BadInput("the group is closing, or this member is leaving, so it cannot move any more")
        self.membership.move(cluster)
        return self._effects()

    def close(self) -> list[Effect]:
        """End the group for all members, once everything that was submitted anywhere is delivered everywhere."""
        if self.core.leaving:
            raise BadInput("this member is leaving, so it cannot close the group")
        self.core.closing = True
        return self._effects()

    def checkpointed(self, state: bytes | bytearray) -> list[Effect]:
        self.membership.donor.checkpointed(state)
        return self._effects()

    def to_keep(self) -> Kept | None:
        """A record of everything that is still needed of the journal so far, so that a new journal can begin with it and with
        the application's present state; None while the member is not in a view, or in a view change."""
        membership = self.membership
        return membership.ordering.to_keep(membership.previous_view.packed()) if self.core.mode == "normal" else None

    # What is known of others, and of the disk.

    def suspect(self, name: str) -> list[Effect]:
        self.core.suspects.add(name)
        if self.membership.takes_part():
            self.membership.agreement.drop_silent_holders()
        return self._effects()

    def trust(self, name: str) -> list[Effect]:
        self.core.suspects.discard(name)
        return self._effects()

    def greet(self, name: str, incarnation: int) -> list[Effect]:
        """A connection with a process is new: send it the status that it will have missed."""
        core = self.core
        core.names.add(name)
        core.heard[name] = max(core.heard.get(name, 0), incarnation)
        known = self.membership.ordering.known() if core.mode == "normal" else None
        core.send(Status(core.view.epoch, known), (name,))
        if self.membership.takes_part():
            self.membership.agreement.ask_again(name)
        return self._effects()

    def progress(self) -> object | None:
        """A value that changes whenever there is progress for operations or reads that wait here; None where none wait."""
        core, ordering = self.core, self.membership.ordering
        if core.mode != "normal" or not (core.operations.unsettled() or ordering.reads.rounds):
            return None
        return core.position, core.operations.settled, ordering.knowledge.stable(ordering.rank)

    def is_awaited(self) -> bool:
        """Whether others may still need to learn from this process, which is in no view any more, how its last one ended."""
        return self.core.mode in ("left", "closed") and self.membership.previous_view.is_awaited()

    def waits_for(self) -> set[str]:
        """The members from which this one needs packets to make progress."""
        found = self.membership.waiting_runs() if self.core.mode == "normal" else []
        return {name for each in found for name in each.waits_for}

    def slow_relays(self) -> dict[str, int]:
        """The relays that other members wait for to forward this one's messages, and how many of them each has taken."""
        return slow_relays(self.membership.ordering) if self.core.mode == "normal" else {}

    def synced(self, number: int) -> list[Effect]:
        """The journal is durable up to this record."""
        self.core.synced(number)
        self.core.operations.synced(number)
        if self.membership.takes_part():
            self.membership.ordering.synced()
            self.membership.agreement.count_own_vote()
        return self._effects()

    # Time.

    def tick(self) -> list[Effect]:
        """Send heartbeats, repeat what others may have missed, and go on with joining or with a view change."""
        core, membership = self.core, self.membership
        known = membership.ordering.known() if core.mode == "normal" else None
        core.send(Status(core.view.epoch, known), core.names)
        core.want_sync()
        if core.mode == "normal":
            membership.ordering.trim()
        membership.previous_view.tell_again()
        membership.donor.tick()
        if core.mode == "joining":
            membership.learner.tick()
        elif membership.takes_part():
            self._agree()
        return self._effects()

    def start_ballot(self, *, hasty: bool = False) -> list[Effect]:
        """Begin a view change now, whether or not there is a cause."""
        if self.membership.takes_part() and self.membership.agreement.decided is None:
            self.membership.agreement.start(hasty=hasty)
        return self._effects()

    def _agree(self) -> None:
        """Go on with the ballot that this member leads, or begin one if there is a cause."""
        core, agreement = self.core, self.membership.agreement
        campaign = agreement.campaign
        if core.leaving and len(core.view.members) == 1:
            core.leaving = False
            core.out.append(LeaveRefused(core.view.epoch))
        if agreement.decided is not None:
            self.membership.fetch_cut(core.names)
        elif campaign is not None:
            campaign.age += 1
            agreement.drop_silent_holders()
            patience = core.settings.founding_patience if core.view.epoch == 1 else core.settings.promise_patience
            is_complete = core.view.epoch > 1 and campaign.has_all_of(core.awaited())
            if agreement.is_asking() and campaign.is_backed() and (is_complete or campaign.age > patience):
                agreement.pull()
            elif campaign.age > patience + core.settings.patience:
                agreement.campaign = None
        elif self.has_cause() and core.view.is_quorum(core.trusted(), core.settings.tie):
            # The first trusted member begins a ballot at once, and each of the others only if those before it do not succeed. A
            # member that has promised to another trusted one gives that one the time that it may need.
            agreement.waited += 1
            before = [name for name in core.view.names() if name in core.trusted()].index(core.me.name)
            under_way = agreement.promised.name in core.trusted() - {core.me.name}
            if agreement.waited > before * core.settings.patience + core.settings.promise_patience * under_way:
                agreement.waited = 0
                agreement.start()

    def has_cause(self) -> bool:
        """Whether there is a cause for a view change."""
        core = self.core
        if core.mode == "frozen" or core.leaving or core.has_moved():
            return True
        changed = any(core.heard.get(member.name, 0) > member.incarnation for member in core.view.members)
        lost = any(name in core.suspects for name in core.view.names() if name != core.me.name)
        admits = bool(self.membership.agreement.admissible())
        return changed or lost or admits or (core.closing and core.operations.is_drained())

    # Packets.

    def receive(
        self, name: str, incarnation: int, packet: GroupPacket, *, hasty: bool = False, more: bool = False
    ) -> Sequence[Effect]:
        """Take a packet from a process. `hasty`: a ballot that a quorum backs does not wait for further promises. `more`: the
        turn goes on until `end_turn`, so that what can be batched with later packets waits for that."""
        core = self.core
        if core.heard.get(name, -1) < incarnation:
            core.names.add(name)
            core.heard[name] = incarnation
        if packet.epoch == core.view.epoch and core.mode == "normal" and isinstance(packet, ORDERED):
            # The fast path: nearly all packets are of this kind. Deliveries and answers wait for the end of the turn.
            rank = core.ranks.get((name, incarnation))
            if rank is not None:
                self.membership.ordering.take(rank, packet)
            return NOTHING if more else self._effects()
        if core.mode == "normal":
            self.membership.ordering.settle()
        if packet.epoch > core.view.epoch and isinstance(packet, IN_VIEW):
            self._future.append((name, incarnation, packet))
        elif isinstance(packet, ASKING_HOW_IT_ENDED) and packet.epoch < core.view.epoch:
            self._reception.answer_late(name, packet)
        elif self.membership.takes_part():
            self._reception.take_as_member(name, incarnation, packet, hasty=hasty)
        elif core.mode == "joining":
            self._reception.take_as_stranger(name, packet)
        else:
            self._reception.take_after_the_end(name, packet)
        return self._effects(more=more)

    def end_turn(self, *, may_wait: bool = False) -> list[Effect]:
        """The last of the packets that came together was received: deliver, send what was batched, and ask for syncs.
        `may_wait`: this is called again after the application has seen what is delivered now, so that acknowledgements can wait
        for its next message, which carries them."""
        core, settled = self.core, self.core.operations.settled
        if not may_wait:
            return self._effects()
        self._go_on()
        # An application that waited for its own message is likely to send the next one at once.
        waits = core.mode == "normal" and core.operations.settled > settled and self.membership.ordering.owes()
        return self._end_turn(waits=waits)

    # What follows from what came.

    def _effects(self, *, more: bool = False) -> list[Effect]:
        """Go on as far as possible, and return the effects."""
        self._go_on()
        return self.core.take_effects() if more else self._end_turn(waits=False)

    def _go_on(self) -> None:
        membership = self.membership
        if membership.agreement.decided is not None:
            membership.conclude()
        while self._future and self._replay_one():
            membership.conclude()
        if self.core.mode == "normal":
            membership.ordering.settle()
            if membership.reads:
                self._ask_for_reads()

    def _end_turn(self, *, waits: bool) -> list[Effect]:
        core, self.waits = self.core, waits
        if core.mode == "normal" and not waits:
            self.membership.ordering.end_turn()
        core.ask_for_sync()
        return core.take_effects()

    def _replay_one(self) -> bool:
        """Handle the first stored packet whose view has begun; returns whether there was one."""
        core = self.core
        if core.mode == "joining":
            return False
        for index, (name, incarnation, packet) in enumerate(self._future):
            if packet.epoch <= core.view.epoch:
                del self._future[index]
                if packet.epoch == core.view.epoch and self.membership.takes_part():
                    self._reception.take_as_member(name, incarnation, packet, hasty=False)
                return True
        return False

    def _ask_for_reads(self) -> None:
        """Begin one round of questions for all reads that wait."""
        core, ordering, reads = self.core, self.membership.ordering, self.membership.reads
        self._rounds += 1
        ordering.reads.begin(self._rounds, list(reads))
        reads.clear()
        ordering.reads.answered(self._rounds, core.me.name, tuple(ordering.unstable.count))
        core.send(AskHeld(core.view.epoch, self._rounds), core.view.names())
        ordering.release()
