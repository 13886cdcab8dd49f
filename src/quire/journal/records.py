"""The record format of a journal, in which every record can be verified, and told from garbage, by itself.

    u32 length | u32 crc32 of the rest | u64 number | u8 type | body

Integers are little endian, `length` is that of the body, and numbers are contiguous. A process that dies, or a machine that
loses power, may leave a record half-written, zeros or garbage behind the last one: the tail is *torn*, and nobody was told
that it is durable. Where a record with a later number is still whole behind a bad one, something was damaged that had been
durable: what follows was written only afterwards. That is never cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Literal, NamedTuple
from zlib import crc32

from quire.model.errors import BadInput, TooLarge

TYPES = (
    "incarnation", "view", "promise", "accept", "held", "op", "delivered", "decision", "session", "snapshot",
    "read", "horizon", "state", "clock", "process",
)  # fmt: skip
"""The types of records, numbered from 1: those of group members, of replicas of stores, and of both."""

SNAPSHOT = 1 + TYPES.index("snapshot")

BODY_BYTES_MAX = (1 << 32) - 1

Entry = tuple[int, *tuple[bytes, ...]]
"""A record that has no number yet: its type, and its body in one part or several."""

Verdict = Literal["whole", "torn", "damaged"]

_HEADER, _REST = Struct("<IIQB"), Struct("<QB")
_REST_OFFSET = _HEADER.size - _REST.size
_LONG_BYTES = 1 << 14
"""Copying so many bytes takes longer than writing them by themselves."""
_MISSING_MAX = 1 << 32
"""A gap of more records than this in the middle of a journal is not plausible."""


class Record(NamedTuple):
    number: int
    type: int
    body: bytes


class Scan(NamedTuple):
    """What was found in the bytes of a journal."""

    records: list[Record]
    """All up to the first bad one."""
    end: int
    """Where they end."""
    verdict: Verdict


def name_of(type_: int) -> str:
    """The name of a type of records, as people read it."""
    return TYPES[type_ - 1] if 1 <= type_ <= len(TYPES) else f"type {type_}"


def check_types(entries: Sequence[Entry]) -> None:
    """Refuse records of the type that the journal itself writes at a checkpoint: they would be mistaken for that."""
    if SNAPSHOT in [entry[0] for entry in entries]:
        raise BadInput("records of type snapshot are written by the journal itself; give the state to a checkpoint")


def encode(first: int, entries: Iterable[Entry]) -> bytes:
    """The bytes of records that are numbered from `first`."""
    return b"".join(encoded_pieces(first, entries))


def encoded_pieces(first: int, entries: Iterable[Entry]) -> list[bytes]:
    """The same in pieces, headers and parts of bodies, of which none is copied."""
    pieces: list[bytes] = []
    for number, (type_, *parts) in enumerate(entries, first):
        length = sum(map(len, parts))
        if length > BODY_BYTES_MAX:
            raise TooLarge("a record of a journal", length, BODY_BYTES_MAX)
        checksum = crc32(_REST.pack(number, type_))
        for part in parts:
            checksum = crc32(part, checksum)
        pieces += (_HEADER.pack(length, checksum, number, type_), *parts)
    return pieces


def put_together(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces: short ones are joined, and long ones not copied."""
    short: list[bytes] = []
    for piece in pieces:
        if len(piece) < _LONG_BYTES:
            short.append(piece)
            continue
        if short:
            yield b"".join(short)
            short = []
        yield piece
    if short:
        yield b"".join(short)


def encoded_bytes(entries: Sequence[Entry]) -> int:
    """How many bytes they take in a journal."""
    return sum([_HEADER.size + sum(map(len, parts)) for _, *parts in entries])


def scan(data: bytes, first: int = 1) -> Scan:
    """Read records numbered from `first`, up to the first bad one, and say what is behind them."""
    records: list[Record] = []
    offset, number = 0, first
    while (record := record_at(data, offset)) is not None and record.number == number:
        records.append(record)
        offset += _HEADER.size + len(record.body)
        number += 1
    if offset == len(data):
        return Scan(records, offset, "whole")
    return Scan(records, offset, "damaged" if holds_record(data, offset, number) else "torn")


def record_at(data: bytes, offset: int) -> Record | None:
    """The record that begins there, if it is whole."""
    if len(data) - offset < _HEADER.size:
        return None
    length, checksum, number, type_ = _HEADER.unpack_from(data, offset)
    body = offset + _HEADER.size
    if length > len(data) - body or crc32(memoryview(data)[offset + _REST_OFFSET : body + length]) != checksum:
        return None
    return Record(number, type_, data[body : body + length])


def holds_record(data: bytes, start: int, number: int) -> bool:
    """Whether a whole record with this number or a later one begins anywhere from `start` on."""
    # Only offsets are checked where the length leaves room for the body, which are few, and where the number is not 0, which it
    # is everywhere in a tail of zeros.
    length_top = min((len(data) - start) >> 24, 0xFF)
    header = re.compile(b"(?s)(?=.{3}[\\x00-\\x%02x].{4}(?!\\x00{8}).{9})" % length_top)
    for found in header.finditer(data, start):
        offset = found.start()
        # Noise that looks like a valid length would cost a checksum of megabytes; hardly any also looks like a valid number.
        if number <= _HEADER.unpack_from(data, offset)[2] < number + _MISSING_MAX and record_at(data, offset) is not None:
            return True
    return False
