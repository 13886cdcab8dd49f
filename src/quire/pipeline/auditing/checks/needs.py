"""Preconditions of the message checks: messages, message numbers without gaps, and recorded destinations."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quire.pipeline.auditing.check import Need
from quire.pipeline.auditing.findings import Orders
from quire.pipeline.auditing.results import Results
from quire.trace.schema import RunInfo


class Recorded(msgspec.Struct, frozen=True):
    """What the run's description says about its trace."""

    history: bool = False
    """The trace is a database history: its sends and deliveries are versions being written and installed."""


def recorded(info: RunInfo) -> Recorded:
    return Recorded(history=info.source == "import" and info.settings.get("format") == "history")


MESSAGES = Need(
    lambda results: results.of(Recorded).history,
    "the trace is a history of a database, which tells of versions, not of messages",
)
NUMBERS = Need(lambda results: results.of(Orders).gaps, "the processes do not number their messages 0, 1, 2 and so on")


def unaddressed(results: Results) -> str:
    """Why nothing that depends on destinations can be decided: some are not recorded. Empty if all are."""
    found = results.of(Orders)
    if not found.unrecorded:
        return ""
    return f"the trace does not say to whom {found.unrecorded:,} of its {found.messages:,} messages were addressed"


def as_delivered(holds: str) -> Callable[[Results], str]:
    """For checks of the order of what was delivered, which can be decided although some destinations are not recorded."""

    def partly(results: Results) -> str:
        why = unaddressed(results)
        return why and f"{holds}; whether every destination got everything is not known, because {why}"

    return partly
