"""The notices of a client of the sequencing service to its application."""

from __future__ import annotations

import msgspec

from quire.model.errors import QuireError
from quire.model.messages import Run
from quire.protocols.node import Notice


class Delivered(Notice, frozen=True):
    """Messages of the group are delivered; `seq` is the number of the first."""

    group: str
    seq: int
    run: Run


class Changed(Notice, frozen=True):
    """`who` joined or left (`kind`): these are the members from now on, with the addresses of those that gave one. A client's
    own leave is the last event of the group."""

    group: str
    seq: int
    kind: int
    who: int
    members: tuple[int, ...]
    at: dict[int, str] = msgspec.field(default_factory=dict)


class Skipped(Notice, frozen=True):
    """The messages with these numbers, first to last, are unknown to everybody and will be delivered nowhere."""

    group: str
    first: int
    last: int


class Numbered(Notice, frozen=True):
    """This client's messages, from its own number `first` on, have numbers in the group from `seq` on. For messages of a client
    that is no member it also says who must deliver them; a member learns that when it delivers them itself."""

    group: str
    first: int
    count: int
    seq: int
    members: tuple[int, ...] | None


class Found(Notice, frozen=True):
    """The group exists, and its sequencer is known."""

    group: str


class Failed(Notice, frozen=True):
    """A request about the group has failed; `error` says why."""

    group: str
    error: QuireError
