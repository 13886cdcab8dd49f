"""Significant order: conflicting requests begin in the order of significant precedence, and in the same order everywhere.

Of two conflicting requests at an object of a member, the one that significantly precedes the other begins first. An instance
that made calls receives the answers in that order. Two conflicting requests that share two destinations begin in the same
order at both. Each task judges a segment of the trace, where messages are delivered and instances end soon enough for that
(`call_segments`); otherwise one task reads the whole trace.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.model.messages import MessageId
from quire.model.orders import Guarantee
from quire.pipeline.auditing.call_segments import CallPart, TimeSegment, arrange_segment, cut_by_time, read_segment
from quire.pipeline.auditing.calls import COLUMNS, Began, Calls, Conflicts
from quire.pipeline.auditing.check import AuditCheck, Need, Question, TaskKind
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.verdicts import LoggedEvent, Witness
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World, correct_members


class SignificantTask(msgspec.Struct, tag="significant"):
    world: World
    groups: tuple[RowGroup, ...]
    conflicts: Conflicts | None
    segments: tuple[TimeSegment, ...] = ()
    """In which it may be cut."""
    segment: TimeSegment | None = None
    """The one to judge; None: the whole trace."""


class SignificantResult(msgspec.Struct, kw_only=True):
    declared: bool = True
    """Whether the run says which operations conflict. If not, nothing was judged."""
    why: str = ""
    """Why nothing could be judged; if it is set, the fields below are not."""
    early: int = 0
    """How many requests and responses were delivered before a conflicting one that significantly precedes them."""
    opposite: int = 0
    """How many pairs of destinations begin two conflicting requests in different orders."""
    seen: tuple[Began, ...] = ()
    """A delivery that was too early and the one it should have followed; or two at one destination and the same at another."""
    chain: tuple[MessageId, ...] = ()
    """How the second delivery's message significantly precedes the first's: messages, each of which precedes the next."""
    part: CallPart | None = None
    """Of a segment."""

    def joined(self, other: SignificantResult) -> SignificantResult:
        """What was found in both segments."""
        if self.part is None or other.part is None:
            return self if self.part is None else other
        part = self.part.joined(other.part)
        first = min((each for each in (self, other) if each.early), key=lambda each: each.seen[0].place(), default=None)
        return _result(part, self.early + other.early, first.seen if first else (), first.chain if first else ())

    @property
    def violations(self) -> int:
        return self.early + self.opposite


def parse_conflicts(settings: Mapping[str, object]) -> Conflicts | None:
    """The conflicts that a run's settings declare; None if they declare none."""
    if "conflicts" not in settings:
        return None
    try:
        return msgspec.convert(settings["conflicts"], Conflicts)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"settings.conflicts in run.json must list operations for each operation of each object: {error}"
        ) from error


def judge_significant(task: SignificantTask) -> SignificantResult:
    """Read the whole trace, with the text columns, or a segment of it, and judge it."""
    if task.conflicts is None:
        return SignificantResult(declared=False)
    if task.segment is None:
        rows = read_labelled(task.world, task.groups, COLUMNS, times=True, as_met=("txn",))
        return judge_calls(rows, task.conflicts, correct_members(task.world))
    found = read_segment(task.world, task.groups, task.segment)
    calls, part = arrange_segment(found, task.segment, task.conflicts, task.world)
    if not part.fits or _say_unnamed(part.instances, part.operations):
        return _result(part)
    calls.arrange_by_time()
    early = calls.find_early()
    part = msgspec.structs.replace(part, disagreeing=tuple(calls.find_disagreeing()))
    return _result(part, early.deliveries, early.seen, early.chain)


