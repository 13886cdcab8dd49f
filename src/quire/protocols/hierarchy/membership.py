"""Membership changes in a hierarchy: sites join, leave, move and are replaced as agents, while all others go on.

A site that joins has sent and received nothing, so nobody needs to wait: the agent of its cluster gives it a slot, sends it the
tree, and announces it to all in one ordinary multicast; the copy for the new site is its welcome. Any site that may have heard
of the new one has received that letter before, and so have all sites on the way to it.

Whatever changes a path needs a barrier, because a message on the old path and one on the new are ordered by different
clusters. It has two phases, about a *pivot*, the site that moves, leaves or is replaced. First the pivot asks all others
to send nothing more that passes it, and they answer in order with all that they sent before; with the last answer nothing
is on its way to the pivot. Then it tells everybody to flush: a site that has delivered this has delivered everything in the
pivot's past, and says so past all ordering. Only then is the path changed. The first phase alone would not do: what the
pivot delivers while it waits for answers becomes part of its past.

Source: the paper leaves this out (Y6 in docs/papers.md); with these rules, no random run broke the order or lost a message.
Assumes: changes come one at a time: the driver of the group begins one when the last is no longer `changing` anywhere.
Guarantees: causal order and delivery of everything, across changes. What is sent to a site that left is refused.
Departures: a site that must not send refuses with WindowFull, and its driver keeps the message; so there is no other buffer
for what waits for a move. A new agent takes over once everybody knows of it, so that nobody meets a site on the way that
does not. A coordinator's cluster begins anew under its successor. Leaving is a barrier, too.
Cost: a join takes a multicast and n acknowledgements; a move or a replacement takes three multicasts, n answers and 2n
acknowledgements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from quire.model.errors import ProtocolViolation, WindowFull
from quire.model.messages import NUMBER_MAX
from quire.model.packets import Packet
from quire.protocols.clusters.errors import (
    BufferOverflow,
    ChangeUnderWay,
    InvalidHierarchy,
    NotInCluster,
    StaleIncarnation,
    UnknownSite,
)
from quire.protocols.clusters.held import Arrival, shown
from quire.protocols.clusters.packets import EVERYBODY, Carrier, Down, Letter, Sites, Tagged, Up
from quire.protocols.clusters.site import APPLICATION, Site
from quire.protocols.clusters.tree import Routes, Tree, routes_of
from quire.protocols.contract import NOTHING, UNSOUND, Effect, Effects, Send, Waiting
from quire.protocols.hierarchy.notes import (
    ADMIT,
    ASK,
    ATTACH,
    FLUSHED,
    SWITCHED,
    YOU,
    Answer,
    Change,
    Control,
    Flush,
    Joined,
    Left,
    Note,
    Replaced,
    Resume,
    Stop,
    apply,
    is_client,
    is_possible,
    may_leave,
    read_note,
    read_tree,
    sponsors,
    write_note,
)

MOVE, LEAVE, REPLACE = "move", "leave", "replace"
STOPPING, FLUSHING, SWITCHING = "stopping", "flushing", "switching"


class Barrier(msgspec.Struct, frozen=True):
    """What the pivot of a change is waiting for. `other`: the agent of the cluster to which the pivot moves, or the agent
    that replaces it."""

    why: str
    phase: str
    number: int
    other: int
    awaited: frozenset[int]


class DynamicSite(Site):
    """A site of a hierarchy whose members may change."""

    packets: ClassVar[tuple[type[Packet], ...]] = (Tagged, Up, Down, Control)
    slack = 1

    def __init__(self, me: int, members: int, tree: Tree, encoding: str, held: int) -> None:
        super().__init__(me, members, tree, encoding, held)
        self.before: Routes = self.routes
        """The routes before the last change, by which what concerns the one who left still finds its way."""
        self.was_in = me in self.routes.homes
        self.joining = False
        self.welcome = self.was_in
        """Whether this site may send."""
        self.number = 0
        """Of the last note for which this site awaited something."""
        self.barrier: Barrier | None = None
        self.announced: frozenset[int] = frozenset()
        """Who has not acknowledged the newcomer that this site announced."""
        self.stopped: dict[int, bool] = {}
        """The pivots that nothing may pass; true once the tree has changed and nothing may be sent at all."""
        self.unplaced: list[tuple[int, Carrier]] = []
        """Packets for which the tree here is too old."""

    @property
    def changing(self) -> bool:
        """Whether this site takes part in a change that is not finished."""
        return bool(self.barrier or self.announced or self.joining or self.stopped)

    def join(self, sponsor: int) -> Effects:
        """Join the lowest cluster of the member `sponsor`, which must be its agent; then wait for the welcome."""
        return self._ask(sponsor, ASK)

    def attach(self, sponsor: int) -> Effects:
        """Join as the agent of a new cluster, in the cluster of agents of the member `sponsor`, which must be its agent; at
        the top, its coordinator or, if there is none, any of its members. Once welcomed, others may join the new cluster."""
        return self._ask(sponsor, ATTACH)

    def _ask(self, sponsor: int, what: int) -> Effects:
        if self.site in self.routes.homes and self.welcome:
            raise InvalidHierarchy(f"member {self.me} is already in the hierarchy; move it instead")
        self._check_idle()
        if self.was_in:
            self.site += self.members
        self.was_in = self.joining = True
        return (Send(Control(YOU, self.site, what, YOU, b""), (sponsor,)),)

    def leave(self) -> Effects:
        """Leave once everything that concerns this site is delivered. It must not be an agent, except of a cluster in which
        it is alone, which then disappears."""
        return self._begin(LEAVE, YOU)

    def move(self, sponsor: int) -> Effects:
        """Move to the lowest cluster of the member `sponsor`, which must be its agent. This site must not be an agent."""
        other = self.site_of(sponsor)
        if sponsors(self.routes, other, 1) is None:
            number = self.routes.homes[other][0]
            raise InvalidHierarchy(f"site {other} is not the agent of cluster {number}; move to its agent")
        return self._begin(MOVE, other)

    def replace(self, successor: int) -> Effects:
        """Make the member `successor`, of the same lowest cluster, the agent wherever this site is one."""
        other = self.site_of(successor)
        if not is_possible(self.routes.tree, Replaced(0, self.site, other)):
            raise NotInCluster(other, self.routes.homes[self.site][0])
        return self._begin(REPLACE, other)

    def _check_idle(self) -> None:
        if self.changing:
            raise ChangeUnderWay("another change of membership is under way; wait until it is finished")

    def _begin(self, why: str, other: int) -> Effects:
        if self.site not in self.routes.homes or not self.welcome:
            raise UnknownSite(self.site)
        self._check_idle()
        allowed = {LEAVE: may_leave, MOVE: is_client}.get(why)
        if allowed is not None and not allowed(self.routes.tree, self.site):
            raise InvalidHierarchy(f"site {self.site} is an agent; replace it first")
        effects: list[Effect] = []
        self._await(why, STOPPING, other, Stop(self.site, self.number + 1), effects)
        return effects

    def _await(self, why: str, phase: str, other: int, note: Note, effects: list[Effect]) -> None:
        """Tell all others, and wait for their answers."""
        self.number += 1
        others = self._others()
        self.barrier = Barrier(why, phase, self.number, other, frozenset(others))
        self._tell(note, others, effects)
        if not others:
            self._advance(effects)

    def _others(self) -> Sites:
        return tuple(site for site in self.routes.everyone if site != self.site)

    def _tell(self, note: Note, dests: Sites, effects: list[Effect]) -> None:
        if dests:
            effects += self._work([Arrival(Letter(self.site, note=write_note(note)), dests, APPLICATION)])

    def site_of(self, member: int) -> int:
        if 0 <= member < self.members and self.routes.everyone:
            for site in range(member, self.routes.everyone[-1] + 1, self.members):
                if site in self.routes.homes:
                    return site
        raise UnknownSite(member)

    def _check_free(self, dests: Sites) -> None:
        if not self.welcome and not self.joining:
            raise UnknownSite(self.site)
        if self.barrier is not None or self.joining:
            raise WindowFull(f"member {self.me} is moving; send again when it has moved")
        for pivot, wholly in self.stopped.items():
            asked = self.routes.everyone if dests == EVERYBODY else dests
            if wholly or any(self.routes.touches(self.site, dest, pivot) for dest in asked):
                raise WindowFull(f"site {pivot} is moving; send again when it has moved")

    def receive(self, source: int, packet: Packet) -> Effects:
        tree = self.routes
        if isinstance(packet, Control):
            self._check_peer(source)
            effects = self._on_control(source, packet)
        else:
            effects = super().receive(source, packet)
        if self.routes is not tree and self.unplaced:
            effects = [*effects, *self._place()]
        return effects

    def _for_another_life(self, source: int, packet: Carrier) -> Effects:
        if not 0 <= packet.life < self.site // self.members:
            raise StaleIncarnation(source, f"a packet is for incarnation {packet.life} of member {self.me}, which is to come")
        return NOTHING  # It repeats what came to an earlier one.

    def _unplaced(self, source: int, packet: Carrier) -> Effects:
        cluster = self.routes.clusters.get(packet.cluster)
        ahead = cluster is not None and packet.cluster in self.orderings and packet.slot == len(cluster.sites)
        admitted = not self.joining or self.orderings
        if admitted and not ahead:
            if packet.cluster in self.orderings or not 0 <= packet.cluster <= max(self.routes.clusters):
                raise StaleIncarnation(source, f"cluster {packet.cluster} is not here, or has no slot {packet.slot}")
            return NOTHING  # It is of a cluster that this site has left, and repeats what came before.
        if (source, packet) in self.unplaced:
            return NOTHING
        weight = packet.letter.weight
        if weight < 1 or (not packet.note and not packet.run.is_sound()):
            raise ProtocolViolation(source, UNSOUND)
        if self.held + weight > self.held_max:
            raise BufferOverflow(self.site, packet.cluster, packet.slot, self.held)
        self.held += weight
        self.unplaced.append((source, packet))
        return NOTHING

    def _place(self) -> list[Effect]:
        """Process what waited for the tree to change."""
        waiting, self.unplaced = self.unplaced, []
        effects: list[Effect] = []
        for source, packet in waiting:
            self.held -= packet.letter.weight
            try:
                effects += super().receive(source, packet)
            except ProtocolViolation:
                continue  # Its link cannot be closed any more for this; it is as if it had not come.
        return effects

    def _check_stranger(self, source: int, site: int) -> None:
        """The letter may refer to a newer tree, which will be installed before it is delivered."""
        if not 0 <= site <= NUMBER_MAX:
            super()._check_stranger(source, site)

    def _check_note(self, source: int, packet: Carrier) -> None:
        if read_note(packet.note) is None:
            raise ProtocolViolation(source, "a note cannot be read")

    def _founders_in(self, number: int) -> Iterable[int]:
        present = self.routes.slots[number]
        if self.routes.everyone is self.founders:
            return present
        return [site for site in present if site in self.founders]

    def _on_note(self, letter: Letter, effects: list[Effect]) -> None:
        note, source = read_note(letter.note), letter.source
        barrier = self.barrier
        if isinstance(note, Stop):
            if note.site == source and source in self.routes.homes:
                self.stopped[source] = False
                self._tell(Answer(note.number), (source,), effects)
        elif isinstance(note, Answer):
            if barrier is not None and (barrier.phase, barrier.number) == (STOPPING, note.number):
                self._heard(source, effects)
        elif isinstance(note, Flush):
            self._control(source, FLUSHED, note.number, effects)
        elif isinstance(note, Resume):
            self.stopped.pop(note.site, None)
        elif note is not None:
            self._on_change(source, note, effects)

    def _on_change(self, source: int, change: Change, effects: list[Effect]) -> None:
        if isinstance(change, Joined) and change.site == self.site:
            self.joining, self.welcome = False, True
        elif is_possible(self.routes.tree, change):
            self._switch(apply(self.routes.tree, change))
            if isinstance(change, Joined):
                self.stopped.pop(change.earlier, None)
            elif isinstance(change, Left):
                self.stopped.pop(change.site, None)
            else:
                self.stopped[change.old] = True
        else:
            return
        self._control(source, SWITCHED, change.number, effects)

    def _switch(self, tree: Tree) -> None:
        self.before, self.routes = self.routes, routes_of(tree)
        self._enter_clusters()

    def _heard(self, source: int, effects: list[Effect]) -> None:
        """One of the sites for which the pivot waits has answered."""
        if self.barrier is not None:
            self.barrier = msgspec.structs.replace(self.barrier, awaited=self.barrier.awaited - {source})
            if not self.barrier.awaited:
                self._advance(effects)

    def _advance(self, effects: list[Effect]) -> None:
        """All have answered the pivot: go on to the next phase."""
        barrier = self.barrier
        assert barrier is not None
        why, other, number = barrier.why, barrier.other, self.number + 1
        if barrier.phase == STOPPING:
            self._await(why, FLUSHING, other, Flush(number), effects)
        elif barrier.phase == FLUSHING and why == MOVE:
            earlier, self.barrier = self.site, None
            self.site, self.joining, self.welcome = self.site + self.members, True, False
            self.orderings.clear()
            effects.append(Send(Control(YOU, self.site, ASK, earlier, b""), (other % self.members,)))
        elif barrier.phase == FLUSHING:
            change: Change = Left(number, self.site) if why == LEAVE else Replaced(number, self.site, other)
            self._await(why, SWITCHING, other, change, effects)
        else:
            self.barrier = None
            if why == LEAVE:
                self.welcome = False
                self._switch(apply(self.routes.tree, Left(number, self.site)))
                return
            self._switch(apply(self.routes.tree, Replaced(number, self.site, other)))
            self._tell(Resume(self.site), self._others(), effects)

    def _control(self, to: int, what: int, number: int, effects: list[Effect]) -> None:
        self._pass_on(Control(to, self.site, what, number, b""), effects)

    def _pass_on(self, control: Control, effects: list[Effect]) -> None:
        for routes in (self.routes, self.before):
            if control.to in routes.homes and self.site in routes.homes and control.to != self.site:
                member = routes.next_hop(self.site, control.to).member
                effects.append(Send(control, (member % self.members,)))
                return

    def _on_control(self, source: int, packet: Control) -> Effects:
        effects: list[Effect] = []
        if packet.what in (ASK, ATTACH):
            self._on_ask(source, packet, effects)
        elif packet.what == ADMIT:
            self._on_admit(source, packet)
        elif packet.what not in (FLUSHED, SWITCHED) or packet.to < 0:
            raise ProtocolViolation(source, "a control packet is about nothing known")
        elif packet.to != self.site:
            self._pass_on(packet, effects)
        elif packet.what == SWITCHED and packet.number == self.number and packet.source in self.announced:
            self.announced -= {packet.source}
        else:
            phase = FLUSHING if packet.what == FLUSHED else SWITCHING
            barrier = self.barrier
            if barrier is not None and (barrier.phase, barrier.number) == (phase, packet.number):
                self._heard(packet.source, effects)
        return effects

    def _on_ask(self, source: int, packet: Control, effects: list[Effect]) -> None:
        """A site wants to join this one's lowest cluster, or, with a cluster of its own, the cluster of agents."""
        homes = self.routes.homes
        if packet.source % self.members != source or packet.source < 0:
            raise ProtocolViolation(source, f"it is not site {packet.source}")
        if packet.source in homes or packet.source in self.routes.tree.spent:
            return
        earlier = packet.number
        if earlier != YOU and earlier != packet.source - self.members:
            raise ProtocolViolation(source, f"it was not site {earlier}")
        cluster = sponsors(self.routes, self.site, 1 if packet.what == ASK else 2)
        if cluster is None or any(site % self.members == source and site != earlier for site in self.routes.everyone):
            raise ProtocolViolation(source, "it asks a site that is not an agent, or is already in the hierarchy")
        if self.barrier is not None or self.announced:
            raise BufferOverflow(self.site, cluster.number, source, self.held)
        self.number += 1
        joined = Joined(self.number, packet.source, cluster.number, earlier)
        self._switch(apply(self.routes.tree, joined))
        self.stopped.pop(earlier, None)
        self.announced = frozenset(self._others())
        admit = Control(packet.source, self.site, ADMIT, self.number, write_note(self.routes.tree))
        effects.append(Send(admit, (source,)))
        self._tell(joined, self._others(), effects)

    def _on_admit(self, source: int, packet: Control) -> None:
        tree = read_tree(packet.body)
        if not self.joining or packet.to != self.site or self.orderings:
            return
        if tree is None or not tree.clusters or self.site not in routes_of(tree).homes:
            raise ProtocolViolation(source, "it admits this site to an invalid tree")
        self._switch(tree)

    def waiting(self) -> Sequence[Waiting]:
        late = [
            Waiting(shown(packet.letter), (source,), "it is newer than the hierarchy known here")
            for source, packet in self.unplaced
        ]
        return [*super().waiting(), *late]
