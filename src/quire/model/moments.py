"""The timeline of a list of faults: when each begins and ends, and how that is described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from quire.model.faults import Disconnection, Fault, Full, Stop, in_time, render_faults


class Moment(NamedTuple):
    """A fault begins or ends, at this time since the group has started."""

    at_ms: int
    fault: Fault
    begins: bool


class Happened(msgspec.Struct, frozen=True):
    """Something that happened during a run, at this time since the group has started."""

    at_s: float
    what: str
    about: str = ""


def moments(faults: Sequence[Fault]) -> list[Moment]:
    """All moments in order; at the same time, ends come before beginnings."""
    begin = [Moment(fault.at_ms, fault, begins=True) for fault in in_time(faults)]
    end = [
        Moment(fault.at_ms + fault.for_ms, fault, begins=False)
        for fault in faults
        if isinstance(fault, Stop | Full | Disconnection)
    ]
    return sorted(end + begin, key=lambda moment: (moment.at_ms, moment.begins))


def describe_running(unit: int, primary: int, backups: Sequence[int]) -> tuple[str, str]:
    """A unit of sequencers works from now on, and who runs it."""
    return f"unit {unit}", f"run by {primary}" + (f", with backup {', '.join(map(str, backups))}" if backups else "")


def describe_moment(moment: Moment) -> tuple[str, str]:
    """What happens, and to which members."""
    if moment.begins:
        what, _, about = render_faults([moment.fault]).partition(" ")
        return what, about.partition("@")[0]
    if isinstance(moment.fault, Stop):
        return "continue", str(moment.fault.member)
    if isinstance(moment.fault, Full):
        return "room", str(moment.fault.member)
    return "heal", str(moment.fault).partition(" ")[2].partition("@")[0]
