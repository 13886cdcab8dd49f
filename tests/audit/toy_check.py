"""A check of nothing anybody needs, as somebody would add one: that every member sends before it delivers anything."""

from __future__ import annotations

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing.check import AuditCheck, Need, TaskKind
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.results import Results
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.slices import read_events
from quire.trace.kinds import DELIVER


class GreetingTask(msgspec.Struct, tag="greeting"):
    world: World
    groups: tuple[RowGroup, ...]


class Rude(msgspec.Struct, frozen=True):
    """A member whose first event is a delivery."""

    member: int
    message: MessageId


class GreetingResult(msgspec.Struct):
    rude: list[Rude] = []
    events: int = 0


def judge_greetings(task: GreetingTask) -> GreetingResult:
    events = read_events(task.world, task.groups, dests=False)
    first = events.start[:-1][np.diff(events.start) > 0]
    rude = [
        Rude(int(np.searchsorted(events.start, at, side="right")) - 1, MessageId(int(events.origin[at]), int(events.seq[at])))
        for at in first
        if events.kind[at] == DELIVER
    ]
    return GreetingResult(rude, int(events.start[-1]))


def _explain(results: Results, log: Log) -> Explanation:
    rude = results.of(GreetingResult).rude[0]
    witness = log.witness([rude.message], log.first(rude.member, DELIVER, rude.message), members=[rude.member])
    return Explanation(witness, f"member {rude.member} delivered {rude.message} before it had sent anything")


GREETING = AuditCheck(
    guarantee="greeting",
    holds="every member sent before it delivered anything",
    needs=(Need(lambda results: not results.of(GreetingResult).events, "nobody sent or delivered anything"),),
    tasks=(
        TaskKind(
            GreetingTask,
            GreetingResult,
            judge_greetings,
            lambda question: GreetingTask(question.layout.world, question.layout.groups),
        ),
    ),
    count=lambda results: len(results.of(GreetingResult).rude),
    mentions=lambda results: [rude.message for rude in results.of(GreetingResult).rude[:1]],
    explain=_explain,
)
