"""The guarantees of groups with views: virtual synchrony, uniform delivery, and exactly-once operations of sessions."""

from __future__ import annotations

import msgspec
import numpy as np

from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck, Need, Question, TaskKind
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.sessions import OnceFound, judge_once
from quire.pipeline.auditing.synchrony import OUTSIDE, Seen, ViewFault, ViewsFound, Wrong, judge_synchrony, judge_uniform
from quire.pipeline.auditing.total import message_ids
from quire.pipeline.auditing.verdicts import LoggedEvent, Witness
from quire.pipeline.auditing.view_history import COLUMNS, Ending, find_views
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World, correct_members


class ViewsTask(msgspec.Struct, tag="views"):
    world: World
    groups: tuple[RowGroup, ...]


class ViewsResult(msgspec.Struct, kw_only=True):
    stays: int = 0
    """How many stays there are: times of a process in a view."""
    synchrony: ViewsFound = ViewsFound()
    uniform: ViewsFound = ViewsFound()
    once: OnceFound = OnceFound()


def judge_all_views(task: ViewsTask) -> ViewsResult:
    """Read all events, and follow every process through its views."""
    return judge_views(read_labelled(task.world, task.groups, COLUMNS), correct_members(task.world))


def judge_views(rows: Labelled, correct: np.ndarray) -> ViewsResult:
    """The part of `judge_all_views` that needs no files."""
    ids, size = message_ids(rows)
    history = find_views(rows, correct)
    return ViewsResult(
        stays=len(history.stays),
        synchrony=judge_synchrony(rows, history, ids, size),
        uniform=judge_uniform(rows, history, ids, size),
        once=judge_once(rows, history, ids, size),
    )


def _make(question: Question) -> ViewsTask:
    return ViewsTask(question.layout.world, question.layout.groups)


FOLLOWED = TaskKind(ViewsTask, ViewsResult, judge_all_views, _make)

VIEWS = Need(lambda results: not results.of(ViewsResult).stays, "the trace records no installed views")
SESSIONS = Need(
    lambda results: not results.of(ViewsResult).once.sessions,
    "the trace does not say which operations of which sessions its messages carry",
)

_ENDED = {
    Ending.EXCLUDED: ", and was then excluded",
    Ending.LEFT: ", and then left",
    Ending.CRASHED: ", and then crashed",
}


def _explain(fault: ViewFault | None) -> Explanation:
    assert fault is not None
    first, other = fault.seen
    names = tuple(dict.fromkeys(seen.message for seen in fault.seen if seen.message is not None))
    # The member that lacks the message comes first, as in every counterexample about a missing message.
    lacked = fault.wrong is Wrong.LACKED
    witness = Witness(
        messages=tuple(dict.fromkeys(map(_name, fault.seen))),
        members=tuple(dict.fromkeys(seen.member for seen in ((other, first) if lacked else (first, other)))),
        positions=tuple(LoggedEvent(seen.member, seen.kind, _name(seen), seen.pos, seen.message) for seen in fault.seen),
        names=names,
        missing=first.message if lacked else None,
    )
    return Explanation(witness, _because(fault))


def _because(fault: ViewFault) -> str:
    first, other = fault.seen
    match fault.wrong:
        case Wrong.DIFFERENT:
            return f"member {first.member} installed {first.what}, but member {other.member} installed {other.what}"
        case Wrong.JUMPED:
            return f"member {other.member} installed {other.what} at position {other.pos} right after {first.what}"
        case Wrong.ELSEWHERE:
            return (
                f"member {other.member} delivered {first.message} {_where(fault.delivered_in)} at position {other.pos}, "
                f"though member {first.member} had sent it {_where(fault.sent_in)}"
            )
    delivered = f"member {first.member} delivered {first.message} in view {fault.number}{_ENDED.get(fault.ending, '')}"
    goes_on = f"continued to view {fault.number + 1}" if fault.goes_on else "stayed to the end"
    return f"{delivered}, but member {other.member} {goes_on} without it"


def _where(number: int) -> str:
    return "outside any view" if number == OUTSIDE else f"in view {number}"


def _name(seen: Seen) -> str:
    return str(seen.message) if seen.message is not None else seen.what


def _explain_once(results: Results, _: Log) -> Explanation:
    found = results.of(ViewsResult).once
    one, other = found.twice
    names = tuple(dict.fromkeys((one.message, other.message)))
    witness = Witness(
        messages=tuple(map(str, names)),
        members=tuple(dict.fromkeys((one.member, other.member))),
        positions=tuple(LoggedEvent(each.member, "deliver", str(each.message), each.pos, each.message) for each in found.twice),
        names=names,
    )
    operation = f"operation {found.number} of session {found.session}"
    if one.member != other.member:
        ways = f"as {one.message} at member {one.member} and as {other.message} at member {other.member}"
        return Explanation(witness, f"{operation} was delivered {ways}")
    ways = f"both times as {one.message}" if one.message == other.message else f"as {one.message} and as {other.message}"
    return Explanation(witness, f"member {one.member} delivered {operation} twice, {ways}")


VIRTUAL_SYNCHRONY = AuditCheck(
    guarantee=Guarantee.VIRTUAL_SYNCHRONY,
    holds="members that continued together had delivered the same messages, each in the view in which it was sent",
    needs=(VIEWS,),
    tasks=(FOLLOWED,),
    count=lambda results: results.of(ViewsResult).synchrony.count,
    explain=lambda results, _: _explain(results.of(ViewsResult).synchrony.first),
)

UNIFORM = AuditCheck(
    guarantee=Guarantee.UNIFORM,
    holds="every message delivered in a view was delivered by all members that continued from it",
    needs=(VIEWS,),
    tasks=(FOLLOWED,),
    count=lambda results: results.of(ViewsResult).uniform.count,
    explain=lambda results, _: _explain(results.of(ViewsResult).uniform.first),
)

ONCE = AuditCheck(
    guarantee=Guarantee.ONCE,
    holds="no operation of a session was executed twice",
    needs=(SESSIONS,),
    tasks=(FOLLOWED,),
    count=lambda results: results.of(ViewsResult).once.count,
    explain=_explain_once,
)
