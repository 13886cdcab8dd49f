"""The records in a member's journal. A member that restarts reads them in order and is back where it was."""

from __future__ import annotations

from typing import Generic

import msgspec

from quire.views.packets import Counts, Data, Entry, P, Previous
from quire.views.view import Ballot, Position, Value, View


class Started(msgspec.Struct, frozen=True, array_like=True, tag="started"):
    """An incarnation began, in this session; or it asked to move to another cluster."""

    incarnation: int
    session: str
    name: str
    weight: int
    founds: bool
    cluster: str = ""


class Entered(msgspec.Struct, Generic[P], frozen=True, array_like=True, tag="entered"):
    """A view was installed, with everything delivered that belongs to earlier ones."""

    view: View
    table: dict[str, int]
    previous: Previous[P] | None


class Promised(msgspec.Struct, frozen=True, array_like=True, tag="promised"):
    ballot: Ballot
    closing: bool = False
    """Whether the member knew that the group is closing; it may then have reported that it has nothing more to send."""


class Voted(msgspec.Struct, frozen=True, array_like=True, tag="voted"):
    ballot: Ballot
    value: Value


class Took(msgspec.Struct, Generic[P], frozen=True, array_like=True, tag="took"):
    """A run from another process is held."""

    data: Data[P]


class Submitted(msgspec.Struct, frozen=True, array_like=True, tag="submitted"):
    """Operations of this process's own session, from this number on."""

    number: int
    payloads: tuple[bytes, ...]


class Sent(msgspec.Struct, Generic[P], frozen=True, array_like=True, tag="sent"):
    """A run of this process's own operations is held. Its messages are in the `Submitted` records, and not repeated here."""

    data: Data[P]


class Delivered(msgspec.Struct, frozen=True, array_like=True, tag="delivered"):
    """All messages before number `end` of one member of the view are delivered. They are in the record of their run."""

    rank: int
    end: int


class Learned(msgspec.Struct, frozen=True, array_like=True, tag="learned"):
    """Messages that others delivered while this process was no member were sent to it, and are delivered."""

    entry: Entry


class Decided(msgspec.Struct, frozen=True, array_like=True, tag="decided"):
    """The view has ended, and this process is no longer a member."""

    value: Value | None
    """How it ended; None if the process was told only that there is a later view without it."""


class Caught(msgspec.Struct, frozen=True, array_like=True, tag="caught"):
    """A checkpoint: the application's state at a position, as it was restored or saved."""

    position: Position
    table: dict[str, int]
    state: bytes


class Kept(msgspec.Struct, Generic[P], frozen=True, array_like=True, tag="kept"):
    """Everything that is still needed of the records before this one, so that those can be dropped. It is written by a member
    in normal operation, together with the application's state at the position."""

    started: Started
    view: View
    previous: Previous[P] | None
    position: Position
    table: dict[str, int]
    delivered: Counts
    held: Counts
    """How many messages of each member come before the runs that are kept."""
    sessions: tuple[tuple[str, int], ...]
    """For each member, its session, and the number of the operation that is, or would be, its message 0 in this view."""
    runs: tuple[Data[P], ...]
    released: int
    operations: tuple[bytes, ...]
    """The operations of its own session after the released ones."""


Record = Started | Entered | Promised | Voted | Took | Submitted | Sent | Delivered | Learned | Decided | Caught | Kept
