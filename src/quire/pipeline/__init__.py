"""The pipeline: traces in, verdicts, causes and orders out, on the caller's Spark session.

Each job is a package of its own: `auditing`, `causality`, `importing`, `ordering`. What they share (sessions, tasks, how a
trace is cut and read) lies beside them. Importing this package is cheap; Spark and the compiled kernels are loaded when
they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.pipeline.auditing.auditor import audit
    from quire.pipeline.auditing.verdicts import Audit, Check, Verdict, Witness
    from quire.pipeline.causality.cycles import Contradiction
    from quire.pipeline.causality.times import Causality, happened_before
    from quire.pipeline.exporting import export_shiviz
    from quire.pipeline.importing.importer import import_logs
    from quire.pipeline.ordering.batch import BatchOrder, order_batch
    from quire.pipeline.ordering.significance import Significance, omit_superseded
    from quire.pipeline.ordering.stream.query import close_order, order_progress, order_stream
    from quire.pipeline.ordering.stream.wishes import CausalOrder, TotalOrder
    from quire.pipeline.source import register

__all__ = [
    "Audit",
    "BatchOrder",
    "CausalOrder",
    "Causality",
    "Check",
    "Contradiction",
    "Significance",
    "TotalOrder",
    "Verdict",
    "Witness",
    "audit",
    "close_order",
    "export_shiviz",
    "happened_before",
    "import_logs",
    "omit_superseded",
    "order_batch",
    "order_progress",
    "order_stream",
    "register",
]

_HOMES = {
    "audit": "auditing.auditor",
    "Audit": "auditing.verdicts",
    "Check": "auditing.verdicts",
    "Verdict": "auditing.verdicts",
    "Witness": "auditing.verdicts",
    "Causality": "causality.times",
    "Contradiction": "causality.cycles",
    "happened_before": "causality.times",
    "export_shiviz": "exporting",
    "import_logs": "importing.importer",
    "BatchOrder": "ordering.batch",
    "order_batch": "ordering.batch",
    "Significance": "ordering.significance",
    "omit_superseded": "ordering.significance",
    "close_order": "ordering.stream.query",
    "order_progress": "ordering.stream.query",
    "order_stream": "ordering.stream.query",
    "CausalOrder": "ordering.stream.wishes",
    "TotalOrder": "ordering.stream.wishes",
    "register": "source",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
