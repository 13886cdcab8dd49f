"""Flow control in a view: this member's send window, and when senders are told that their messages are delivered here."""

from __future__ import annotations

from collections.abc import Sequence

from quire.views.core import GroupSettings
from quire.views.knowledge import Knowledge
from quire.views.unstable import UnstableRuns


class Flow:
    """The flow control of the member of this rank, in one view."""

    def __init__(self, settings: GroupSettings, unstable: UnstableRuns, knowledge: Knowledge, rank: int) -> None:
        self._outstanding, self._outstanding_bytes = settings.outstanding, settings.outstanding_bytes
        self._soon = (settings.outstanding + 3) // 4, settings.outstanding_bytes // 4
        """After so many delivered messages, or with so many bytes kept, the sender is told, so that its window opens."""
        self._unstable, self._knowledge, self._rank = unstable, knowledge, rank
        self._told = [0] * len(unstable.count)
        """How many messages of each member this one has said that it has delivered."""
        self.moved: set[int] = set()
        """The members some of whose messages were kept or delivered, or have become durable, since `late` was last asked."""

    def has_room(self, sent: int) -> bool:
        """Whether the send window has room for more messages, if so many were sent."""
        return sent - self._knowledge.stable(self._rank) < self._outstanding

    def has_room_for_bytes(self) -> bool:
        """Whether it has room for more bytes. Those of messages that have become stable count until these are dropped."""
        return self._unstable.bytes[self._rank] < self._outstanding_bytes

    def told_all(self, delivered: Sequence[int]) -> None:
        """A packet to all members says how much is delivered here."""
        self._told = list(delivered)

    def late(self, delivered: Sequence[int]) -> tuple[list[int], bool]:
        """The senders to be told now what is delivered here, before their send windows are full; and whether more could be told
        if it were durable."""
        durably, (some, some_bytes), bytes_kept = self._knowledge.delivered[self._rank], self._soon, self._unstable.bytes
        late: list[int] = []
        waits_for_disk = False
        for origin in self.moved:
            count = durably[origin]
            many = some if bytes_kept[origin] < some_bytes else 1
            if delivered[origin] - count >= many:
                waits_for_disk = True
            if count - self._told[origin] >= many and origin != self._rank:
                late.append(origin)
                self._told[origin] = count
        self.moved.clear()
        return sorted(late), waits_for_disk
