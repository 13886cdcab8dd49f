"""Causality queries: the past and the future of an event, concurrent events, and the causally first matches of a pattern.

At every process, the past of an event is a prefix of its log and the future a suffix, so one position per process describes
each of them. Only the vector times of the events in question leave the segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.model.messages import MessageId
from quire.pipeline.causality.critical import Path, PathTask, check_by
from quire.pipeline.causality.events import (
    Described,
    DescribeTask,
    Event,
    MatchTask,
    Named,
    Place,
    PlaceTask,
    SendTask,
    groups_of,
)
from quire.pipeline.causality.segments import Piece, Start
from quire.pipeline.causality.tasks import Answer, AskTask
from quire.pipeline.layout import Layout, RowGroup
from quire.pipeline.tasks import Runner

SELECTED_MAX = 2_000
"""The most events among which concurrent pairs are sought, as their number grows quadratically."""


class Relation(StrEnum):
    SAME = "same"
    BEFORE = "before"
    AFTER = "after"
    CONCURRENT = "concurrent"


class Share(msgspec.Struct, frozen=True):
    """A part of one process's log: the positions from `first` to before `end`."""

    process: int
    first: int
    end: int

    @property
    def events(self) -> int:
        return self.end - self.first


class Around(msgspec.Struct, frozen=True):
    """The past of an event, its future, and what is concurrent with it; the event itself is in none of them."""

    event: Event
    clock: tuple[int, ...]
    past: tuple[Share, ...]
    future: tuple[Share, ...]
    concurrent: tuple[Share, ...]


class Pairs(msgspec.Struct, frozen=True):
    """How many pairs of distinct events are ordered by happened-before, and how many are concurrent."""

    ordered: int
    concurrent: int


