"""Turns a violation into a counterexample that a person can check in the logs.

Verdicts come from counting. A counterexample also needs log positions and the messages in between, which are not kept while
counting; small jobs fetch them afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing.search import Chain, ChainTask, FindTask, Found, FoundEvents, Link, by_message
from quire.pipeline.auditing.verdicts import LoggedEvent, Witness
from quire.pipeline.layout import Layout, overlapping
from quire.pipeline.tasks import Runner
from quire.trace.kinds import KINDS, SEND

_ROWS_PER_TASK = 4_000_000


class Explanation(NamedTuple):
    witness: Witness
    because: str


class Log:
    """The events of the messages that explanations mention, and the display names of members, messages and events.

    In an imported log, hosts and messages have their own names. A message without a name is named after its send event.
    """

    def __init__(self, layout: Layout, run: Runner, found: Sequence[Found], *, timed: bool) -> None:
        self._layout, self._run, self._timed = layout, run, timed
        self._events = by_message(found)
        self._names: dict[MessageId, str] = {}
        for event in sorted(found, key=lambda event: event.kind != SEND):
            if event.said is not None and event.said.message is not None:
                self._names.setdefault(event.message, event.said.message)
            elif event.said is not None and event.kind == SEND:
                self._names.setdefault(event.message, self.event(event.process, event.said.number))
        self._chains: dict[tuple[MessageId, MessageId], Sequence[Link]] = {}

    def of(self, message: MessageId) -> list[Found]:
        """The message's first events of each kind at each member, sorted by member and position."""
        return self._events.get(message, [])

    def at(self, member: int, kind: int, message: MessageId) -> list[Found]:
        return [event for event in self.of(message) if event.process == member and event.kind == kind]

    def first(self, member: int, kind: int, message: MessageId) -> list[Found]:
        return self.at(member, kind, message)[:1]

    def member(self, process: int) -> str:
        hosts = self._layout.hosts
        return hosts[process] if hosts and 0 <= process < len(hosts) else f"member {process}"

    def members(self, processes: Sequence[int]) -> str:
        names = [self.member(process) for process in processes] if self._layout.hosts else [str(p) for p in processes]
        listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        return listed if self._layout.hosts else f"member{'s' if len(names) > 1 else ''} {listed}"

    def message(self, message: MessageId) -> str:
        return self._names.get(message, str(message))

    def event(self, process: int, number: int) -> str:
        """The display name of a host's event."""
        return f"{self.member(process)}@{number}"

    def position(self, event: Found) -> str:
        return f"at position {event.pos}" if event.said is None else f"at {event.said.place}"

    def position_of(self, process: int, number: int) -> str:
        """Like `position`, for an event of which only the number is known."""
        return f"at {self.event(process, number)}" if self._layout.hosts else f"at position {number}"

    def witness(
        self, messages: Iterable[MessageId], events: Iterable[Found], *, members: Iterable[int],
        chain: Iterable[str] = (), missing: MessageId | None = None,
    ) -> Witness:  # fmt: skip
        """The counterexample made of these messages and events."""
        names = tuple(messages)
        return Witness(
            messages=tuple(map(self.message, names)),
            members=tuple(dict.fromkeys(members)),
            positions=tuple(map(self._logged, events)),
            chain=tuple(chain),
            names=names,
            missing=missing,
        )

    def _logged(self, event: Found) -> LoggedEvent:
        said = event.said
        return LoggedEvent(
            event.process, KINDS[event.kind], self.message(event.message), event.pos, event.message,
            at=None if said is None else self.event(event.process, said.number),
            place=None if said is None else said.place, text=None if said is None else said.text,
        )  # fmt: skip

    def chain(self, first: MessageId, last: MessageId) -> Sequence[Link]:
        """The shortest chain of messages by which `first` happened before `last`, found by a separate job."""
        if (first, last) not in self._chains:
            self._chains[first, last] = self._find_chain(first, last)
        return self._chains[first, last]

    def _find_chain(self, first: MessageId, last: MessageId) -> Sequence[Link]:
        low = high = None
        if self._timed:
            sends = [*self.first(first.origin, SEND, first), *self.first(last.origin, SEND, last)]
            low, high = sends[0].lamport, sends[1].lamport + 1
        layout = self._layout
        task = ChainTask(layout.world, overlapping(layout.groups, low, high), first, last, low, high)
        result = self._run([task])[0]
        assert isinstance(result, Chain)
        if self._layout.hosts:
            for link in result.links:
                self._names.setdefault(link.then, self.event(link.member, link.then_pos))
        return result.links


def look_up(layout: Layout, messages: Iterable[MessageId], run: Runner, *, timed: bool) -> Log:
    """Fetch the events of these messages. `timed`: whether the trace's logical times are reliable."""
    wanted = tuple(sorted(set(messages)))
    if not wanted:
        return Log(layout, run, [], timed=timed)
    shares = (np.cumsum([group.rows for group in layout.groups]) - 1) // _ROWS_PER_TASK
    tasks = []
    for share in np.unique(shares):
        groups = tuple(group for group, its in zip(layout.groups, shares, strict=True) if its == share)
        tasks.append(FindTask(layout.world, groups, wanted))
    found = [event for result in run(tasks) if isinstance(result, FoundEvents) for event in result.events]
    return Log(layout, run, found, timed=timed)
