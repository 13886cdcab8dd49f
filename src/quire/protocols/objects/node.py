"""A member of a group of objects: orders the calls that conflict, and no others.

Objects live at members and call each other's operations; an operation may call further ones and answers when it is done. Where
two operations of an object conflict, all members that have both run them in the same order and one after the other; whatever
does not conflict runs side by side and as it comes. Every request has a Lamport stamp. One whose operation conflicts with
something waits until everything older has come (`exchange`) and until no older one that conflicts waits here (`queue`); others
start at once. A response says exactly which of its caller's other calls ended in its past (`vectors`), so it is delivered as
soon as those are. Calls that would wait in a cycle give way by the age of their roots and are tried again.

Source: T. Enokido, H. Higaki, M. Takizawa, "Group protocol for distributed replicated objects", ICPP 1998: significant
precedence (3.2), ordered delivery (3.3), object vectors (4.1), transmission and delivery (4.2, 4.3).

Assumes a network that may lose, repeat and reorder, but not for ever; agreed views remove who crashed (`departures`), and admit
whoever comes in its place (`returns`).

Guarantees, at every common destination: of two conflicting requests one goes first, the same everywhere, and if it
significantly precedes the other it is that one; responses to one instance come in significant order; conflicting instances of
an object never overlap, but for callers of each other; no tree of calls waits for ever.

Departs from the paper, whose rules lose order, contradict each other or stop (docs/papers.md; the tests keep them to show it):
every send is numbered (G1, G2, G9), by instance (G13); vectors are merged (G4), at abort too (G5), and taken at delivery (G6);
a request is ordered by its own stamp (G3) and only against requests (G7, G12); stability is a floor of all members' clocks
(G8); whatever may go is delivered, not only the head of the queue (G10); calls give way (G11). Beyond it: an operation that
conflicts with none does not wait for stability; waiting for operations that call nobody is never for ever, so nothing dies of
it, and replicas, whose operations may not call, all run the same requests.

Costs a request and a response for each destination, and while something waits for stability a heartbeat for each pair of
members. A vector has an entry for each instance that sent something that is not yet delivered everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from quire.protocols.node import Effects
from quire.protocols.objects.calls import Calls
from quire.protocols.objects.departures import Report
from quire.protocols.objects.notices import CaughtUp, Returned, StateCame, StateWanted
from quire.protocols.objects.packets import Part
from quire.protocols.objects.queue import Copy
from quire.protocols.objects.returns import Said

LIFE_BITS = 32
"""Each process of a member numbers its messages from where no other does."""
PIECE_BYTES = 1 << 20
"""A state may be long, and is handed over in pieces."""


class ObjectNode(Calls):
    # Members that are gone.

    def fence(self, members: Sequence[int]) -> Report:
        """The next view will not have these members: accept nothing more from them. Returns what the remaining members must
        know about them; call `install` with the union of what all of them return."""
        return {member: self.departures.fence(member, self.exchange.links[member].held()) for member in members}

    def install(self, now: int, union: Report) -> Effects:
        """The members that the union is about are gone."""
        begun = self.returns.begun.get(self.address, 0)
        for member, contents in union.items():
            # What was sent before this member came back went to the process before it, if to any.
            last = max(begun, self.exchange.links[member].last_clock)
            for content in contents if self.returns.is_back else ():
                if content.clock > last and self.address in self.departures.destinations(content):
                    self._accept(now, member, content)
            self.exchange.leave(member)
            self.departures.leave(member)
            self.returns.is_over(member)
        self.departures.lose(self.returns.without_state())
        for queue in self.queues.values():
            queue.free(self._is_orphan)
        for activity in list(self.activities.values()):
            told, without = self.departures.bereave(activity, self._responses.get(activity.instance, ()))
            self.exchange.out += told
            for call in without:
                self._go_on(now, activity, call)
            if activity.instance in self.activities:
                self._try_end(now, activity)
        self._call_what_was_put_off(now)
        self._give_up_lost_states()
        return self._flush(now)

    def _is_orphan(self, copy: Copy) -> bool:
        is_of_before = partial(self.returns.is_of_before, clock=copy.request.clock)
        return self.departures.is_orphan(copy.request.chain, copy.object, is_of_before)

    # Members that come back.

    def begin_life(self, life: int, others: Mapping[int, int]) -> None:
        """To be called first: this process takes the place of a lost one, with this number, among these members with theirs.
        Call `admitted` when all have reported their state. The application may begin when it is told that this member has
        caught up."""
        self.exchange.life = life
        for member in list(self.exchange.links):
            if member in others:
                self.exchange.admit(member, others[member])
            else:
                self.exchange.leave(member)
                self.departures.leave(member)
        self.number_from(life << LIFE_BITS)
        self.returns.begin()

    def admit(self, members: Mapping[int, int]) -> None:
        """The view has these members, which were gone and came back, with the numbers of their processes."""
        for member, life in members.items():
            self.exchange.admit(member, life)
            self.returns.admit(member)
        for queue in self.queues.values():
            for copy in queue.copies:
                self.returns.hold(copy)

    def stands(self) -> Said:
        """What all must know of this member before those that come back may begin."""
        sent = {member: link.sent for member, link in self.exchange.links.items()}
        returns, lost = self.returns, tuple(sorted(self.departures.lost))
        return Said(self.exchange.clock, sent, lost, tuple(sorted(returns.catching_up)), dict(returns.begun))

    def admitted(self, now: int, said: Mapping[int, Said]) -> Effects:
        """All members of the view, including those that came back, have reported."""
        clock = max(each.clock for each in said.values())
        self.exchange.clock = max(self.exchange.clock, clock)
        self.returns.admitted(said, clock)
        if not self.returns.is_back:
            self.departures.lost.update(*(each.lost for each in said.values()))
        self._give_up_lost_states()
        return self._flush(now)

    def caught_up(self, now: int, member: int) -> Effects:
        """All members are told that this member has the states of its objects."""
        self.returns.is_over(member)
        if member == self.address:
            self.returns.is_back = True
            self.exchange.out.append(Returned())
        self._call_what_was_put_off(now)
        return self._flush(now)

    def hand_over(self, now: int, name: str, to: Sequence[int], state: bytes, wrong: str = "") -> Effects:
        """The requested state of an object. `wrong`: why there is none."""
        pieces = [state[start : start + PIECE_BYTES] for start in range(0, len(state), PIECE_BYTES)] or [b""]
        for number, piece in enumerate(pieces, 1):
            clock = self.exchange.tick().clock
            self._post(now, to, Part(clock, clock, name, piece, number == len(pieces), wrong))
        return self._flush(now)

    def restored(self, now: int, name: str) -> Effects:
        """The object has taken over the state."""
        self.returns.awaited.discard(name)
        self._tell_if_caught_up()
        return self._flush(now)

    def _hand_over_what_is_due(self) -> None:
        if self.returns.catching_up:
            received = {member: link.received for member, link in self.exchange.links.items()}
            self.exchange.out += [StateWanted(name, to) for name, to in self.returns.to_hand_over(self.queues, received)]

    def _take_part(self, source: int, part: Part) -> None:
        state = self.returns.take(source, part.object, part.state, last=part.last)
        if state is not None:
            self.exchange.out.append(StateCame(part.object, state, part.wrong))

    def _give_up_lost_states(self) -> None:
        """At a member that came back: objects whose state nobody can hand over are lost."""
        if not self.returns.is_back and self.address in self.returns.begun:
            self.returns.awaited -= self.departures.lost
            self._tell_if_caught_up()

    def _tell_if_caught_up(self) -> None:
        if not self.returns.awaited and not self.returns.has_told:
            self.returns.has_told = True
            self.exchange.out.append(CaughtUp())

    def _call_what_was_put_off(self, now: int) -> None:
        put_off, self._waiting = self._waiting, {}
        for instance, number in put_off:
            activity = self.activities.get(instance)
            call = None if activity is None else activity.open.get(number)
            if activity is not None and call is not None and not call.waiting:
                self._go_on(now, activity, call)
