"""From a violation to a counterexample that a person can check in the logs.

Verdicts come from counting. A counterexample needs positions and messages in between, which nobody keeps while counting:
small jobs fetch them afterwards.
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
from quire.trace.schema import KINDS, SEND

_ROWS_PER_TASK = 4_000_000


class Explanation(NamedTuple):
    witness: Witness
    because: str


class Log:
    """The events of the messages that explanations mention."""

    def __init__(self, layout: Layout, run: Runner, found: Sequence[Found], *, timed: bool) -> None:
        self._layout, self._run, self._timed = layout, run, timed
        self._events = by_message(found)
        self._chains: dict[tuple[MessageId, MessageId], Sequence[Link]] = {}

    def of(self, message: MessageId) -> list[Found]:
        """The first events of each kind at each member, by member and position."""
        return self._events.get(message, [])

    def at(self, member: int, kind: int, message: MessageId) -> list[Found]:
        return [event for event in self.of(message) if event.process == member and event.kind == kind]

    def first(self, member: int, kind: int, message: MessageId) -> list[Found]:
        return self.at(member, kind, message)[:1]

    def is_correct(self, member: int) -> bool:
        return member not in self._layout.world.crashed

    def chain(self, first: MessageId, last: MessageId) -> Sequence[Link]:
        """The shortest chain by which the one message came to happen before the other, from a job of its own."""
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
        return result.links


def look_up(layout: Layout, messages: Iterable[MessageId], run: Runner, *, timed: bool) -> Log:
    """The events of these messages. `timed`: whether the trace's logical times can be relied on."""
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


def logged(event: Found) -> LoggedEvent:
    return LoggedEvent(event.process, KINDS[event.kind], str(event.message), event.pos, event.message)


def witness_of(
    messages: Iterable[MessageId], events: Iterable[Found], *, members: Iterable[int],
    chain: Iterable[str] = (), missing: MessageId | None = None,
) -> Witness:  # fmt: skip
    """A counterexample of these messages, with what happened to them."""
    names = tuple(messages)
    return Witness(
        messages=tuple(map(str, names)),
        members=tuple(dict.fromkeys(members)),
        positions=tuple(map(logged, events)),
        chain=tuple(chain),
        names=names,
        missing=missing,
    )


def list_members(members: Sequence[int]) -> str:
    if len(members) == 1:
        return f"member {members[0]}"
    return f"members {', '.join(map(str, members[:-1]))} and {members[-1]}"
