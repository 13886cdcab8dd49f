"""What the checks of messages need of a trace: numbers without gaps, and destinations."""

from __future__ import annotations

from quire.pipeline.auditing.check import Need
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.results import Results

NUMBERS = Need(lambda results: results.of(Orders).gaps, "the processes do not number their messages 0, 1, 2 and so on")


def unaddressed(results: Results) -> str:
    """Why nothing is known of what depends on destinations, if some are not recorded."""
    found = results.of(Orders)
    if not found.unrecorded:
        return ""
    return f"the trace does not say to whom {found.unrecorded} of its {found.messages} messages were addressed"
