"""The items that wait for the application: runs of messages, events, and actions to run when it has read so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat

import msgspec

from quire.live.dynamic.events import GroupEvent, ViewMessage
from quire.model.messages import Run


class DeliveredRun(msgspec.Struct, frozen=True, gc=False):
    """Consecutive messages of one member, as they were delivered."""

    origin: str
    first: int
    """The number of the first among the messages of that member."""
    view: int
    position: int | None
    """Where the order is total, how many messages were delivered in this view before the first."""
    run: Run

    def messages(self) -> Iterator[ViewMessage]:
        # An application may take millions of these a second, so nothing in Python is done for each.
        first, count = self.first, self.run.count
        positions = repeat(None) if self.position is None else range(self.position, self.position + count)
        numbers = range(first, first + count)
        return map(ViewMessage, repeat(self.origin), numbers, self.run.payloads(), repeat(self.view), positions)


class Then(msgspec.Struct, frozen=True):
    """An action to run when the application has read everything before it; the event, if there is one, follows."""

    action: Callable[[], None]
    event: GroupEvent | None = None


Waiting = DeliveredRun | GroupEvent | Then
