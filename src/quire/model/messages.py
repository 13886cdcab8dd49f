"""Messages, and the runs in which they travel.

A *message* is what an application multicasts: some bytes, known by its origin and its number there.
A *run* is a batch of consecutive messages of one origin with one header and one payload. Runs are what
protocols order and what members deliver, so that ordering costs nothing per message; a message becomes
an object of its own only when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise, repeat
from struct import Struct
from typing import NamedTuple

import msgspec

from quire.model.errors import BadInput

NUMBER_MAX = 2**63 - 1
"""Ids, clocks and counts are 64-bit signed on the wire and on disk; what would exceed it is refused."""

RUN_MESSAGES_MAX = 1 << 20

_CUT_TOGETHER = 64


class MessageId(NamedTuple):
    """The origin of a message, and its number there, from 0. Written `origin:seq` for people."""

    origin: int
    seq: int

    def __str__(self) -> str:
        return f"{self.origin}:{self.seq}"


class Message(msgspec.Struct, frozen=True, gc=False):
    """A delivered message and, where its group is totally ordered, its position in the order."""

    origin: int
    seq: int
    payload: bytes
    position: tuple[int, ...] | None
    """Where its run stands in the total order; the messages of a run share it, so that it costs nothing."""

    @property
    def order_key(self) -> tuple[int, ...] | None:
        """Its position in the total order of its group: comparing keys compares positions, at every member."""
        return None if self.position is None else (*self.position, self.seq)


class Body(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The payloads of a run end to end: each `size` bytes long, or where they differ, as `lengths` says."""

    payload: bytes = b""
    size: int = 0
    lengths: tuple[int, ...] = ()


def pack(payloads: Sequence[bytes], lengths: Sequence[int] | None = None) -> Body:
    """One body for these payloads, in this order; `lengths` are theirs, where they are known already."""
    if lengths is None:
        lengths = list(map(len, payloads))
    if lengths and lengths.count(lengths[0]) == len(lengths):
        return Body(b"".join(payloads), lengths[0])
    return Body(b"".join(payloads), 0, tuple(lengths))


EMPTY_BODY = Body()


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`count` consecutive messages of `origin`, the first of which has number `first`.

    A part of a run shares the body of the whole; `skip` says how many messages of the body come before it.
    """

    origin: int
    first: int
    count: int
    body: Body = EMPTY_BODY
    skip: int = 0

    @property
    def end(self) -> int:
        return self.first + self.count

    def part(self, start: int, stop: int) -> Run:
        """The messages `start` to `stop` of this run, without copying their bytes."""
        if start == 0 and stop == self.count:
            return self
        return Run(self.origin, self.first + start, stop - start, self.body, self.skip + start)

    def payloads(self) -> Iterator[bytes]:
        """Each message's bytes in order, cut as they are asked for, so that a long run does not take its memory twice."""
        payload, size, lengths = self.body.payload, self.body.size, self.body.lengths
        if not lengths:
            return _cut(payload, size, self.skip, self.count) if size else repeat(b"", self.count)
        ends = list(accumulate(lengths[: self.skip + self.count], initial=0))[self.skip :]
        return (payload[start:stop] for start, stop in pairwise(ends))

    def is_sound(self) -> bool:
        """Whether the numbers of this run are possible and its body holds all of its messages: to be checked for runs from a
        peer."""
        if not (
            self.first >= 0 and 1 <= self.count <= RUN_MESSAGES_MAX and self.first + self.count <= NUMBER_MAX and self.skip >= 0
        ):
            return False
        size, lengths, held = self.body.size, self.body.lengths, self.skip + self.count
        if not lengths:
            return size >= 0 and held * size <= len(self.body.payload)
        return held <= len(lengths) and min(lengths) >= 0 and sum(lengths) == len(self.body.payload)

    def payload_bytes(self) -> int:
        """How many bytes the messages of this run hold together."""
        if not self.body.lengths:
            return self.count * self.body.size
        return sum(self.body.lengths[self.skip : self.skip + self.count])


def _cut(payload: bytes, size: int, skip: int, count: int) -> Iterator[bytes]:
    """Pieces of one size. `struct` cuts many at once, in a third of the time that slices take."""
    start, stop = skip * size, (skip + count) * size
    if count == 1:
        return iter((payload[start:stop],))
    rest = stop - count % _CUT_TOGETHER * size
    pieces = (payload[at : at + size] for at in range(rest, stop, size))
    if rest == start:
        return pieces
    return chain(chain.from_iterable(_cutter(size).iter_unpack(memoryview(payload)[start:rest])), pieces)


@lru_cache(maxsize=64)
def _cutter(size: int) -> Struct:
    return Struct(f"{size}s" * _CUT_TOGETHER)


def make_run(origin: int, first: int, payloads: Sequence[bytes], lengths: Sequence[int] | None = None) -> Run:
    """A run of these payloads, numbered from `first`; `lengths` are theirs, where they are known already."""
    if not payloads:
        raise BadInput("a run needs at least one message")
    if len(payloads) > RUN_MESSAGES_MAX:
        raise BadInput(f"a run may hold at most {RUN_MESSAGES_MAX} messages, not {len(payloads)}")
    return Run(origin, first, len(payloads), pack(payloads, lengths))
