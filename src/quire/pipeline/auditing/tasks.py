"""The tasks that an audit is made of."""

from __future__ import annotations

from quire.pipeline.auditing.search import Chain, ChainTask, FindTask, FoundEvents, find_chain, find_events
from quire.pipeline.auditing.segments import SegmentTask, Summary, judge_segment
from quire.pipeline.auditing.total import TotalResult, TotalTask, judge_total
from quire.pipeline.tasks import Job

Task = SegmentTask | TotalTask | FindTask | ChainTask
Result = Summary | TotalResult | FoundEvents | Chain


def _perform(task: Task) -> Result:
    match task:
        case SegmentTask():
            return judge_segment(task)
        case TotalTask():
            return judge_total(task)
        case FindTask():
            return find_events(task)
        case ChainTask():
            return find_chain(task)


AUDIT = Job(Task, _perform, {SegmentTask: Summary, TotalTask: TotalResult, FindTask: FoundEvents, ChainTask: Chain})
