"""The requests of an application to a client of the store. Each is answered once: by Began, Answered or Failed.

`until_ns`: when the client gives up waiting for the replicas, if not after the patience that all clients have.
"""

from __future__ import annotations

import msgspec

from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.timestamps import Timestamp


class Begin(msgspec.Struct, frozen=True):
    """Start a transaction, possibly after a delay, or at once in the place of a refused one that reserved it."""

    delay_ns: int = 0
    instead_of: Timestamp | None = None


class Get(msgspec.Struct, frozen=True):
    """Answered with the value of the key; None: the key does not exist."""

    t: Timestamp
    key: str
    until_ns: int | None = None


class Put(msgspec.Struct, frozen=True):
    """Answered when enough replicas have agreed. None deletes the key; anything else creates it."""

    t: Timestamp
    key: str
    value: Value
    until_ns: int | None = None


class Finish(msgspec.Struct, frozen=True):
    """Commit or abort the transaction. An abort is always answered, even after the end. `again`: it will be retried, and
    keeps its place until then, as if it had been refused."""

    t: Timestamp
    commit: bool
    until_ns: int | None = None
    again: bool = False


Request = Begin | Get | Put | Finish
