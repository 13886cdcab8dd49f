"""What a member writes to its journal. A member that is started again takes its records, in order, and is where it was."""

from __future__ import annotations

from typing import Generic

import msgspec

from quire.views.packets import Counts, Data, Entry, P, Previous
from quire.views.view import Ballot, Position, Value, View


class Started(msgspec.Struct, frozen=True, array_like=True, tag="started"):
    """This incarnation began, in this session, or wants to be in another cluster."""

    incarnation: int
    session: str
    name: str
    weight: int
    founds: bool
    cluster: str = ""


class Entered(msgspec.Struct, Generic[P], frozen=True, array_like=True, tag="entered"):
    """A view was installed. What came before it is delivered."""

    view: View
    table: dict[str, int]
    previous: Previous[P] | None


class Promised(msgspec.Struct, frozen=True, array_like=True, tag="promised"):
    ballot: Ballot
    closing: bool = False
    """Whether the member knew that the group is closing. It may have said that it has nothing more to send."""


class Voted(msgspec.Struct, frozen=True, array_like=True, tag="voted"):
    ballot: Ballot
    value: Value


class Took(msgspec.Struct, Generic[P], frozen=True, array_like=True, tag="took"):
    """A run is held that came from another process."""

    data: Data[P]


class Submitted(msgspec.Struct, frozen=True, array_like=True, tag="submitted"):
    """Operations of this process's own session, from this number on."""

    number: int
    payloads: tuple[bytes, ...]


class Sent(msgspec.Struct, Generic[P], frozen=True, array_like=True, tag="sent"):
    """A run is held that this process has made of what was submitted to it. The messages are in the records of that, and not
    again in this one."""

    data: Data[P]


class Delivered(msgspec.Struct, frozen=True, array_like=True, tag="delivered"):
    """The messages of a member of the view are delivered up to before this one. They are in the record of the run."""

    rank: int
    end: int


class Learned(msgspec.Struct, frozen=True, array_like=True, tag="learned"):
    """What others had delivered was given to this process, which was not there, and is delivered."""

    entry: Entry


class Decided(msgspec.Struct, frozen=True, array_like=True, tag="decided"):
    """How the view ended in which this process is no more."""

    value: Value


class Caught(msgspec.Struct, frozen=True, array_like=True, tag="caught"):
    """The application's state at a position, as it was restored or saved."""

    position: Position
    table: dict[str, int]
    state: bytes


class Kept(msgspec.Struct, Generic[P], frozen=True, array_like=True, tag="kept"):
    """Everything before this that still counts at a member that orders messages, so that earlier records can be dropped. The
    application's state at the position goes with it."""

    started: Started
    view: View
    previous: Previous[P] | None
    position: Position
    table: dict[str, int]
    delivered: Counts
    held: Counts
    """How many messages of each member come before the runs that are kept."""
    sessions: tuple[tuple[str, int], ...]
    """Of each member, its session, and the operation that its message 0 in this view would be, or is."""
    runs: tuple[Data[P], ...]
    released: int
    operations: tuple[bytes, ...]
    """Those of its own session after the released ones."""


Record = Started | Entered | Promised | Voted | Took | Submitted | Sent | Delivered | Learned | Decided | Caught | Kept
