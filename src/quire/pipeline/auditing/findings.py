"""Result types of the pass over all events: violations of integrity, agreement, FIFO and causal order, and its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from quire.model.messages import MessageId

_T = TypeVar("_T")


class Breach(msgspec.Struct, frozen=True, order=True):
    """A send or a delivery that violates integrity; `kind` is one of the kernel's kinds of breach."""

    process: int
    message: MessageId
    kind: int


class Lost(msgspec.Struct, frozen=True, order=True):
    """A message that a process had to deliver and did not. It had to because of another correct process: the sender, or else
    one that delivered the message."""

    message: MessageId
    process: int
    because_of: int


class Late(msgspec.Struct, frozen=True, order=True):
    """A delivery of a message at a process that had not yet delivered an earlier one."""

    process: int
    message: MessageId
    missed: MessageId


class Dated(msgspec.Struct, Generic[_T], frozen=True, order=True):
    """A finding and when it occurred; the smallest of several is the first."""

    segment: int
    event: int
    found: _T


class Tally(msgspec.Struct, Generic[_T], frozen=True):
    """How many violations there are, and the first."""

    count: int = 0
    first: _T | None = None


class Orders(msgspec.Struct, kw_only=True):
    """The result of the pass. If there are `gaps`, nothing was judged."""

    messages: int = 0
    integrity: Tally[Breach] = Tally()
    agreement: Tally[Lost] = Tally()
    fifo: Tally[Late] = Tally()
    causal: Tally[Late] = Tally()
    gaps: bool = False
    """Whether a process skips message numbers."""
    unrecorded: int = 0
    """How many messages do not record their destinations."""
    unordered: MessageId | None = None
    """A message that was delivered before it was sent, which means that happened-before is not known."""
    rebuilt: bool = False
    """Whether logical times were missing or wrong, and the order of events was rebuilt from the logs."""
    segments: int = 1


def first_of(findings: Sequence[Dated[_T]]) -> _T | None:
    return min(findings).found if findings else None
