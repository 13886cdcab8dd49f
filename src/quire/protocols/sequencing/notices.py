"""What a client tells its application."""

from __future__ import annotations

import msgspec

from quire.model.errors import QuireError
from quire.model.messages import Run
from quire.protocols.node import Notice


class Delivered(Notice, frozen=True):
    """Messages of the group, the first of which has this number."""

    group: str
    seq: int
    run: Run


class Changed(Notice, frozen=True):
    """`who` joined or left (`kind`): these are the members from now on, and where those can be reached that said so. A
    client's own leave is the last of the group."""

    group: str
    seq: int
    kind: int
    who: int
    members: tuple[int, ...]
    at: dict[int, str] = msgspec.field(default_factory=dict)


class Skipped(Notice, frozen=True):
    """Nobody knows what had these numbers of the group, from the first to the last; nothing of them is delivered anywhere."""

    group: str
    first: int
    last: int


class Numbered(Notice, frozen=True):
    """This client's messages from number `first` of its own on have numbers in the group from `seq` on. To the messages
    of who was no member it says who must deliver them; a member knows when it delivers them itself."""

    group: str
    first: int
    count: int
    seq: int
    members: tuple[int, ...] | None


class Found(Notice, frozen=True):
    """The group exists, and its sequencer is known."""

    group: str


class Failed(Notice, frozen=True):
    """What was asked about the group cannot be: `error` says why."""

    group: str
    error: QuireError
