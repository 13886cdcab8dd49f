"""The pipeline: traces in, verdicts out, on the caller's Spark session.

`audit(spark, directory)` is all that most callers need. Importing this package is cheap; Spark and the compiled
kernels are loaded when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.pipeline.auditing.auditor import audit
    from quire.pipeline.auditing.verdicts import Audit, Check, Verdict, Witness

__all__ = ["Audit", "Check", "Verdict", "Witness", "audit"]


def __getattr__(name: str) -> object:
    if name == "audit":
        from quire.pipeline.auditing.auditor import audit

        return audit
    if name in __all__:
        from quire.pipeline.auditing import verdicts

        return getattr(verdicts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
