"""The whole state of one group at its sequencer, so that it can be transferred to another sequencer.

A client that leaves is *departing* until it says that it has delivered everything up to its leave. Members and departing
clients together are the *effective* members, on which every decision about order is based. What all of them have delivered is
*stable*, and dropped. What is needed to detect duplicates is kept apart from the history and outlives it.
"""

from __future__ import annotations

import msgspec

from quire.model.messages import NUMBER_MAX
from quire.protocols.sequencing.events import MESSAGES, Event
from quire.protocols.sequencing.senders import Numbers


class GroupState(msgspec.Struct):
    group: str
    seq: int = 0
    members: dict[int, int] = {}
    """Each with the number of its join; 0 for a founder."""
    departing: dict[int, int] = {}
    """Each with the number of its leave."""
    joined: int = 0
    """The number of the last join."""
    at: dict[int, str] = {}
    """Where clients that are members, or asked to be, can be reached by others."""
    history: dict[int, Event] = {}
    """By number, in order: what some effective member may lack."""
    kept: int = 0
    """How many messages the history holds."""
    kept_bytes: int = 0
    reached: dict[int, int] = {}
    """How far each effective member has reported to have delivered."""
    stable: int = 0
    senders: dict[int, Numbers] = {}
    requests: dict[int, int] = {}
    """The last request of each client that was answered."""
    refused: dict[int, int] = {}
    """The last request of each client that was refused."""
    numbered: int = 0
    """How many messages were numbered since the load was last reported."""
    life: int = 0
    """When the group was last rebuilt from its members: whatever is of an earlier life is not believed any more."""

    def reachable(self) -> dict[int, str]:
        """The address of each member that has announced one."""
        return {client: at for client in self.members if (at := self.at.get(client))} if self.at else {}

    def effective(self) -> frozenset[int]:
        return frozenset(self.members) | frozenset(self.departing)

    def record(self, event: Event) -> None:
        """Assign the event's numbers and keep it."""
        self.history[event.seq] = event
        self.seq = event.last
        if event.kind == MESSAGES:
            self.kept += event.run.count
            self.kept_bytes += event.size
            self.numbered += event.run.count

    def report(self, client: int, number: int) -> None:
        """An effective member has delivered everything up to this number. It confirms its own leave separately."""
        number = min(number, self.departing.get(client, number + 1) - 1)
        if number > self.reached.get(client, number):
            self.reached[client] = number
            self.collect()

    def collect(self) -> None:
        """Drop what is stable."""
        self.stable = max(self.stable, min(self.reached.values(), default=self.seq))
        for number, event in list(self.history.items()):
            if event.last > self.stable:
                break
            del self.history[number]
            if event.kind == MESSAGES:
                self.kept -= event.run.count
                self.kept_bytes -= event.size

    def lacking(self, client: int, number: int, until: int) -> list[Event]:
        """The events for this client after one number and up to another."""
        if client not in self.reached:
            return []
        until = min(until, self.departing.get(client, self.seq))
        return [event for event in self.history.values() if number < event.last and event.seq <= until]

    def drained(self, number: int) -> bool:
        """Whether no client is departing and every member has delivered everything up to this number."""
        return not self.departing and all(reached >= number for reached in self.reached.values())

    def is_sound(self) -> bool:
        """Whether a correct sequencer can have sent this state of a group."""
        last = 0
        for number, event in self.history.items():
            if not (last < number == event.seq <= event.last <= self.seq and event.group == self.group and event.is_sound()):
                return False
            last = event.last
        return (
            0 <= self.stable <= self.seq <= NUMBER_MAX // 2
            and self.reached.keys() == self.members.keys() | self.departing.keys()
            and not self.members.keys() & self.departing.keys()
            and all(0 <= number <= self.seq for number in (*self.members.values(), *self.reached.values()))
            and all(self.reached[client] <= number in self.history for client, number in self.departing.items())
            and self.departing.keys() <= self.requests.keys()
            and all(0 <= numbers.next <= NUMBER_MAX for numbers in self.senders.values())
        )
