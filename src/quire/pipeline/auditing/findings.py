"""What one pass over all events finds: violations of integrity, agreement, FIFO and causal order, and what it could not see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from quire.model.messages import MessageId

_T = TypeVar("_T")


class Breach(msgspec.Struct, frozen=True, order=True):
    """A send or a delivery that breaks integrity; `kind` is one of those that the kernel tells apart."""

    process: int
    message: MessageId
    kind: int


class Lost(msgspec.Struct, frozen=True, order=True):
    """A message that a process should have delivered and did not, because its sender is correct, or else because of one
    that delivered it."""

    message: MessageId
    process: int
    because_of: int


class Late(msgspec.Struct, frozen=True, order=True):
    """A delivery of a message at a process that had not delivered one that comes before it."""

    process: int
    message: MessageId
    missed: MessageId


class Dated(msgspec.Struct, Generic[_T], frozen=True, order=True):
    """A finding, and when it was: of several the least is the first."""

    segment: int
    event: int
    found: _T


class Tally(msgspec.Struct, Generic[_T], frozen=True):
    """How many violations there are, and the first."""

    count: int = 0
    first: _T | None = None


class Orders(msgspec.Struct, kw_only=True):
    """The result of the pass. Nothing was judged where there are `gaps`."""

    messages: int = 0
    integrity: Tally[Breach] = Tally()
    agreement: Tally[Lost] = Tally()
    fifo: Tally[Late] = Tally()
    causal: Tally[Late] = Tally()
    gaps: bool = False
    """Whether a process skips numbers of its messages."""
    unrecorded: int = 0
    """How many messages do not say to whom they were addressed."""
    unordered: MessageId | None = None
    """A message that was delivered before it was sent, so that nothing is known of what happened before what."""
    rebuilt: bool = False
    """Whether logical times were missing or wrong, and another order was found from the logs."""
    segments: int = 1


def first_of(findings: Sequence[Dated[_T]]) -> _T | None:
    return min(findings).found if findings else None
