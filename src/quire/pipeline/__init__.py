"""The Spark pipeline: audits traces, analyses their causality, imports logs of other systems, and orders events.

Each job is a package: `auditing`, `causality`, `importing`, `ordering`. The modules beside them are shared: sessions, tasks,
and how a trace is cut into segments and read. Importing this package is cheap; Spark and the compiled kernels are loaded when
they are used.
"""

from __future__ import annotations

from quire.lazy import imported_when_used

with imported_when_used(globals(), extra="spark"):
    from quire.pipeline.auditing.auditor import audit as audit
    from quire.pipeline.auditing.verdicts import Audit as Audit
    from quire.pipeline.auditing.verdicts import Check as Check
    from quire.pipeline.auditing.verdicts import Verdict as Verdict
    from quire.pipeline.auditing.verdicts import Witness as Witness
    from quire.pipeline.causality.cycles import Contradiction as Contradiction
    from quire.pipeline.causality.executions import AnsweredExecution as AnsweredExecution
    from quire.pipeline.causality.executions import each_execution as each_execution
    from quire.pipeline.causality.times import Causality as Causality
    from quire.pipeline.causality.times import happened_before as happened_before
    from quire.pipeline.exporting import export_shiviz as export_shiviz
    from quire.pipeline.importing.importer import import_logs as import_logs
    from quire.pipeline.ordering.batch import BatchOrder as BatchOrder
    from quire.pipeline.ordering.batch import order_batch as order_batch
    from quire.pipeline.ordering.significance import Significance as Significance
    from quire.pipeline.ordering.significance import omit_superseded as omit_superseded
    from quire.pipeline.ordering.stream.options import CausalOrder as CausalOrder
    from quire.pipeline.ordering.stream.options import FollowingOrder as FollowingOrder
    from quire.pipeline.ordering.stream.options import TotalOrder as TotalOrder
    from quire.pipeline.ordering.stream.query import close_order as close_order
    from quire.pipeline.ordering.stream.query import order_progress as order_progress
    from quire.pipeline.ordering.stream.query import order_stream as order_stream
    from quire.pipeline.source import register as register
