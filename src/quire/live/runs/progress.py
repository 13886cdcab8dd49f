"""The reports of a process in a run to the process that started it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quire.model.errors import QuireError

PROGRESS_S = 0.1


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How far a member is: messages accepted from it, and messages delivered to it."""

    sent: int
    delivered: int
    unrecorded: str = ""
    """Why its part of the trace will not be complete, as soon as that is known."""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The final report of a member. `stopped`: the group was closed, here or elsewhere, before all that was planned was sent;
    what was sent is delivered. `error`: a sentence, if it could not join or not everything is known to be delivered."""

    sent: int
    delivered: int
    stopped: bool = False
    error: str = ""
    bad_input: bool = False


class Standing(msgspec.Struct, frozen=True, tag="standing"):
    """The status of a member of a changing group, reported at every view change, and regularly."""

    sent: int
    """How many messages were accepted from it, before a restart, too."""
    acknowledged: int
    """How many of these are known to be delivered."""
    delivered: int
    """How many messages this process has delivered."""
    view: int
    members: tuple[str, ...]
    """The members of its view."""
    event: str = ""
    """What has just happened to it: `excluded`, `blocked`, `unblocked`, `restored`; empty if nothing has."""
    unrecorded: str = ""
    """Why its part of the trace will not be complete, as soon as that is known."""


class Running(msgspec.Struct, frozen=True, tag="running"):
    """A unit of a service of sequencers works, as one of them knows; sequencers count from 0."""

    unit: int
    epoch: int
    """Another one for each time that this changes."""
    primary: int
    backups: tuple[int, ...]


Tell = Callable[[Progress | Standing | Running], None]


def sentence(error: QuireError) -> str:
    """What went wrong, and what it led to."""
    cause = error.__cause__
    return f"{cause}; {error}" if isinstance(cause, QuireError) else str(error)
