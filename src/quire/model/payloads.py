"""The payloads that applications may send: bytes, up to a limit, checked at the API before anything is done."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import TypeAlias, cast

import msgspec

from quire.model.errors import BadInput, TooLarge

PAYLOAD_BYTES_MAX = 16 << 20
"""The size limit of a message of the sequencing service, of the values that a transaction writes, and of the arguments or the
result of a call. It leaves room in the packet for what goes with the payload."""

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""What is accepted as bytes, and copied if it is mutable."""

_SEQUENCES = (list, tuple)


def as_bytes(payload: object, what: str = "a message", most: int = PAYLOAD_BYTES_MAX) -> bytes:
    """The payload as bytes that nobody can change any more. Raises BadInput for what is not bytes-like, or TooLarge."""
    if type(payload) is not bytes:
        if not isinstance(payload, bytes | bytearray | memoryview):
            hint = "; encode the text first" if isinstance(payload, str) else ""
            raise BadInput(f"{what} must be bytes, not {type(payload).__name__}{hint}")
        payload = bytes(payload)
    if len(payload) > most:
        raise TooLarge(what, len(payload), most)
    return payload


class Messages(msgspec.Struct, frozen=True, gc=False):
    """Payloads to send, the length of each, and their total size. The lengths are counted once, because that takes longer than
    concatenating the payloads."""

    payloads: Sequence[bytes]
    lengths: Sequence[int]
    size: int

    @classmethod
    def of(cls, payloads: Sequence[bytes]) -> Messages:
        lengths = list(map(len, payloads))
        return cls(payloads, lengths, sum(lengths))

    @classmethod
    def together(cls, parts: Sequence[Messages]) -> Messages:
        """All of these, in order."""
        if len(parts) == 1:
            return parts[0]
        payloads = list(chain.from_iterable(part.payloads for part in parts))
        lengths = list(chain.from_iterable(part.lengths for part in parts))
        return cls(payloads, lengths, sum(part.size for part in parts))

    def rest(self, start: int) -> Messages:
        """The messages from this one on."""
        lengths = self.lengths[start:]
        return Messages(self.payloads[start:], lengths, sum(lengths))

    def first(self, count: int, size: int) -> Messages:
        """The first messages, at most `count` of them and `size` bytes; but at least one, unless `count` is 0."""
        sizes = list(accumulate(self.lengths[:count]))
        fit = bisect_right(sizes, size) or min(len(sizes), 1)
        return Messages(self.payloads[:fit], self.lengths[:fit], sizes[fit - 1] if fit else 0)


def as_messages(payloads: Iterable[object], most: int = PAYLOAD_BYTES_MAX) -> Messages:
    """Each of the payloads as `as_bytes` gives it."""
    if type(payloads) not in _SEQUENCES:
        if not isinstance(payloads, Iterable):
            raise BadInput(f"messages must be a sequence of bytes, not {type(payloads).__name__}")
        payloads = list(payloads)
    messages = cast(Sequence[bytes], payloads)
    if len(messages) == 1:
        message = as_bytes(messages[0], most=most)
        return Messages((message,), (len(message),), len(message))
    # Usually all are bytes, and not too long even together, which is checked faster than for each one.
    if list(map(type, messages)).count(bytes) != len(messages):
        messages = [as_bytes(payload, most=most) for payload in payloads]
    lengths = list(map(len, messages))
    size = sum(lengths)
    if size > most and (longest := max(lengths)) > most:
        raise TooLarge("a message", longest, most)
    return Messages(messages, lengths, size)
