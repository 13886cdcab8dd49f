"""The kinds of tasks that causality queries run, and the task that finds vector times and futures of events."""

from __future__ import annotations

import msgspec
import numpy as np

from quire.pipeline.causality.critical import Path, PathTask, critical_path
from quire.pipeline.causality.each import Answers, EachTask, ask_each
from quire.pipeline.causality.events import (
    DescribeTask,
    Descriptions,
    Event,
    Matches,
    MatchTask,
    PlaceTask,
    SendTask,
    describe,
    find_matches,
    find_place,
    find_send,
)
from quire.pipeline.causality.segments import (
    Piece,
    Start,
    Summary,
    SummaryTask,
    Survey,
    SurveyTask,
    summarise,
    survey,
    vector_times,
)
from quire.pipeline.tasks import job_of


class AskTask(msgspec.Struct, tag="ask"):
    """Find the vector times of some events, and the first event of each process that happened after each of them."""

    piece: Piece
    start: Start | None
    events: tuple[Event, ...]


class Answer(msgspec.Struct, kw_only=True):
    found: list[int]
    """Which of the events are in this segment."""
    clocks: np.ndarray
    """Their vector times, a row each."""
    after: np.ndarray
    """For every event in question and every process, the first position in this segment that is the event or after it; -1 if
    there is none."""
    ordered: int
    """How many ordered pairs of events have their later event in this segment."""


def ask(task: AskTask) -> Answer:
    members = task.piece.world.members
    events, blocks = vector_times(task.piece, task.start)
    after = np.full((len(task.events), members), -1, np.int64)
    found, clocks, ordered = [], [], 0
    for block in blocks:
        ordered += int(block.clocks.sum(dtype=np.int64)) - len(block.clocks)
        pos = events.pos[block.event]
        for index, event in enumerate(task.events):
            later = np.flatnonzero(block.clocks[:, event.process] > event.pos)
            # Positions ascend at each process, so the first of each is the smallest.
            processes, firsts = np.unique(block.process[later], return_index=True)
            unset = after[index, processes] < 0
            after[index, processes[unset]] = pos[later[firsts[unset]]]
            here = np.flatnonzero((block.process == event.process) & (pos == event.pos))
            if len(here):
                found.append(index)
                clocks.append(block.clocks[here[0]].astype(np.int64))
    return Answer(found=found, clocks=np.array(clocks, np.int64).reshape(-1, members), after=after, ordered=ordered)


CAUSALITY = job_of(
    {
        SurveyTask: (survey, Survey),
        SummaryTask: (summarise, Summary),
        AskTask: (ask, Answer),
        MatchTask: (find_matches, Matches),
        SendTask: (find_send, Matches),
        PlaceTask: (find_place, Matches),
        DescribeTask: (describe, Descriptions),
        PathTask: (critical_path, Path),
        EachTask: (ask_each, Answers),
    }
)
