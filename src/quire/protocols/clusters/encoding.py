"""Three encodings of the matrix clock that is sent with a message, and the choice of the smallest.

dense    every entry of the matrix, row by row; it counts the message itself, so the number of the message can be read
         from it
changes  the number of the message, then row, column and value of each entry that changed since the last message to the
         same member
bitmap   the number, the width of the matrix, a bit for each of its entries that says whether it changed, seven bits to a
         number, and then the values of those that did

A changed entry costs three numbers where a dense one costs one, so `changes` loses to `dense` once a third of the matrix
has changed; the bitmap is in between. Each reading function gives what the receiver needs, whichever way it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt

DENSE, CHANGES, BITMAP = 0, 1, 2
_BITS = 7
"""As many as fit a number that takes one byte on the wire."""

Entry = tuple[int, int, int]
"""Row, column, value: so many messages from one member to another."""
Tag = tuple[int, ...]


def write_changes(number: int, entries: Sequence[Entry]) -> Tag:
    return (number, *(value for entry in entries for value in entry))


def write_bitmap(number: int, width: int, entries: Sequence[Entry]) -> Tag:
    pieces = [0] * -(-width * width // _BITS)
    for row, column, _ in entries:
        index, bit = divmod(row * width + column, _BITS)
        pieces[index] |= 1 << bit
    return (number, width, *pieces, *(value for _, _, value in entries))


def size_bytes(tag: Tag) -> int:
    """How many bytes the numbers of a tag take on the wire."""
    return sum(1 if value < 128 else 2 if value < 256 else 3 if value < 65536 else 5 if value < 1 << 32 else 9 for value in tag)


def write_smallest(number: int, width: int, matrix: Sequence[int], entries: Sequence[Entry]) -> tuple[int, Tag]:
    """The shortest encoding, and the tag in it. `entries` are in the order of the matrix."""
    options = (
        (DENSE, tuple(matrix)),
        (CHANGES, write_changes(number, entries)),
        (BITMAP, write_bitmap(number, width, entries)),
    )
    return min(options, key=lambda option: size_bytes(option[1]))


def width_of(encoding: int, tag: Tag) -> int:
    """How many members the tag covers."""
    if encoding == DENSE:
        return isqrt(len(tag))
    if encoding == CHANGES:
        return max((*tag[1::3], *tag[2::3]), default=-1) + 1
    return tag[1]


def is_sound(encoding: int, tag: Tag, width_max: int) -> bool:
    """Whether the tag can be decoded. To be checked for everything that a peer sends."""
    if not tag or min(tag) < 0:
        return False
    if encoding == DENSE:
        return isqrt(len(tag)) ** 2 == len(tag) and isqrt(len(tag)) <= width_max
    if encoding == CHANGES:
        return len(tag) % 3 == 1 and width_of(encoding, tag) <= width_max
    if encoding != BITMAP or len(tag) < 2 or not 1 <= tag[1] <= width_max:
        return False
    pieces = tag[2 : 2 - (-(tag[1] ** 2) // _BITS)]
    spare = len(pieces) * _BITS - tag[1] ** 2
    return (
        len(pieces) == -(-(tag[1] ** 2) // _BITS)
        and max(pieces) < 1 << _BITS
        and pieces[-1] < 1 << (_BITS - spare)
        and sum(piece.bit_count() for piece in pieces) == len(tag) - 2 - len(pieces)
    )


def number_in(encoding: int, tag: Tag, sender: int, receiver: int) -> int:
    """The message's number among those from its sender to its receiver, from 0."""
    return tag[sender * isqrt(len(tag)) + receiver] - 1 if encoding == DENSE else tag[0]


def column_in(encoding: int, tag: Tag, receiver: int) -> Iterator[tuple[int, int]]:
    """For each sender, how many messages it had sent to the receiver."""
    if encoding == DENSE:
        width = isqrt(len(tag))
        return enumerate(tag[receiver::width] if receiver < width else ())
    return ((row, value) for row, column, value in entries_in(encoding, tag) if column == receiver)


def entries_in(encoding: int, tag: Tag) -> Iterator[Entry]:
    """All entries in the tag."""
    if encoding == DENSE:
        width = isqrt(len(tag))
        return ((*divmod(index, width), value) for index, value in enumerate(tag) if value)
    if encoding == CHANGES:
        return zip(tag[1::3], tag[2::3], tag[3::3], strict=True)
    return _bitmap_entries(tag)


def _bitmap_entries(tag: Tag) -> Iterator[Entry]:
    width = tag[1]
    start = 2 - (-width * width // _BITS)
    values = iter(tag[start:])
    for index, piece in enumerate(tag[2:start]):
        for bit in range(_BITS):
            if piece >> bit & 1:
                yield (*divmod(index * _BITS + bit, width), next(values))


def entry_count(encoding: int, tag: Tag) -> int:
    """How many message numbers the tag contains: the cost of a header, as the paper counts it."""
    return len(tag) if encoding == DENSE else 1 + sum(1 for _ in entries_in(encoding, tag))
