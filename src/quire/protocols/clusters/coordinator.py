"""Causal order inside a cluster, through a central coordinator.

A member sends its messages up to the cluster's coordinator, which takes them one after the other and sends each down to its
destinations. A cause is taken before its effect, because its sender sent it up first, and messages sent down to a member keep
that order. This needs FIFO links: each link between a member and the coordinator numbers its packets, and holds back those that
come early.

Source: L.-H. Yen, K.-H. Chi and T.-L. Huang, "A Scalable Scheme for Causal Message Ordering", section III.C (the
centralized approach).
Assumes: packets are not lost or forged; they may be repeated and reordered.
Guarantees: causal order among the messages of the cluster, each delivered once.
Departures: the paper takes links that keep their order for granted. A message to several members goes up once, and the
coordinator takes it as one, so that no answer to one copy can overtake another copy. A member's message to itself goes
up and comes down like any other: that is what the paper's load figures count.
Cost: a packet up and one down for each member addressed, less those to and from the coordinator itself; one number each.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Coordinated(Generic[T]):
    """One member's links to the others, of which only those to and from the coordinator are used."""

    def __init__(self, me: int, size: int, coordinator: int) -> None:
        self.me = me
        self.coordinator = coordinator
        self.serial = 0
        """How many messages the coordinator has taken."""
        self.sent = [0] * size
        """Per member, how many packets were put on the link to it."""
        self.taken = [0] * size
        """Per member, how many packets were taken from the link from it."""
        self.early: list[dict[int, T]] = [{} for _ in range(size)]

    @property
    def coordinates(self) -> bool:
        return self.me == self.coordinator

    def grow(self, size: int) -> None:
        """Make room for members with slots up to `size`."""
        more = size - len(self.sent)
        self.sent += [0] * more
        self.taken += [0] * more
        self.early += [{} for _ in range(more)]

    def next_serial(self) -> int:
        """Accept one message; returns its position in the coordinator's order."""
        self.serial += 1
        return self.serial - 1

    def number(self, slot: int) -> int:
        """Use up and return the number of the next packet on the link to this member."""
        self.sent[slot] += 1
        return self.sent[slot] - 1

    def gap(self) -> tuple[int, int] | None:
        """The member and the number of a missing packet for which others are held back here."""
        return next(((slot, self.taken[slot]) for slot, waiting in enumerate(self.early) if waiting), None)

    def is_new(self, slot: int, number: int) -> bool:
        return number >= self.taken[slot] and number not in self.early[slot]

    def receive(self, slot: int, number: int, item: T) -> list[T]:
        """Accept a packet from this member; returns what can be processed now in the order sent: none, one or several."""
        if not self.is_new(slot, number):
            return []
        waiting = self.early[slot]
        waiting[number] = item
        ready: list[T] = []
        while self.taken[slot] in waiting:
            ready.append(waiting.pop(self.taken[slot]))
            self.taken[slot] += 1
        return ready