class Questions:
    """Answers causality queries about one trace."""

    def __init__(self, run: Runner, layout: Layout, segments: Sequence[tuple[Piece, Start | None]], messages: int) -> None:
        self._run = run
        self.layout = layout
        self.segments = segments
        self.messages = messages
        self.sizes = layout.sizes()

    @property
    def rebuilt(self) -> bool:
        """Whether the recorded logical times were missing or wrong, so that the order was rebuilt from the logs."""
        return self.segments[0][0].rebuild

    def around(self, event: Event) -> Around:
        """The past and the future of an event, and what is concurrent with it."""
        self._check(event)
        answers = self._ask([event])
        clock = next(answer.clocks[0] for answer in answers if answer.found)
        after = self._first_after(answers)[0]
        past, future, rest = [], [], []
        for process, size in enumerate(self.sizes):
            before = int(clock[process]) - (process == event.process)
            later = size if after[process] < 0 else int(after[process])
            from_here = later + (process == event.process)
            past.append(Share(process, 0, before))
            future.append(Share(process, from_here, size))
            rest.append(Share(process, before, later))
        return Around(event, tuple(clock.tolist()), _some(past), _some(future), _some(rest))

    def relation(self, one: Event, other: Event) -> Relation:
        """How two events are ordered by happened-before."""
        if one == other:
            return Relation.SAME
        clocks = self.clocks([one, other])
        if clocks[other][one.process] > one.pos:
            return Relation.BEFORE
        return Relation.AFTER if clocks[one][other.process] > other.pos else Relation.CONCURRENT

    def clocks(self, events: Sequence[Event]) -> dict[Event, tuple[int, ...]]:
        """The vector times of some events."""
        for event in events:
            self._check(event)
        answers = self._ask(events)
        return {
            events[index]: tuple(clock.tolist())
            for answer in answers
            for index, clock in zip(answer.found, answer.clocks, strict=True)
        }

    def pairs(self) -> Pairs:
        """How many pairs of events are ordered: each event comes after as many as its vector time counts, without itself."""
        ordered = sum(answer.ordered for answer in self._ask([]))
        total = self.layout.events
        return Pairs(ordered, total * (total - 1) // 2 - ordered)

    def first(self, pattern: str, column: str = "text") -> list[Event]:
        """The matching events with no other match in their causal past: where the trouble began."""
        candidates = self.matching(pattern, column, limit=1)
        clocks = self.clocks(candidates)
        return [
            event
            for event in candidates
            if not any(clocks[event][other.process] > other.pos for other in candidates if other != event)
        ]

    def concurrent_pairs(self, pattern: str, column: str = "text", *, limit: int = 100) -> list[tuple[Event, Event]]:
        """Pairs of concurrent matching events, in order of the events. Raises BadInput if more than 2,000 events match."""
        selected = self.matching(pattern, column, limit=SELECTED_MAX + 1)
        if len(selected) > SELECTED_MAX:
            raise BadInput(f"{pattern!r} matches more than {SELECTED_MAX:,} events: pairs grow with the square, so match fewer")
        clocks = self.clocks(selected)
        process = np.array([event.process for event in selected], np.int64)
        pos = np.array([event.pos for event in selected], np.int64)
        matrix = np.array([clocks[event] for event in selected], np.int64).reshape(len(selected), -1)
        found = []
        for index, event in enumerate(selected):
            knows = matrix[index, process] > pos
            known = matrix[:, event.process] > event.pos
            for other in np.flatnonzero(~knows & ~known).tolist():
                if other > index:
                    found.append((event, selected[other]))
                    if len(found) == limit:
                        return found
        return found

    def critical_path(self, by: str = "events") -> Path:
        """The chain that determined when the last event could happen."""
        check_by(by)
        whole = Piece(self.layout.world, self.layout.groups, None, None, whole=True, rebuild=self.rebuilt)
        path: Path = self._run([PathTask(whole, by)])[0]
        return path

    def matching(self, pattern: str, column: str = "text", *, limit: int) -> list[Event]:
        """The first `limit` matching events of each process, sorted by process and position."""
        tasks = [MatchTask(self.layout.world, groups, column, pattern, limit) for groups in self._by_process()]
        return sorted(event for matches in self._run(tasks) for event in matches.events)

    def describe(self, events: Sequence[Event]) -> dict[Event, Described]:
        """What the logs say about some events."""
        chosen = tuple(sorted(set(events)))
        if not chosen:
            return {}
        answer = self._run([DescribeTask(self.layout.world, groups_of(self.layout.groups, chosen), chosen)])[0]
        hosts = self.layout.hosts
        return {
            Event(found.process, found.pos): msgspec.structs.replace(found, host=hosts[found.process] if hosts else None)
            for found in answer.events
        }

    def at(self, name: Place | Named) -> Event:
        """The event at this place of the log, or with this name."""
        found = self._at(str(name), name if isinstance(name, Place) else None) or self._at(str(name), None)
        example = self.layout.hosts[0] if self.layout.hosts else "0"
        if not found:
            raise BadInput(
                f"there is no event {name}; write HOST@NUMBER, like {example}@0, FILE:LINE, or what the log calls it"
            )
        if len(found) > 1:
            named = ", ".join(f"{self.layout.hosts[event.process]}@{event.pos}" for event in found[:5])
            raise BadInput(f"there are {len(found)} events {name}; name one of them, like {named}")
        return found[0]

    def _at(self, name: str, place: Place | None) -> list[Event]:
        tasks = [PlaceTask(self.layout.world, groups, name, place) for groups in self._by_process()]
        return sorted({event for matches in self._run(tasks) for event in matches.events})

    def _by_process(self) -> list[tuple[RowGroup, ...]]:
        return [tuple(groups) for _, groups in groupby(self.layout.groups, key=lambda group: group.process)]

    def sending(self, message: MessageId) -> Event:
        """The event at which a message was sent."""
        if not 0 <= message.origin < self.layout.world.members:
            raise BadInput(f"the run has processes 0 to {self.layout.world.members - 1}, so none sent {message}")
        groups = tuple(group for group in self.layout.groups if group.process == message.origin)
        found = self._run([SendTask(self.layout.world, groups, message.origin, message.seq)])[0]
        if not found.events:
            raise BadInput(f"message {message} was never sent")
        event: Event = found.events[0]
        return event

    def _check(self, event: Event) -> None:
        if not 0 <= event.process < self.layout.world.members:
            raise BadInput(f"there is no event {event}: the run has processes 0 to {self.layout.world.members - 1}")
        if not 0 <= event.pos < self.sizes[event.process]:
            raise BadInput(f"there is no event {event}: process {event.process} has {self.sizes[event.process]} events")

    def _ask(self, events: Sequence[Event]) -> list[Answer]:
        return self._run([AskTask(piece, start, tuple(events)) for piece, start in self.segments])

    def _first_after(self, answers: Sequence[Answer]) -> np.ndarray:
        after = np.full_like(answers[0].after, -1)
        for answer in answers:
            unset = (after < 0) & (answer.after >= 0)
            after[unset] = answer.after[unset]
        return after


def _some(shares: Sequence[Share]) -> tuple[Share, ...]:
    return tuple(share for share in shares if share.events > 0)
