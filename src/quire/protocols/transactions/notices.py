"""The notices of a store's nodes to their driver: answers to the application, and events for the trace."""

from __future__ import annotations

from typing import Literal

from quire.model.messages import MessageId
from quire.protocols.node import Notice
from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.errors import TransactionError
from quire.protocols.transactions.timestamps import Timestamp


class Began(Notice, frozen=True):
    """The answer to `begin`. Here and below, `call` is the number that the application gave its request."""

    call: int
    t: Timestamp


class Answered(Notice, frozen=True):
    """A read found this value (None: the key does not exist), a write was accepted, or the transaction ended as requested."""

    call: int
    value: Value


class Failed(Notice, frozen=True):
    """The request failed, and the transaction with it: whatever the error, it is no longer active."""

    call: int
    error: TransactionError


class GaveUp(Notice, frozen=True):
    """A replica was silent for so long that what it lacks is no longer kept. It must not come back with its old state."""

    replica: int


class BeginAnew(Notice, frozen=True):
    """This replica was away for so long that the others have dropped what it missed. It must start again without its disk."""


class Traced(Notice, frozen=True):
    """A message was sent or delivered here, or what it wrote was read (`view`). docs/trace.md defines these events."""

    kind: Literal["send", "deliver", "view"]
    id: MessageId
    op: Literal["r", "w", "commit", "abort"]
    t: Timestamp
    key: str | None = None
    dests: tuple[int, ...] = ()
    size: int = 0
