"""The journal of a store's replica: encodes its records, and rebuilds its state from a journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

import msgspec

from quire.journal.journal import Recovered
from quire.journal.records import SNAPSHOT, TYPES, Entry
from quire.protocols.transactions import records
from quire.protocols.transactions.durable import Durable, Holds, restored
from quire.protocols.transactions.pieces import PieceReader
from quire.protocols.transactions.records import AnyRecord, Record

_LENGTH = Struct("<I")
_decoder = msgspec.msgpack.Decoder(AnyRecord)
_encode = msgspec.msgpack.Encoder().encode

_TYPES: dict[type, int] = {
    kind: 1 + TYPES.index(name)
    for kind, name in (
        (records.Emptied, "incarnation"),
        (records.Founds, "incarnation"),
        (records.Began, "incarnation"),
        (records.Known, "incarnation"),
        (records.GivenUp, "incarnation"),
        (records.Prewrote, "held"),
        (records.Capped, "read"),
        (records.Promises, "promise"),
        (records.Tries, "promise"),
        (records.Accepts, "accept"),
        (records.Decided, "decision"),
        (records.Closed, "horizon"),
        (records.Forgot, "horizon"),
        (records.Piece, "state"),
    )
}


def entry(record: Record) -> Entry:
    """A record, encoded for the journal."""
    return _TYPES[type(record)], _encode(record)


def checkpoint(state: Durable) -> tuple[list[Entry], Iterator[bytes]]:
    """The records with which a new journal begins, and the state in chunks, which may be read while the state changes."""
    return [entry(records.Began(state.incarnation))], (_framed(piece) for piece in PieceReader(state))


def read_state(found: Recovered, holds: Holds) -> Durable | None:
    """The durable state of a replica when its process ended; None if it never began to take part."""
    return restored(_read(found), holds)


def _read(found: Recovered) -> Iterator[AnyRecord]:
    if found.snapshot is not None:
        yield from _unframed(found.snapshot.chunks())
    for record in found.records:
        if record.type != SNAPSHOT:  # A record of the journal itself.
            yield _decoder.decode(record.body)


def _framed(record: Record) -> bytes:
    body = _encode(record)
    return _LENGTH.pack(len(body)) + body


def _unframed(chunks: Iterable[bytes]) -> Iterator[AnyRecord]:
    buffered = bytearray()
    for chunk in chunks:
        buffered += chunk
        start = 0
        while len(buffered) - start >= _LENGTH.size:
            end = start + _LENGTH.size + _LENGTH.unpack_from(buffered, start)[0]
            if end > len(buffered):
                break
            yield _decoder.decode(bytes(buffered[start + _LENGTH.size : end]))
            start = end
        del buffered[:start]
