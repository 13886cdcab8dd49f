"""The registry of the audit's checks, in display order. A new check is one module and one entry here."""

from __future__ import annotations

from collections.abc import Iterable

from quire.model.errors import BadInput
from quire.model.orders import Guarantee, implied_by
from quire.pipeline.auditing.check import AuditCheck
from quire.pipeline.auditing.checks.agreement import AGREEMENT
from quire.pipeline.auditing.checks.hybrid import HYBRID
from quire.pipeline.auditing.checks.integrity import INTEGRITY
from quire.pipeline.auditing.checks.isolation import READ_ATOMIC, READ_COMMITTED, TRANSACTIONAL_CAUSAL
from quire.pipeline.auditing.checks.memberships import MEMBERSHIPS
from quire.pipeline.auditing.checks.precedence import CAUSAL, FIFO
from quire.pipeline.auditing.checks.serialisable import SERIALISABLE
from quire.pipeline.auditing.checks.significant import SIGNIFICANT
from quire.pipeline.auditing.checks.total import ACYCLIC, TOTAL
from quire.pipeline.auditing.checks.views import ONCE, UNIFORM, VIRTUAL_SYNCHRONY
from quire.pipeline.auditing.in_views import ViewTable, ViewTableTask, find_view_table
from quire.pipeline.auditing.search import Chain, ChainTask, FindTask, FoundEvents, find_chain, find_events
from quire.pipeline.auditing.segments import SegmentTask, Summary, judge_segment
from quire.pipeline.tasks import Job, job_of

CHECKS: tuple[AuditCheck, ...] = (
    INTEGRITY, AGREEMENT, FIFO, CAUSAL, TOTAL, ACYCLIC, HYBRID, MEMBERSHIPS, SIGNIFICANT, SERIALISABLE,
    READ_COMMITTED, READ_ATOMIC, TRANSACTIONAL_CAUSAL,
    VIRTUAL_SYNCHRONY, UNIFORM, ONCE,
)  # fmt: skip


def find_checks(guarantees: Iterable[str]) -> tuple[AuditCheck, ...]:
    """The checks of these guarantees, in registry order. Raises BadInput for a guarantee without a check."""
    wanted = dict.fromkeys(map(str, guarantees))
    known = {check.guarantee: check for check in CHECKS}
    for name in wanted:
        if name not in known:
            raise BadInput(f"there is no check {name!r}; choose from {', '.join(known)}")
    return tuple(check for check in CHECKS if check.guarantee in wanted)


def with_implied(guarantees: Iterable[str]) -> set[str]:
    """These guarantees and all that they imply."""
    names = set(map(str, guarantees))
    return names | set(map(str, implied_by(Guarantee(name) for name in names if name in set(Guarantee))))


def audit_job() -> Job:
    """The job with all kinds of tasks that an audit may run."""
    kinds = {kind.task: (kind.perform, kind.result) for check in CHECKS for kind in check.tasks}
    return job_of(
        {
            ViewTableTask: (find_view_table, ViewTable),
            SegmentTask: (judge_segment, Summary),
            FindTask: (find_events, FoundEvents),
            ChainTask: (find_chain, Chain),
            **kinds,
        }
    )
