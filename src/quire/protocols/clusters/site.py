"""A site: one ordering of messages for each cluster that it belongs to, and one relay between them.

A letter that a cluster delivers here is handed to the application if it is for this site, and injected into the next
cluster on its way if it is for others. Everything that happens to a site is one step: a packet or a message of the
application comes in, and what follows from it is worked off, in order, before the next. So the order in which a site
takes letters from one cluster is the order in which it passes them on in the next, with its own messages among them, and
every cluster's order is built on that of the last.

This is what `matrix`, `coordinator` and `hierarchy` have in common; the first two are one cluster of all sites.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from quire.model.errors import BadInput, ProtocolViolation, WindowFull
from quire.model.messages import Run
from quire.model.orders import RELIABLE, Guarantee
from quire.model.packets import Packet
from quire.protocols.clusters import encoding as tags
from quire.protocols.clusters.coordinator import Coordinated
from quire.protocols.clusters.errors import BufferOverflow, GapTimeout, UnknownDestination, UnknownSite
from quire.protocols.clusters.held import Arrival, Ordering, held_in
from quire.protocols.clusters.matrix import Matrix
from quire.protocols.clusters.packets import EVERYBODY, Carrier, Down, Letter, Sites, Tagged, Up
from quire.protocols.clusters.tree import MATRIX, Tree, routes_of
from quire.protocols.contract import NOTHING, Deliver, Effect, Effects, Links, Protocol, Send, Waiting, misplaced

APPLICATION = -1
"""In the place of the cluster from which a letter came."""


class Site(Protocol):
    """One site of a tree of clusters. Sites have the numbers of their members, until one comes back under a new number."""

    promises = RELIABLE | {Guarantee.CAUSAL, Guarantee.FIFO}
    links = Links.RELIABLE
    packets: ClassVar[tuple[type[Packet], ...]] = (Tagged, Up, Down)
    addressed = True
    relays = True
    wakes_on_packets = True  # A relay frees its buffers without delivering anything, and a note may end a change.
    slack = 0
    """How many members of a cluster a peer may know that are not known here."""
    has_keys = False
    """Whether the coordinator's order is that of the whole group, and worth giving to the application."""

    def __init__(self, me: int, members: int, tree: Tree, encoding: str, held: int) -> None:
        super().__init__(me, members)
        self.site = me
        self.encoding = encoding
        self.held_max = held
        self.routes = routes_of(tree)
        self.founders = self.routes.everyone
        self.orderings: dict[int, Ordering] = {}
        self.next = 0
        """The number of the next own message."""
        self.held = 0
        """How many messages the clusters hold back here."""
        self.unreturned: deque[Run] = deque()
        """Own messages to this site itself that have gone up and not come down."""
        self._enter_clusters()

    def _enter_clusters(self) -> None:
        """Keep an ordering for each cluster in which this site is, and for no other."""
        present = self.routes.homes.get(self.site, ())
        for number in present:
            cluster = self.routes.clusters[number]
            ordering = self.orderings.get(number)
            if ordering is not None:
                ordering.grow(len(cluster.sites))
                continue
            slots = self.routes.slots[number]
            if cluster.inside == MATRIX:
                self.orderings[number] = Matrix(slots[self.site], len(cluster.sites), self.encoding)
            else:
                self.orderings[number] = Coordinated(slots[self.site], len(cluster.sites), slots[cluster.coordinator])
        for number in [number for number in self.orderings if number not in present]:
            del self.orderings[number]

    def audience(self) -> tuple[int, ...]:
        """The members to which `submit` sends now."""
        return tuple(site % self.members for site in self.routes.everyone)

    def expects(self, packet: Packet) -> bool:
        if not isinstance(packet, Carrier) or packet.note:
            return False
        return not packet.dests or packet.dests == EVERYBODY or self.site in packet.dests

    def neighbours(self) -> tuple[int, ...]:
        return tuple(sorted(site % self.members for site in self.routes.neighbours(self.site)))

    def passes_on(self, source: int) -> tuple[int, ...]:
        onward: set[int] = set()
        for number, ordering in self.orderings.items():
            present = {site % self.members for site in self.routes.slots[number] if site != self.site}
            # A coordinator sends what comes from a member to all members, that one included; others leave the cluster.
            if source not in present or (isinstance(ordering, Coordinated) and ordering.coordinates):
                onward |= present
        return tuple(sorted(onward))

    def passes(self, source: int, dest: int, by: int) -> bool:
        return by not in (source, dest) and self.routes.touches(source, dest, by)

    def role(self) -> str:
        return self.routes.role(self.site)

    def gap(self) -> GapTimeout | None:
        """The first missing packet for which something is held back here."""
        for number, ordering in self.orderings.items():
            missing = ordering.gap()
            if missing is not None:
                return GapTimeout(self.site, number, self.routes.clusters[number].sites[missing[0]], missing[1])
        return None

    def submit(self, run: Run) -> Effects:
        everyone = self.routes.everyone
        effects = self._post(run, EVERYBODY if everyone is self.founders else everyone)
        if self.members == 1:
            # There is nobody to send it to, but whoever keeps what is sent has it in a packet.
            alone = Tagged(0, 0, 0, self.site, (), run, b"", tags.DENSE, ())
            return [Send(alone, ()), *effects]
        return effects

    def send(self, run: Run, to: tuple[int, ...]) -> Effects:
        """Send a run to these members. Raises UnknownDestination if one of them is not in the hierarchy."""
        if not to or len(set(to)) != len(to):
            raise BadInput("name at least one destination, and none twice")
        return self._post(run, tuple(map(self._destination, to)))

    def _destination(self, member: int) -> int:
        try:
            return self.site_of(member)
        except UnknownSite as error:
            raise UnknownDestination(error.site) from None

    def site_of(self, member: int) -> int:
        """The current site of this member in the hierarchy. Raises UnknownSite."""
        if member not in self.routes.homes:
            raise UnknownSite(member)
        return member

    def _post(self, run: Run, dests: Sites) -> Effects:
        self._check_own(run, self.next)
        mine = sum(own.count for own in self.unreturned)
        if mine and mine + run.count > self.held_max:
            raise WindowFull(f"member {self.me} has {mine} of at most {self.held_max} of its own messages undelivered")
        self._check_free(dests)
        self.next = run.end
        return self._work([Arrival(Letter(self.site, run), dests, APPLICATION)])

    def _check_free(self, dests: Sites) -> None:
        """Raise WindowFull while nothing may be sent to one of these sites."""

    def receive(self, source: int, packet: Packet) -> Effects:
        self._check_peer(source)
        if not isinstance(packet, Carrier):
            raise misplaced(source, packet)
        if packet.life != self.site // self.members:
            return self._for_another_life(source, packet)
        ordering = self.orderings.get(packet.cluster)
        if ordering is None:
            return self._unplaced(source, packet)
        cluster = self.routes.clusters[packet.cluster]
        if not 0 <= packet.slot < len(cluster.sites):
            return self._unplaced(source, packet)
        if cluster.sites[packet.slot] % self.members != source or cluster.sites[packet.slot] == self.site:
            raise ProtocolViolation(source, f"it does not have slot {packet.slot} of cluster {packet.cluster}")
        if isinstance(packet, Tagged) and isinstance(ordering, Matrix):
            return self._on_tagged(source, packet, ordering)
        if isinstance(packet, Up | Down) and isinstance(ordering, Coordinated):
            return self._on_numbered(source, packet, ordering)
        raise ProtocolViolation(source, f"a {packet.name} packet is not expected in cluster {packet.cluster}")

    def _for_another_life(self, source: int, packet: Carrier) -> Effects:
        raise ProtocolViolation(source, f"a packet is for incarnation {packet.life} of member {self.me}")

    def _unplaced(self, source: int, packet: Carrier) -> Effects:
        """A packet for a cluster, or from a member of it, that is not known here."""
        raise ProtocolViolation(source, f"cluster {packet.cluster} is not here, or has no slot {packet.slot}")

    def _check(self, source: int, packet: Carrier) -> None:
        """Raise ProtocolViolation if no correct site can have sent such a letter on this hop."""
        cluster = self.routes.clusters[packet.cluster]
        if packet.note:
            self._check_note(source, packet)
        elif packet.source % self.members != packet.run.origin or not packet.run.is_sound():
            raise ProtocolViolation(source, "the counts of a run do not fit its body, its sender or the limits")
        if len(set(packet.dests)) != len(packet.dests):
            raise ProtocolViolation(source, "a destination is named twice")
        goes_up = isinstance(packet, Up)
        try:
            entry = self.routes.exit(cluster, packet.source)
            exits = {self.routes.exit(cluster, dest) for dest in packet.dests} if packet.dests != EVERYBODY else set()
        except UnknownSite as error:
            self._check_stranger(source, error.site)
            return
        if not isinstance(packet, Down) and entry != cluster.sites[packet.slot]:
            raise ProtocolViolation(source, f"a letter of site {packet.source} does not enter cluster {cluster.number} there")
        if goes_up and not packet.dests:
            raise ProtocolViolation(source, "a letter to the coordinator names no destination")
        if not goes_up and exits - {self.site}:
            raise ProtocolViolation(source, "it sent a letter for other sites")

    def _check_stranger(self, source: int, site: int) -> None:
        raise ProtocolViolation(source, f"it passed on a letter from or to site {site}, which is unknown")

    def _check_note(self, source: int, packet: Carrier) -> None:  # noqa: ARG002
        raise ProtocolViolation(source, "a note is not expected in a group that does not change")

    def _on_tagged(self, source: int, packet: Tagged, matrix: Matrix[Arrival]) -> Effects:
        known = len(self.routes.clusters[packet.cluster].sites)
        if not matrix.is_possible(packet.slot, packet.encoding, packet.tag, max(matrix.size, known + self.slack)):
            raise ProtocolViolation(source, "its matrix does not fit the cluster")
        if not matrix.is_new(packet.slot, packet.encoding, packet.tag):
            return NOTHING
        self._check(source, packet)
        letter = packet.letter
        if not matrix.may_deliver(packet.slot, packet.encoding, packet.tag):
            self._hold(packet, letter)
        arrival = Arrival(letter, packet.dests, packet.cluster)
        return self._take(letter, matrix.receive(packet.slot, packet.encoding, packet.tag, arrival))

    def _on_numbered(self, source: int, packet: Up | Down, ordering: Coordinated[Arrival]) -> Effects:
        if isinstance(packet, Up) != ordering.coordinates or (
            isinstance(packet, Down) and (packet.slot != ordering.coordinator or packet.serial < 0)
        ):
            raise ProtocolViolation(source, f"a {packet.name} packet goes to the coordinator, or comes from it")
        if packet.number < 0:
            raise ProtocolViolation(source, "packets are numbered from 0")
        if not ordering.is_new(packet.slot, packet.number):
            return NOTHING
        self._check(source, packet)
        letter = packet.letter
        if packet.number != ordering.taken[packet.slot]:
            self._hold(packet, letter)
        serial = packet.serial if isinstance(packet, Down) else -1
        arrivals = ordering.receive(packet.slot, packet.number, Arrival(letter, packet.dests, packet.cluster, serial))
        if isinstance(packet, Down):
            return self._take(letter, arrivals)
        effects: list[Effect] = []
        for arrival in self._freed(letter, arrivals):
            mine = self._serialise(ordering, arrival.letter, arrival.dests, packet.cluster, packet.slot, effects)
            effects += self._work(mine)
        return effects

    def _hold(self, packet: Carrier, letter: Letter) -> None:
        """Count what will be held back. Raises BufferOverflow if there is no room for it."""
        if self.held + letter.weight > self.held_max:
            raise BufferOverflow(self.site, packet.cluster, packet.slot, self.held)
        self.held += letter.weight

    def _freed(self, letter: Letter, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Release the space of messages that are delivered now. The first took none: it has just arrived, or nothing was
        delivered."""
        self.held -= sum(arrival.letter.weight for arrival in arrivals[1:])
        assert not arrivals or arrivals[0].letter is letter
        return arrivals

    def _take(self, letter: Letter, arrivals: Sequence[Arrival]) -> Effects:
        return self._work(self._freed(letter, arrivals)) if arrivals else NOTHING

    def _work(self, arrivals: Sequence[Arrival]) -> list[Effect]:
        """Process letters in the order in which they arrived, and everything that follows from them at this site."""
        effects: list[Effect] = []
        queue = deque(arrivals)
        while queue:
            queue.extend(self._relay(queue.popleft(), effects))
        return effects

    def _relay(self, arrival: Arrival, effects: list[Effect]) -> list[Arrival]:
        """Pass one letter to the application, if it is for this site, and to the next clusters on its way to others.

        Returns what came back to this site at once, because a cluster delivered to itself.
        """
        letter, dests, via, _ = arrival
        comes_in = via != APPLICATION
        here = comes_in and (not dests or dests == EVERYBODY or self.site in dests)
        if here and not letter.note:
            effects.append(self._deliver(arrival))
        returned: list[Arrival] = []
        for number, hops in self._hops(dests, via).items():
            returned += self._inject(number, letter, hops, effects)
        if here and letter.note:
            self._on_note(letter, effects)
        return returned

    def _deliver(self, arrival: Arrival) -> Deliver:
        run = arrival.letter.run
        if run.origin == self.me and self.unreturned:
            run = self.unreturned.popleft()
        return Deliver(run, (arrival.serial,) if self.has_keys else None)

    def _on_note(self, letter: Letter, effects: list[Effect]) -> None:
        """A note from another site for this one."""

    def _hops(self, dests: Sites, via: int) -> dict[int, dict[int, Sites]]:
        """For each cluster, the next members and the destinations behind each. A letter does not go back where it came from."""
        hops: dict[int, dict[int, Sites]] = {}
        if dests == EVERYBODY:
            for number in self.routes.homes[self.site]:
                if number != via:
                    present = self._founders_in(number)
                    hops[number] = {site: EVERYBODY for site in present if site != self.site}
            if via == APPLICATION:
                hops[self.routes.homes[self.site][0]][self.site] = ()
            return hops
        for dest in dests:
            if (dest != self.site or via == APPLICATION) and dest in self.routes.homes:
                cluster, member = self.routes.next_hop(self.site, dest)
                following = hops.setdefault(cluster, {})
                following[member] = (*following.get(member, ()), dest)
        return hops

    def _founders_in(self, number: int) -> Iterable[int]:
        """The members of a cluster that receive a message to everybody that may be older than the other members."""
        return self.routes.slots[number]

    def _inject(self, number: int, letter: Letter, hops: Mapping[int, Sites], effects: list[Effect]) -> list[Arrival]:
        """Send a letter to members of a cluster; returns what this site thereby delivers to itself."""
        if not hops:
            return []
        ordering, slots = self.orderings[number], self.routes.slots[number]
        if isinstance(ordering, Matrix):
            by_slot = {slots[site]: site for site in hops}
            for group in ordering.stamp(list(by_slot)):
                for (life, dests), members in self._alike([by_slot[slot] for slot in group.slots], hops).items():
                    packet = Tagged(
                        number, ordering.me, life, letter.source, dests, letter.run, letter.note, group.encoding, group.tag
                    )
                    effects.append(Send(packet, tuple(members)))
            return [Arrival(letter, (), number)] if self.site in hops else []
        everybody = EVERYBODY in hops.values()
        dests = EVERYBODY if everybody else tuple(dest for site, behind in hops.items() for dest in behind or (site,))
        if ordering.coordinates:
            return self._serialise(ordering, letter, dests, number, ordering.me, effects)
        if self.site in hops and not letter.note:
            self.unreturned.append(letter.run)
        coordinator = self.routes.clusters[number].sites[ordering.coordinator]
        life, to = divmod(coordinator, self.members)
        link = ordering.number(ordering.coordinator)
        effects.append(Send(Up(number, ordering.me, life, letter.source, dests, letter.run, letter.note, link), (to,)))
        return []

    def _serialise(
        self, ordering: Coordinated[Arrival], letter: Letter, dests: Sites, number: int, sender: int, effects: list[Effect]
    ) -> list[Arrival]:
        """As the coordinator, accept one letter from this member; returns what is for this site or must be passed on from
        it."""
        cluster, slots = self.routes.clusters[number], self.routes.slots[number]
        hops: dict[int, Sites] = {}
        if dests == EVERYBODY:
            hops = {site: EVERYBODY for site in self._founders_in(number) if slots[site] != sender}
            if letter.source == cluster.sites[sender] and cluster.layer == 1:
                hops[letter.source] = ()
        else:
            for dest in dests:
                if dest not in self.routes.homes:
                    continue
                member = self.routes.exit(cluster, dest)
                hops[member] = (*hops.get(member, ()), dest)
        serial = ordering.next_serial()
        mine: list[Arrival] = []
        for site, behind in hops.items():
            behind = () if behind == (site,) else behind
            if site == self.site:
                mine.append(Arrival(letter, behind, number, serial))
                continue
            life, to = divmod(site, self.members)
            link = ordering.number(slots[site])
            down = Down(number, ordering.me, life, letter.source, behind, letter.run, letter.note, link, serial)
            effects.append(Send(down, (to,)))
        return mine

    def _alike(self, sites: Sequence[int], hops: Mapping[int, Sites]) -> dict[tuple[int, Sites], list[int]]:
        """Groups of members that can get the same packet, by the incarnation and the destinations in it; none stands for the
        receiver itself."""
        groups: dict[tuple[int, Sites], list[int]] = {}
        for site in sites:
            life, member = divmod(site, self.members)
            behind = hops[site]
            groups.setdefault((life, () if behind == (site,) else behind), []).append(member)
        return groups

    def held_back(self) -> int:
        return self.held + sum(run.count for run in self.unreturned)

    def waiting(self) -> Sequence[Waiting]:
        waiting = [Waiting(run, self._coordinators(), "it has not returned from the coordinator") for run in self.unreturned]
        for number, ordering in self.orderings.items():
            waiting += held_in(self.routes.clusters[number], ordering, self.members)
        return waiting

    def _coordinators(self) -> tuple[int, ...]:
        first = self.routes.clusters[self.routes.homes[self.site][0]]
        return (first.coordinator % self.members,)
