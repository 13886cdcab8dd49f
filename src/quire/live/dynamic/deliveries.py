"""What waits for the application: runs of messages, events, and what is to be done when it has read so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from quire.live.dynamic.events import GroupEvent, ViewMessage
from quire.model.messages import Run


class DeliveredRun(msgspec.Struct, frozen=True):
    """Consecutive messages of one member, as they were delivered."""

    origin: str
    first: int
    """The number of the first among the messages of that member."""
    view: int
    position: int | None
    """Where the order is total, how many messages were delivered in this view before the first."""
    run: Run

    def messages(self) -> Iterator[ViewMessage]:
        origin, view, position = self.origin, self.view, self.position
        if position is None:
            return (ViewMessage(origin, seq, body, view, None) for seq, body in enumerate(self.run.payloads(), self.first))
        shift = position - self.first
        return (ViewMessage(origin, seq, body, view, seq + shift) for seq, body in enumerate(self.run.payloads(), self.first))


class Then(msgspec.Struct, frozen=True):
    """To be done when the application has read everything before it; the event, if there is one, comes after that."""

    action: Callable[[], None]
    event: GroupEvent | None = None


Waiting = DeliveredRun | GroupEvent | Then
