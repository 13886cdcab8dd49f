"""What an application asks of a client of the store. Each is answered once: by Began, Answered or Failed."""

from __future__ import annotations

import msgspec

from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.timestamps import Timestamp


class Begin(msgspec.Struct, frozen=True):
    """Start a transaction, after a delay."""

    delay_ns: int = 0


class Get(msgspec.Struct, frozen=True):
    """Answered with the value of the key; None: there is no such key."""

    t: Timestamp
    key: str


class Put(msgspec.Struct, frozen=True):
    """Answered when enough replicas have agreed. None deletes the key, anything else creates it."""

    t: Timestamp
    key: str
    value: Value


class Finish(msgspec.Struct, frozen=True):
    """End the transaction, and keep what it wrote, or not. Not keeping it is always answered, even after the end."""

    t: Timestamp
    commit: bool


Request = Begin | Get | Put | Finish
