"""The notices of a member of an object group to its application, which runs the operations."""

from __future__ import annotations

from typing import Literal

from quire.protocols.node import Notice
from quire.protocols.objects.packets import Instance, Undo


class Sent(Notice, frozen=True):
    """A message was sent: a request to one of its targets, or a response. Only traces need this."""

    sender: Instance
    op: str
    """Of a response: how the instance ended."""
    number: int
    object: str | None
    """The target of a request; None: it is a response."""
    to: tuple[int, ...]
    shared: int | None
    """The first number of a request to several targets; the messages to all of them have it in common."""
    size: int


class Started(Notice, frozen=True):
    """A request was delivered and has become an instance. Run the operation, or undo it, then call `finish`."""

    instance: Instance
    source: int
    number: int
    op: str
    payload: bytes
    undo: bool
    waited: int
    """Nanoseconds from its receipt."""


class Refused(Notice, frozen=True):
    """A request was answered without being run, because it had to give way or another of its targets failed."""

    instance: Instance
    """What it would have become."""
    source: int
    number: int
    op: str
    size: int


class Answered(Notice, frozen=True):
    """A response was delivered to the instance that made the call. The call has ended when `left` is 0."""

    instance: Instance
    op: str
    """Of the instance that called."""
    call: int
    callee: Instance
    source: int
    number: int
    status: Literal["ok", "aborted", "died"]
    payload: bytes
    left: int


class CalleeLost(Notice, frozen=True):
    """The callee is gone with its host, and has not answered. The call has ended when `left` is 0."""

    instance: Instance
    call: int
    callee: Instance
    left: int


class Orphaned(Notice, frozen=True):
    """A direct or indirect caller of this instance is gone: stop its operation, and call `finish` when it has stopped."""

    instance: Instance


class Ended(Notice, frozen=True):
    """A root has ended, and nothing in its tree is running any more. Undo the operations in `undos`, in this order."""

    instance: Instance
    status: Literal["ok", "aborted", "died"]
    undos: tuple[Undo, ...]
    own: bool = False
    """It died of its own tree: only if that is split can it ever end."""


class StateWanted(Notice, frozen=True):
    """Members that came back need the state of this object: call `hand_over` with it. Until then, nothing runs at the
    object."""

    object: str
    to: tuple[int, ...]


class StateCame(Notice, frozen=True):
    """The state of one of this member's objects has arrived, after it came back: call `restored` when the object has it."""

    object: str
    state: bytes
    wrong: str
    """Why it could not be handed over; empty if it could."""


class CaughtUp(Notice, frozen=True):
    """This member came back, and has the states of all its objects. Whatever agrees on views must tell all members."""


class Returned(Notice, frozen=True):
    """This member has come back, and takes part again."""


class Suspected(Notice, frozen=True):
    """A peer has been silent for long while something waits for its clock. Only a change of membership can remove it."""

    peer: int
