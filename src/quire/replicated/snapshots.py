"""Snapshots of a replicated object in chunks, consistent while commands go on (copy-on-write), and how one is restored.

Values that are small, or not tracked per entry, are encoded or copied when the snapshot begins. Dictionaries and lists are
encoded in batches, as chunks are asked for: only their keys are listed at the beginning, and when a command is about to change
an entry later, its old value is kept. So no pause of the member grows with the size of the state in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.replicated.fields import ContainerField, Field
from quire.replicated.ledger import WHOLE, Image, Ledger, Owner
from quire.replicated.tracked import TrackedDict
from quire.replicated.types import ENCODER

CHUNK_BYTES = 1 << 16
"""The approximate size of a chunk, unless an entry is longer."""

_FIRST_BATCH = 16
_END = ""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A chunk: a part of a field. The last one has no field, but the number of chunks before it."""

    field: str
    body: msgspec.Raw


_READ_PIECE = msgspec.msgpack.Decoder(Piece).decode


class _Kept:
    """The old values of entries that have changed since the snapshot began."""

    def __init__(self) -> None:
        self.entries: dict[tuple[int, Any], Any] = {}

    def keep(self, owner: Owner, key: Any, old: Any) -> None:
        if isinstance(owner, TrackedDict):
            entries = old.items() if key is WHOLE else ((key, old),)
            for each, value in entries:
                self.entries.setdefault((id(owner), each), value)


class Snapshot(Iterator[bytes]):
    """The chunks of an object as it was when this was made."""

    def __init__(self, ledger: Ledger, fields: Mapping[str, Field], values: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._kept = _Kept()
        ledger.watchers.append(self._kept)
        parts: list[tuple[str, Iterator[Any] | bytes]] = []
        for name, field in fields.items():
            value = values[name]
            if isinstance(value, TrackedDict):
                parts.append((name, _entries(value, list(dict.keys(value)), self._kept)))
            elif isinstance(field, ContainerField):
                parts.append((name, iter(list(value))))
            else:
                parts.append((name, ENCODER.encode(value)))
        self._chunks = _pieces(parts)

    def __next__(self) -> bytes:
        try:
            return next(self._chunks)
        except StopIteration:
            self._forget()
            raise

    def __del__(self) -> None:
        # The reader may stop half-way, or before the first chunk. There are no references to this object, so it is deleted at
        # once.
        self._forget()

    def _forget(self) -> None:
        if self._kept in self._ledger.watchers:
            self._ledger.watchers.remove(self._kept)


def _entries(held: TrackedDict, keys: list[Any], kept: _Kept) -> Iterator[tuple[Any, Any]]:
    """The entries as they were, each as it is asked for."""
    changed = kept.entries
    for key in keys:
        entry = (id(held), key)
        value = changed[entry] if entry in changed else dict.__getitem__(held, key)
        yield key, msgspec.Raw(value.data) if isinstance(value, Image) else value


def _pieces(parts: list[tuple[str, Iterator[Any] | bytes]]) -> Iterator[bytes]:
    count = 0
    for name, content in parts:
        for body in (content,) if isinstance(content, bytes) else _batches(content):
            count += 1
            yield ENCODER.encode(Piece(name, msgspec.Raw(body)))
    yield ENCODER.encode(Piece(_END, msgspec.Raw(ENCODER.encode(count))))


def _batches(entries: Iterator[Any]) -> Iterator[bytes]:
    """Encoded batches of entries, each of about the size of a chunk; at least one, which is empty if there are no entries."""
    count = _FIRST_BATCH
    batch = list(islice(entries, count))
    while True:
        body = ENCODER.encode(batch)
        yield body
        count = max(1, min(2 * count, count * CHUNK_BYTES // len(body)))
        if not (batch := list(islice(entries, count))):
            return


class Restoration:
    """A snapshot that is being restored, chunk by chunk. The object does not change before the end."""

    def __init__(self, owner: str, fields: Mapping[str, Field]) -> None:
        self._owner = owner
        self._fields = fields
        self._values: dict[str, Any] = {}
        self._pieces = 0
        self._ended = False

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk; raises BadInput where it does not fit."""
        try:
            piece = _READ_PIECE(chunk)
            if self._ended:
                raise BadInput(f"a snapshot of {self._owner} goes on after its end")
            if piece.field == _END:
                self._ended = msgspec.msgpack.decode(piece.body, type=int) == self._pieces
                return
            self._pieces += 1
            self._take(piece)
        except (msgspec.DecodeError, TypeError) as error:
            raise BadInput(f"a snapshot of {self._owner} cannot be read: {error}") from None

    def _take(self, piece: Piece) -> None:
        field = self._fields.get(piece.field)
        if field is None:
            raise BadInput(f"a snapshot of {self._owner} has a field {piece.field!r}, which is not declared here")
        if not isinstance(field, ContainerField):
            self._values[field.name] = field.decode(piece.body)
            return
        held = self._values.setdefault(field.name, field.decode(b"\x80" if field.is_dict else b"\x90"))
        (held.update if field.is_dict else held.extend)(field.decode_batch(piece.body))

    def check_complete(self) -> None:
        if not self._ended:
            raise BadInput(f"a snapshot of {self._owner} is not complete")

    def finish(self, give: Callable[[str, Any], None]) -> None:
        """All chunks have come: give each field its value. A field that the snapshot lacks, because it was declared later, gets
        its initial value."""
        self.check_complete()
        for name, field in self._fields.items():
            give(name, self._values[name] if name in self._values else field.decode(field.initial))
