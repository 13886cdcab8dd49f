"""Duplicate detection: what is known of the senders of a group, to recognise messages that they repeat."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Numbers(msgspec.Struct):
    """What is known of one sender's messages to the group."""

    next: int = 0
    """The counter of the first message that has no number yet."""
    window: dict[int, tuple[int, int, tuple[int, ...] | None]] = {}
    """By the counter of their first message: how many were numbered together, from which number on, and if the sender was
    no member, who was. Only those whose numbers the sender may not know."""

    def settle(self, counter: int) -> None:
        """The sender knows the numbers of all its messages before this counter."""
        for first, (count, *_) in list(self.window.items()):
            if first + count > counter:
                break
            del self.window[first]

    def give(self, counter: int, count: int, seq: int, members: tuple[int, ...] | None, acked: int) -> None:
        """The messages from this counter on have the numbers from `seq` on. The sender knows the numbers of all messages
        before `acked`."""
        self.next = max(self.next, counter + count)
        self.settle(acked)
        self.window[counter] = (count, seq, members)


def copied(senders: Mapping[int, Numbers]) -> dict[int, Numbers]:
    return {client: Numbers(numbers.next, dict(numbers.window)) for client, numbers in senders.items()}
