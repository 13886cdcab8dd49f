"""A client's messages that have no number yet.

A client that waits sends one run at a time, with the context that it has by then. A client that does not wait refers to its own
unnumbered messages by their counters; as numbers become known they replace the counters, and the run is sent again where the
sequencer could not know them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from quire.model.messages import Run
from quire.protocols.sequencing.contexts import Context, merge
from quire.protocols.sequencing.errors import Overload
from quire.protocols.sequencing.options import SequencingOptions


class Outstanding:
    """A run that has no number yet."""

    __slots__ = ("again_at", "context", "counter", "group", "holders", "ids", "run", "tries", "wait")

    def __init__(self, group: str, run: Run) -> None:
        self.group = group
        self.run = run
        self.counter = -1
        self.context: Context = {}
        self.ids: dict[str, int] = {}
        self.holders: set[int] | None = None
        """The clients that keep the bodies; None: the bodies go to the sequencer."""
        self.tries = 0
        self.again_at = 0
        self.wait = 0

    @property
    def last(self) -> int:
        return self.counter + self.run.count - 1


class Outbox:
    def __init__(self, options: SequencingOptions) -> None:
        self.messages = self.bytes = 0
        """How many have no number, and how long they are together."""
        self._options = options
        self._waits = options.blocking
        self._next: dict[str, int] = {}
        self._sent: dict[str, dict[int, Outstanding]] = {}
        """By group and counter, in order."""
        self._queue: deque[Outstanding] = deque()

    def has_room(self, messages: int, size: int) -> bool:
        """Whether this many more messages, of this many bytes, may wait for numbers: as much as a sequencer keeps, or a
        single run."""
        options = self._options
        fits = self.bytes + size <= options.history_bytes or not self.messages
        return fits and self.messages + messages <= options.window

    def submit(self, group: str, run: Run) -> None:
        """Queue a run. Raises Overload if there is no room."""
        size = len(run.body.payload)
        if not self.has_room(run.count, size):
            raise Overload(f"{self.messages} messages of {self.bytes} bytes have no number yet; wait for one")
        self.messages += run.count
        self.bytes += size
        self._queue.append(Outstanding(group, run))

    def ready(self, context: Context) -> Iterator[Outstanding]:
        """The runs that may be sent now, given what this client has seen."""
        while self._queue and not (self._waits and self._sent):
            one = self._queue.popleft()
            one.counter = self._next.get(one.group, 0)
            self._next[one.group] = one.counter + one.run.count
            if self._options.causally:
                one.context = dict(context)
                one.ids = {
                    group: next(reversed(sent.values())).last for group, sent in self._sent.items() if group != one.group
                }
            self._sent.setdefault(one.group, {})[one.counter] = one
            yield one

    def acked(self, group: str) -> int:
        """All messages to the group before this counter have known numbers."""
        return next(iter(self._sent[group]))

    def find(self, group: str, first: int) -> Outstanding | None:
        """The run to this group whose first message has this number among the client's own."""
        return next((one for one in self._sent.get(group, {}).values() if one.run.first == first), None)

    def at(self, group: str, counter: int) -> Outstanding | None:
        return self._sent.get(group, {}).get(counter)

    def numbered(self, one: Outstanding, seq: int) -> list[Outstanding]:
        """A run got its numbers, from `seq` on. Returns the runs that waited for them and can now be sent again."""
        sent = self._sent[one.group]
        del sent[one.counter]
        if not sent:
            del self._sent[one.group]
        self.messages -= one.run.count
        self.bytes -= len(one.run.body.payload)
        released = []
        for other in self.sent():
            counter = other.ids.get(one.group)
            if counter is not None and one.counter <= counter <= one.last:
                del other.ids[one.group]
                other.context = merge(other.context, {one.group: seq + counter - one.counter})
                released.append(other)
        return released

    def lose(self, group: str) -> None:
        """The group no longer exists: drop what was meant for it, and let nothing wait for its numbers."""
        lost = [*self._sent.pop(group, {}).values(), *(one for one in self._queue if one.group == group)]
        self._queue = deque(one for one in self._queue if one.group != group)
        for one in lost:
            self.messages -= one.run.count
            self.bytes -= len(one.run.body.payload)
        for other in self.sent():
            other.ids.pop(group, None)

    def sent_to(self, group: str) -> tuple[Outstanding, ...]:
        return tuple(self._sent.get(group, {}).values())

    def sent(self) -> Iterator[Outstanding]:
        """All runs that are sent and not numbered yet."""
        for sent in self._sent.values():
            yield from sent.values()

    def first(self, otherwise: int) -> int:
        """The number, among all of the client's own messages, of the first that its group has not numbered."""
        return min((one.run.first for one in (*self.sent(), *self._queue)), default=otherwise)

    def idle(self) -> bool:
        return not self.messages
