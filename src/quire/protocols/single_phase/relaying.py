"""The point-to-point scheme: acknowledgements go to the origin alone, which relays what the others lack."""

from __future__ import annotations

from quire.protocols.contract import Send
from quire.protocols.single_phase.packets import Relay, Vector
from quire.protocols.single_phase.positions import need


class Relaying:
    """The point-to-point scheme: acknowledgements go to the origin alone, and the origin tells the others.

    `public[i]` is a clock of i that everybody knows or that is on its way to everybody. Once its own operation is
    stable, an origin relays the clocks that are not public enough for the others to find it stable too. A relayed clock
    may overtake that member's own operations on another link, so it comes with a count of them and is believed only
    when as many have arrived.
    """

    def __init__(self, me: int, members: int, rotating: bool) -> None:
        self.me = me
        self.members = members
        self.rotating = rotating
        self.said = [0] * members
        self.public = [0] * members
        self.packets = [0] * members
        self.claims: list[list[tuple[int, int]]] = [[] for _ in range(members)]

    def submitted(self, clocks: list[int]) -> Vector:
        """The vector of an operation packet that goes to everybody now."""
        self.packets[self.me] += 1
        self.said = [clocks[self.me]] * self.members
        return self._publish(clocks)

    def received(self, source: int, vector: Vector, clocks: list[int]) -> None:
        self.packets[source] += 1
        self.public[source] = max(self.public[source], clocks[source])
        self._settle_claims(source, clocks)
        self.learn(clocks, vector)

    def learn(self, clocks: list[int], vector: Vector) -> None:
        """Take the clocks that a packet passes on, each as soon as the operations that it covers are here."""
        for member, (clock, packets) in enumerate(vector):
            self.public[member] = max(self.public[member], clock)
            if member == self.me or clock <= clocks[member]:
                continue
            if not any(clock <= other and packets >= its_packets for other, its_packets in self.claims[member]):
                self.claims[member].append((clock, packets))
                self._settle_claims(member, clocks)

    def _settle_claims(self, member: int, clocks: list[int]) -> None:
        here = self.packets[member]
        believed = [clock for clock, packets in self.claims[member] if packets <= here]
        if believed:
            clocks[member] = max(clocks[member], *believed)
            self.claims[member] = [claim for claim in self.claims[member] if claim[1] > here]

    def acknowledged(self, clock: int, to: tuple[int, ...]) -> None:
        for member in to:
            self.said[member] = clock

    def stable(self, time: int, clocks: list[int]) -> list[Send]:
        """The relay, if one is needed, by which the others find this member's operation at `time` stable."""
        others = [member for member in range(self.members) if member != self.me]
        lack = [i for i in others if self.public[i] < need(i, time, self.me, self.members, self.rotating)]
        if not lack:
            return []
        if len(lack) > 1:
            to, vector = others, self._publish(clocks)
        else:
            # The one whose clock is not public knows it itself. The rest of the vector is blank, because it would not
            # have been told to everybody.
            only = lack[0]
            to = [member for member in others if member != only]
            if not to:
                return []
            self.public[only] = max(self.public[only], clocks[only])
            vector = tuple((clocks[i], self.packets[i]) if i == only else (0, 0) for i in range(self.members))
        for member in to:
            self.said[member] = clocks[self.me]
        return [Send(Relay(clocks[self.me], vector), tuple(to))]

    def _publish(self, clocks: list[int]) -> Vector:
        vector = tuple(zip(clocks, self.packets, strict=True))
        self.public = [max(known, said) for known, (said, _) in zip(self.public, vector, strict=True)]
        return vector
