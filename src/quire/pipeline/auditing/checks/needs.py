"""What the checks of messages need of a trace: messages, numbers without gaps, and destinations."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quire.pipeline.auditing.check import Need
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.results import Results
from quire.trace.schema import RunInfo


class Recorded(msgspec.Struct, frozen=True):
    """What the run says of itself."""

    history: bool = False
    """It is a history of a database: what is sent and delivered are versions, written and installed."""


def recorded(info: RunInfo) -> Recorded:
    return Recorded(history=info.source == "import" and info.settings.get("format") == "history")


MESSAGES = Need(
    lambda results: results.of(Recorded).history,
    "the trace is a history of a database, which tells of versions, not of messages",
)
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
