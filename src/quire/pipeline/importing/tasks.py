"""The job with all kinds of tasks that an import runs."""

from __future__ import annotations

from quire.pipeline.importing.arranging import ArrangedRecords, ArrangeTask, arrange
from quire.pipeline.importing.building import Numbered, NumberTask, Stamped, StampTask, number, stamp
from quire.pipeline.importing.clocks import Resolved, ResolveTask, resolve
from quire.pipeline.importing.gathering import Gathered, GatherTask, gather
from quire.pipeline.importing.joining import Collected, CollectTask, Joined, JoinTask, collect, join
from quire.pipeline.importing.parsing import Counts, CountTask, Parsed, ParseTask, count, parse
from quire.pipeline.importing.writing import WriteTask, Written, write
from quire.pipeline.tasks import job_of

IMPORT = job_of(
    {
        CountTask: (count, Counts),
        ParseTask: (parse, Parsed),
        GatherTask: (gather, Gathered),
        ResolveTask: (resolve, Resolved),
        JoinTask: (join, Joined),
        CollectTask: (collect, Collected),
        ArrangeTask: (arrange, ArrangedRecords),
        NumberTask: (number, Numbered),
        StampTask: (stamp, Stamped),
        WriteTask: (write, Written),
    },
    alike=True,
)
