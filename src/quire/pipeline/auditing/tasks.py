"""The tasks that an audit is made of."""

from __future__ import annotations

from quire.pipeline.auditing.deliveries import DeliveriesResult, DeliveriesTask, judge_all_deliveries
from quire.pipeline.auditing.search import Chain, ChainTask, FindTask, FoundEvents, find_chain, find_events
from quire.pipeline.auditing.segments import SegmentTask, Summary, judge_segment
from quire.pipeline.auditing.serialisable import SerialisableResult, SerialisableTask, judge_serialisable
from quire.pipeline.auditing.significant import SignificantResult, SignificantTask, judge_significant
from quire.pipeline.tasks import Job

Task = SegmentTask | DeliveriesTask | SignificantTask | SerialisableTask | FindTask | ChainTask
Result = Summary | DeliveriesResult | SignificantResult | SerialisableResult | FoundEvents | Chain


def _perform(task: Task) -> Result:
    match task:
        case SegmentTask():
            return judge_segment(task)
        case DeliveriesTask():
            return judge_all_deliveries(task)
        case SignificantTask():
            return judge_significant(task)
        case SerialisableTask():
            return judge_serialisable(task)
        case FindTask():
            return find_events(task)
        case ChainTask():
            return find_chain(task)


AUDIT = Job(
    Task,
    _perform,
    {
        SegmentTask: Summary,
        DeliveriesTask: DeliveriesResult,
        SignificantTask: SignificantResult,
        SerialisableTask: SerialisableResult,
        FindTask: FoundEvents,
        ChainTask: Chain,
    },
)
