"""Causal order inside a cluster, by matrix clocks: each member counts who sent how many messages to whom.

Each member keeps a matrix SENT of the messages that it knows of, from every member to every other, and a vector of those
that it has delivered from each. A message carries its sender's matrix. It may be delivered when everything that the
matrix counts as sent to the receiver was delivered there, and the matrix then becomes part of what the receiver knows.
Nothing else is needed of the network than that it loses nothing: early packets are held back and repeated ones dropped.
A message to several members counts as sent to all of them before its first copy leaves; otherwise an answer to one copy
could overtake another copy.

Source: M. Raynal, A. Schiper and S. Toueg, "The causal ordering abstraction and a simple way to implement it",
Information Processing Letters 39, 1991; as used by L.-H. Yen, K.-H. Chi and T.-L. Huang, "A Scalable Scheme for Causal
Message Ordering", section III.C.
Assumes: packets are not lost or forged; they may be repeated and reordered.
Guarantees: causal order among the messages of the cluster, each delivered once.
Departures: with `changes`, only entries that changed since the last message to the same member travel. What is left out
was carried by that earlier message, which is delivered first, so it has been merged and satisfied already. With
`adaptive`, each packet is written in whichever way is the smallest. A dense matrix counts its own message, so that it is
the same for all members to whom the message goes and says the number of the message as well.
Cost: one packet for each member addressed; s² numbers for s members if dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import le
from typing import Generic, NamedTuple, TypeVar

from quire.protocols.clusters import encoding as tags
from quire.protocols.clusters.encoding import Entry, Tag

DENSE = "dense"
CHANGES = "changes"
ADAPTIVE = "adaptive"

T = TypeVar("T")


class Early(NamedTuple, Generic[T]):
    """A message that is held back: the encoding of its matrix, the matrix, and its contents."""

    encoding: int
    tag: Tag
    item: T


class Stamped(NamedTuple):
    """The members for which a message carries this tag."""

    slots: tuple[int, ...]
    encoding: int
    tag: Tag


class Matrix(Generic[T]):
    """One member's matrix, in a cluster of `size` members, which are identified by their slots."""

    def __init__(self, me: int, size: int, encoding: str = DENSE) -> None:
        self.me = me
        self.size = size
        self.encoding = encoding
        self.sent = [0] * (size * size)
        """Row by row, the messages from each member to each, as far as they are known here."""
        self.delivered = [0] * size
        self.clock = 0
        self.changed = [0] * (0 if encoding == DENSE else size * size)
        """Per entry, when it changed last, by the local clock."""
        self.last_sent = [0] * size
        """Per member, when something was last sent to it."""
        self.early: list[dict[int, Early[T]]] = [{} for _ in range(size)]
        """Per sender, what is held back, by number."""

    def grow(self, size: int) -> None:
        """Make room for members with slots up to `size`, about which nothing is known yet."""
        more = size - self.size
        if more <= 0:
            return
        self.sent = _widen(self.sent, self.size, size)
        self.changed = _widen(self.changed, self.size, size) if self.encoding != DENSE else []
        self.delivered += [0] * more
        self.last_sent += [0] * more
        self.early += [{} for _ in range(more)]
        self.size = size

    def stamp(self, slots: Sequence[int]) -> list[Stamped]:
        """Count a message to all of these members as sent, in one step; returns what each copy must carry.

        A copy for this member itself is delivered at once, and not returned.
        """
        row = self.me * self.size
        numbers = [self.sent[row + slot] for slot in slots]
        self.clock += 1
        for slot in slots:
            self.sent[row + slot] += 1
            if self.encoding != DENSE:
                self.changed[row + slot] = self.clock
        if self.me in slots:
            self.delivered[self.me] += 1
        others = tuple(slot for slot in slots if slot != self.me)
        if self.encoding == DENSE:
            return [Stamped(others, tags.DENSE, tuple(self.sent))] if others else []
        return [self._stamp_one(slot, number) for slot, number in zip(slots, numbers, strict=True) if slot != self.me]

    def _stamp_one(self, slot: int, number: int) -> Stamped:
        last_sent, own = self.last_sent[slot], self.me * self.size + slot
        entries: list[Entry] = [
            (*divmod(index, self.size), self.sent[index])
            for index, changed in enumerate(self.changed)
            if changed > last_sent and index != own
        ]
        self.last_sent[slot] = self.clock
        if self.encoding == CHANGES:
            return Stamped((slot,), tags.CHANGES, tags.write_changes(number, entries))
        return Stamped((slot,), *tags.write_smallest(number, self.size, self.sent, entries))

    def is_possible(self, sender: int, encoding: int, tag: Tag, width_max: int) -> bool:
        """Whether a correct member can have sent this. To be checked for everything that a peer sends."""
        if sender == self.me or not tags.is_sound(encoding, tag, width_max):
            return False
        if encoding == tags.DENSE:
            width = tags.width_of(encoding, tag)
            if sender >= width or self.me >= width or tag[sender * width + self.me] < 1:
                return False
            own = tag[self.me * width : (self.me + 1) * width]
            known = self.sent[self.me * self.size : (self.me + 1) * self.size] + [0] * (width - self.size)
            return all(sent <= counted for sent, counted in zip(own, known, strict=False))
        return all(
            column < self.size and value <= self.sent[self.me * self.size + column]
            for row, column, value in tags.entries_in(encoding, tag)
            if row == self.me
        )

    def is_new(self, sender: int, encoding: int, tag: Tag) -> bool:
        """Whether the packet is neither delivered nor held back here."""
        number = tags.number_in(encoding, tag, sender, self.me)
        return number >= self.delivered[sender] and number not in self.early[sender]

    def may_deliver(self, sender: int, encoding: int, tag: Tag) -> bool:
        """Whether everything that was sent to this member before the message is delivered here."""
        if tags.number_in(encoding, tag, sender, self.me) != self.delivered[sender]:
            return False
        if encoding == tags.DENSE and len(tag) == len(self.sent):
            fulfilled: int = sum(map(le, tag[self.me :: self.size], self.delivered))
            return fulfilled >= self.size - 1  # All but the sender, whose count is the number.
        return all(
            count <= (self.delivered[other] if other < self.size else 0)
            for other, count in tags.column_in(encoding, tag, self.me)
            if other != sender
        )

    def receive(self, sender: int, encoding: int, tag: Tag, item: T) -> list[T]:
        """Accept a message; returns what can be delivered now, in causal order."""
        self.grow(tags.width_of(encoding, tag))
        if not self.is_new(sender, encoding, tag):
            return []
        early = Early(encoding, tag, item)
        if not self.may_deliver(sender, encoding, tag):
            self.early[sender][tags.number_in(encoding, tag, sender, self.me)] = early
            return []
        self._merge(sender, early)
        return [item, *self._release()]

    def _release(self) -> list[T]:
        """Deliver messages that are held back, until no more can be delivered."""
        released: list[T] = []
        moved = True
        while moved:
            moved = False
            for sender, waiting in enumerate(self.early):
                early = waiting.get(self.delivered[sender])
                if early is not None and self.may_deliver(sender, early.encoding, early.tag):
                    del waiting[self.delivered[sender]]
                    self._merge(sender, early)
                    released.append(early.item)
                    moved = True
        return released

    def _merge(self, sender: int, early: Early[T]) -> None:
        """The message is delivered: this member now knows what its sender knew."""
        self.delivered[sender] += 1
        own = sender * self.size + self.me
        if self.encoding == DENSE and len(early.tag) == len(self.sent):
            self.sent = list(map(max, self.sent, early.tag))
        else:
            self.clock += 1
            for row, column, value in tags.entries_in(early.encoding, early.tag):
                self._learn(row * self.size + column, value)
            self._learn(own, self.delivered[sender])

    def _learn(self, index: int, value: int) -> None:
        if value > self.sent[index]:
            self.sent[index] = value
            if self.encoding != DENSE:
                self.changed[index] = self.clock

    def gap(self) -> tuple[int, int] | None:
        """The member and the number of a missing packet for which others are held back here."""
        for sender, waiting in enumerate(self.early):
            for early in waiting.values():
                missing = self.waited_for(sender, early)[0]
                return missing, self.delivered[missing]
        return None

    def waited_for(self, sender: int, early: Early[T]) -> tuple[int, ...]:
        """The members from which an earlier message is missing, so that this one is held back."""
        late = {
            other
            for other, count in tags.column_in(early.encoding, early.tag, self.me)
            if other != sender and count > self.delivered[other]
        }
        if tags.number_in(early.encoding, early.tag, sender, self.me) > self.delivered[sender]:
            late.add(sender)
        return tuple(sorted(late))


def _widen(matrix: list[int], width: int, wider: int) -> list[int]:
    padding = [0] * (wider - width)
    rows = [matrix[start : start + width] + padding for start in range(0, width * width, width)]
    return [value for row in rows for value in row] + [0] * ((wider - width) * wider)