def judge_calls(rows: Labelled, declared: Conflicts, correct: np.ndarray, first: np.ndarray | None = None) -> SignificantResult:
    """The part of `judge_significant` that needs no files. Only the deliveries of correct members are judged. `first`: the
    number of the first message that each process sends, if not 0."""
    calls = Calls(rows, declared, correct, rows.lamport, np.ones(len(rows.kind), np.bool_))
    why = _say_unnamed(*calls.unnamed()) or calls.arrange(np.zeros(len(correct), np.int64) if first is None else first)
    if why:
        return SignificantResult(why=why)
    early = calls.find_early()
    part = CallPart(disagreeing=tuple(calls.find_disagreeing()))
    return msgspec.structs.replace(_result(part, early.deliveries, early.seen, early.chain), part=None)


def _result(
    part: CallPart, early: int = 0, seen: tuple[Began, ...] = (), chain: tuple[MessageId, ...] = ()
) -> SignificantResult:  # fmt: skip
    """What was found, as far as anything can be said."""
    if why := _say_unnamed(part.instances, part.operations):
        return SignificantResult(why=why, part=part)
    if not early and part.disagreeing:
        seen = min(part.disagreeing, key=lambda each: each.pair()).seen
    return SignificantResult(early=early, opposite=len(part.disagreeing), seen=seen, chain=chain, part=part)


def _say_unnamed(instances: int, operations: int) -> str:
    if instances:
        return f"{instances} sends and deliveries do not name their instance in txn"
    return f"{operations} sends and deliveries do not name their operation in op" if operations else ""


def _settled(found: SignificantResult) -> bool:
    return found.part is None or found.part.settled


def _cut(task: SignificantTask) -> list[SignificantTask]:
    return [msgspec.structs.replace(task, segment=segment) for segment in task.segments] or [task]


def _explain(results: Results, _: Log) -> Explanation:
    """The two deliveries in the wrong order, and why their order matters. Needs no lookups: the task's result has it all."""
    found = results.of(SignificantResult)
    names = tuple(dict.fromkeys(each.message for each in found.seen))
    witness = Witness(
        messages=tuple(map(str, names)),
        members=tuple(dict.fromkeys(each.member for each in found.seen)),
        positions=tuple(LoggedEvent(each.member, "deliver", str(each.message), each.pos, each.message) for each in found.seen),
        chain=tuple(map(str, found.chain)),
        names=names,
    )
    return Explanation(witness, because(found))


def because(found: SignificantResult) -> str:
    """The first violation as a sentence; called only if there is one."""
    first, second = found.seen[:2]
    if not found.early:
        third, fourth = found.seen[2:]
        return (
            f"{_at(first)} began {_what(first)} before {_what(second)}, "
            f"but {_at(third)} began {_what(fourth)} before {_what(third)}"
        )
    path = ", then ".join(map(str, found.chain))
    if first.request:
        return f"{_at(first)} began {_what(first)} before {_what(second)}, which significantly precedes it: {path}"
    return (
        f"instance {first.where} at member {first.member} received {first.message} "
        f"before {second.message}, which significantly precedes it: {path}"
    )


def _at(began: Began) -> str:
    return f"{began.where} at member {began.member}"


def _what(began: Began) -> str:
    return f"{began.message} ({began.op})"


def _make(question: Question) -> SignificantTask:
    layout, conflicts = question.layout, parse_conflicts(question.info.settings)
    return SignificantTask(layout.world, layout.groups, conflicts, () if conflicts is None else cut_by_time(layout))


CONFLICTS = Need(
    lambda results: not results.of(SignificantResult).declared,
    "run.json does not list conflicting operations in settings.conflicts",
)

SIGNIFICANT = AuditCheck(
    guarantee=Guarantee.SIGNIFICANT,
    holds="conflicting requests began in their significant order, and everywhere alike",
    needs=(CONFLICTS,),
    tasks=(TaskKind(SignificantTask, SignificantResult, judge_significant, _make, _cut, _settled),),
    count=lambda results: results.of(SignificantResult).violations,
    undecided=lambda results: results.of(SignificantResult).why,
    explain=_explain,
)
