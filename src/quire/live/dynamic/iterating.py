"""The ways in which an application iterates over a group: message by message, event by event, or run by run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from typing import cast

from quire.live.dynamic.deliveries import DeliveredRun
from quire.live.dynamic.events import GroupEvent, ViewMessage


class Iterated(ABC):
    @abstractmethod
    def _deliveries(self, *, events: bool) -> AsyncGenerator[DeliveredRun | GroupEvent, None]:
        """What is delivered, in order. `events`: with what happens among the messages."""

    async def __aiter__(self) -> AsyncIterator[ViewMessage]:
        """Every message as it is delivered, this member's own included. Ends when the group has closed or this member has left
        it; raises GroupFailed when it cannot go on, after everything that was delivered here."""
        async for run in self.runs():
            for message in run.messages():
                yield message

    async def events(self) -> AsyncGenerator[GroupEvent, None]:
        """Every message and, at their positions among the messages, views and changes of this member's own status."""
        async for waiting in self.run_events():
            if isinstance(waiting, DeliveredRun):
                for message in waiting.messages():
                    yield message
            else:
                yield waiting

    def run_events(self) -> AsyncGenerator[DeliveredRun | GroupEvent, None]:
        """The same as `events`, but with whole runs of messages instead of single ones."""
        return self._deliveries(events=True)

    def runs(self) -> AsyncGenerator[DeliveredRun, None]:
        """Whole runs of messages as they are delivered, without an object per message."""
        return cast(AsyncGenerator[DeliveredRun, None], self._deliveries(events=False))
