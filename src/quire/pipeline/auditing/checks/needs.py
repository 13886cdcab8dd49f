"""What the checks of messages need of a trace: numbers without gaps, and destinations."""

from __future__ import annotations

from collections.abc import Callable

from quire.pipeline.auditing.check import Need
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.results import Results

NUMBERS = Need(lambda results: results.of(Orders).gaps, "the processes do not number their messages 0, 1, 2 and so on")


def unaddressed(results: Results) -> str:
    """Why nothing is known of what depends on destinations, if some are not recorded."""
    found = results.of(Orders)
    if not found.unrecorded:
        return ""
    return f"the trace does not say to whom {found.unrecorded:,} of its {found.messages:,} messages were addressed"


def as_delivered(holds: str) -> Callable[[Results], str]:
    """An order of what was delivered, which can be decided although some destinations are not recorded."""

    def partly(results: Results) -> str:
        why = unaddressed(results)
        return why and f"{holds}; whether every destination got everything is not known, because {why}"

    return partly
