"""The file format of a part's log: a sequence of checksummed frames.

A frame has a kind, a length, a checksum and a body. Names come before the records that use them. A process that is killed, or
whose disk is full, leaves at most one incomplete frame, at the end; readers stop before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, NamedTuple
from zlib import crc32

import msgspec

from quire.trace.log import Address

NAMES, RECORDS, END = 1, 2, 3
_BODY_BYTES_MAX = 1 << 28
"""The longest body that a writer produces; a header with a greater length is not a header."""

_HEADER = Struct("<III")
_KIND_AND_LENGTH = Struct("<II")


class NewNames(msgspec.Struct, frozen=True, array_like=True):
    """Names for the records that follow, numbered after the names before them."""

    addresses: tuple[Address, ...] = ()
    packet_types: tuple[str, ...] = ()


class Frame(NamedTuple):
    kind: int
    body: bytes
    end: int
    """The offset of the next frame."""


def pack_frame(kind: int, body: bytes) -> bytes:
    return _HEADER.pack(kind, len(body), _checksum(kind, body)) + body


def read_frames(file: BinaryIO, start: int = 0, end: int | None = None) -> Iterator[Frame]:
    """The complete frames from one offset to another, or up to the first incomplete one."""
    file.seek(start)
    while end is None or start < end:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        kind, length, checksum = _HEADER.unpack(header)
        if not NAMES <= kind <= END or length > _BODY_BYTES_MAX:
            return
        body = file.read(length)
        if len(body) < length or _checksum(kind, body) != checksum:
            return
        start += _HEADER.size + length
        yield Frame(kind, body, start)


def read_names(file: BinaryIO, end: int) -> Iterator[NewNames]:
    """The names in the frames up to this offset; records are skipped."""
    file.seek(0)
    start = 0
    while start < end:
        kind, length, _ = _HEADER.unpack(file.read(_HEADER.size))
        if kind == NAMES:
            yield msgspec.msgpack.decode(file.read(length), type=NewNames)
        start += _HEADER.size + length
        file.seek(start)


def _checksum(kind: int, body: bytes) -> int:
    return crc32(body, crc32(_KIND_AND_LENGTH.pack(kind, len(body))))
