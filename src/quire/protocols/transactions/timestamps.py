"""Timestamps, which order transactions by age, and the versions that transactions write.

A transaction's timestamp is taken when it starts: a number that is larger than any that its client has seen, and the
client's own address, so that no two are equal. A version names the write that made it: its transaction, and which of the
transaction's writes it was. Both order as tuples do.
"""

from __future__ import annotations

from typing import NamedTuple

from quire.model.messages import NUMBER_MAX, MessageId

OPERATIONS_MAX = (1 << 15) - 1
"""How many reads and writes one transaction may have: as many as its message numbers have room for."""

_NUMBERS = 1 << 16
TID_MAX = NUMBER_MAX // _NUMBERS - 1
"""A peer that names a later transaction is wrong: no store runs so long, and its clients would have no numbers left."""
BALLOTS_MAX = 1 << 32
"""So often nobody tries to end a transaction."""


class Timestamp(NamedTuple):
    """t(T) in the paper. Written `tid.pno` in traces and for people."""

    tid: int
    pno: int

    def __str__(self) -> str:
        return f"{self.tid}.{self.pno}"


class Version(NamedTuple):
    """tno in the paper: the `no`-th write of the transaction, from 1."""

    tid: int
    pno: int
    no: int

    @property
    def writer(self) -> Timestamp:
        return Timestamp(self.tid, self.pno)


ZERO = Timestamp(0, 0)
"""Before every transaction: of a key that nobody read."""
UNWRITTEN = Version(0, 0, 0)
"""The version of a key that nobody wrote."""
LATEST_PNO = NUMBER_MAX
"""After every transaction of the same number."""


def is_possible(t: Timestamp | Version) -> bool:
    """Whether a transaction of any store can have this timestamp, or have written this version. To be checked for everything
    that a peer sends."""
    return 0 <= t.tid <= TID_MAX and (isinstance(t, Timestamp) or 0 <= t.no <= OPERATIONS_MAX)


def end_id(t: Timestamp) -> MessageId:
    """The message that ends a transaction."""
    return MessageId(t.pno, t.tid * _NUMBERS)


def write_id(version: Version) -> MessageId:
    """The message that wrote a version; one can be told from the other."""
    return MessageId(version.pno, version.tid * _NUMBERS + version.no)


def read_id(t: Timestamp, number: int) -> MessageId:
    """The message by which a transaction reads; `number` is that of the operation, from 1."""
    return MessageId(t.pno, t.tid * _NUMBERS + OPERATIONS_MAX + number)
