"""A process's events as they happen, kept as runs and spread out into rows only when they are written.

Recording is on the path of every delivery, so it appends plain integers and nothing else. One record stands for
a whole run of messages; their rows differ by the sequence number and the logical time alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import Struct
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quire.trace.schema import DELIVER, KINDS, PACKET, SCHEMA, SEND, VIEW

RECORD_FIELDS = 8
# kind, origin, first number, count, logical time of the first, time, then:
#   send, deliver, view: address, bytes of each message   packet: type, header bytes (origin: fanout, first: payload bytes)
_ADDRESS_FIELD = 6

pack_record = Struct(f"={RECORD_FIELDS}q").pack
"""One record as bytes. A driver whose loop cannot afford a call for each event packs it and writes it itself."""

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
AnyArray: TypeAlias = "pa.Array[Any]"


class Address(msgspec.Struct, frozen=True):
    """Whom messages go to, and what they do there. Records name an address by its number, so that one that is
    used again and again costs nothing."""

    group: str | None = None
    """The group that they are addressed to; None: these processes alone."""
    dests: tuple[int, ...] = ()
    """The processes that must deliver them; of a view, its members."""
    object: str | None = None
    op: str | None = None
    txn: str | None = None


class Recorder:
    """The events of one process in local order. `addresses` are those that it will use often, numbered from 0."""

    def __init__(self, process: int, addresses: Sequence[Address] = (), *, rows_taken: int = 0) -> None:
        self.process = process
        self._addresses = {address: number for number, address in enumerate(addresses)}
        self._records = array("q")
        self._packet_types: dict[str, int] = {}
        self._rows_taken = rows_taken
        self._records_gone = 0
        self._deferred: dict[int, None] = {}
        """Sends whose address is not known yet, by their place among all records, in order."""
        # Copying packed bytes is four times as fast as having an array take eight integers.
        self.write = self._records.frombytes
        """Takes the bytes of `pack_record`."""

    def send(self, origin: int, first: int, count: int, lamport: int, time_ns: int, address: int, size: int) -> None:
        """`count` messages numbered from `first` were sent; the first has logical time `lamport`."""
        self.write(pack_record(SEND, origin, first, count, lamport, time_ns, address, size))

    def defer_send(self, origin: int, first: int, count: int, lamport: int, time_ns: int, size: int) -> int:
        """The same where whom the messages go to is not known yet: `settle` what is returned when it is. Until then this
        record, and all after it, stay here."""
        place = self._records_gone + len(self._records) // RECORD_FIELDS
        self._deferred[place] = None
        self.send(origin, first, count, lamport, time_ns, 0, size)
        return place

    def settle(self, place: int, address: int) -> None:
        """Say whom the messages of a deferred send go to."""
        del self._deferred[place]
        self._records[(place - self._records_gone) * RECORD_FIELDS + _ADDRESS_FIELD] = address

    def settle_rest(self, address: int) -> None:
        """Nobody will ever know whom the rest went to."""
        for place in tuple(self._deferred):
            self.settle(place, address)

    def deliver(self, origin: int, first: int, count: int, lamport: int, time_ns: int, address: int, size: int) -> None:
        self.write(pack_record(DELIVER, origin, first, count, lamport, time_ns, address, size))

    def view(self, who: int, number: int, lamport: int, time_ns: int, address: int) -> None:
        """A change of a group's membership took effect here: `who` joined or left (the address's op says which)."""
        self.write(pack_record(VIEW, who, number, 1, lamport, time_ns, address, 0))

    def packet(self, name: str, fanout: int, lamport: int, time_ns: int, header_bytes: int, payload_bytes: int) -> None:
        """One packet was put on the wire, in `fanout` copies."""
        self.write(pack_record(PACKET, fanout, payload_bytes, 1, lamport, time_ns, self.packet_type(name), header_bytes))

    def address(self, address: Address) -> int:
        """The number of an address in this process's records."""
        return self._addresses.setdefault(address, len(self._addresses))

    def addresses(self) -> Sequence[Address]:
        """The addresses by their numbers."""
        return tuple(self._addresses)

    def packet_type(self, name: str) -> int:
        """The code of a type of packet in this process's records."""
        return self._packet_types.setdefault(name, len(self._packet_types))

    def packet_names(self) -> Sequence[str]:
        """The types of packets by their codes."""
        return tuple(self._packet_types)

    def pending_records(self) -> int:
        """How many records are here that nothing is to be said about any more."""
        if self._deferred:
            return next(iter(self._deferred)) - self._records_gone
        return len(self._records) // RECORD_FIELDS

    def records(self) -> Integers:
        """A copy of everything pending since the last `take` or `drop`, one record a row."""
        return np.array(self._records, dtype=np.int64)[: self.pending_records() * RECORD_FIELDS].reshape(-1, RECORD_FIELDS)

    def take(self, run: str) -> pa.Table:
        """The rows of everything pending since the last call."""
        table = self._spread(run, self.records())
        self._rows_taken += table.num_rows
        self.drop()
        return table

    def drop(self) -> None:
        """Forget what is pending and not taken."""
        pending = self.pending_records()
        self._records_gone += pending
        del self._records[: pending * RECORD_FIELDS]

    def _spread(self, run: str, records: Integers) -> pa.Table:
        counts = records[:, 3]
        rows = int(counts.sum())
        record_of = np.repeat(np.arange(len(records)), counts)
        offset = np.arange(rows) - np.repeat(np.cumsum(counts) - counts, counts)
        kind, origin, first, _, lamport, time_ns, extra, size = (records[record_of, field] for field in range(RECORD_FIELDS))
        is_packet = kind == PACKET
        is_message = ~is_packet
        every = np.ones(rows, dtype=bool)
        zero = np.zeros(rows, dtype=np.int64)
        addresses = self.addresses()
        columns = {
            "run": _words(zero, every, [run], np.int8),
            "process": _numbers(zero + self.process, every, np.int32),
            "pos": _numbers(self._rows_taken + np.arange(rows), every, np.int64),
            "kind": _words(kind, every, KINDS, np.int8),
            "origin": _numbers(origin, is_message, np.int32),
            "seq": _numbers(first + offset, is_message, np.int64),
            "dests": _destinations(extra, (kind == SEND) | (kind == VIEW), addresses),
            "lamport": _numbers(lamport + offset, every, np.int64),
            "time_ns": _numbers(time_ns, every, np.int64),
            "packet": _words(extra, is_packet, self.packet_names(), np.int8),
            "fanout": _numbers(origin, is_packet, np.int32),
            "header_bytes": _numbers(size, is_packet, np.int32),
            "payload_bytes": _numbers(np.where(is_packet, first, size), every, np.int32),
        }
        for name in ("group", "object", "op", "txn"):
            columns[name] = _labels(extra, is_message, [getattr(address, name) for address in addresses])
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _destinations(address: Integers, present: Flags, addresses: Sequence[Address]) -> AnyArray:
    sizes = np.array([len(each.dests) for each in addresses] or [0])
    flat = np.array([process for each in addresses for process in each.dests], dtype=np.int64)
    used = address[present]
    lengths = np.zeros(len(address), dtype=np.int64)
    lengths[present] = sizes[used]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    # Each row's list starts in `flat` where its address does; the rows' lists follow each other in the column.
    starts = (np.cumsum(sizes) - sizes)[used]
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1][present], sizes[used])
    elements = _numbers(flat[np.repeat(starts, sizes[used]) + within], np.ones(len(within), dtype=bool), np.int32)
    buffers = [_validity(present), pa.py_buffer(offsets.astype(np.int32).data)]
    return pa.Array.from_buffers(SCHEMA.field("dests").type, len(address), buffers, children=[elements])


def _labels(address: Integers, present: Flags, labels: Sequence[str | None]) -> AnyArray:
    """What the addresses say in one column, null where an address says nothing."""
    vocabulary = {label: code for code, label in enumerate(dict.fromkeys(label for label in labels if label is not None))}
    codes = np.array([-1 if label is None else vocabulary[label] for label in labels] or [-1], dtype=np.int64)
    found = codes[np.where(present, address, 0)]
    return _words(found, present & (found >= 0), tuple(vocabulary), np.int32)


# Columns are made from their buffers. `pa.array` would first import pandas to ask whether it was given something of its
# own, and that takes longer than most runs.

_NUMBER_TYPES = {np.int32: pa.int32(), np.int64: pa.int64()}
_WORD_TYPES = {np.int8: pa.dictionary(pa.int8(), pa.string()), np.int32: pa.dictionary(pa.int32(), pa.string())}


def _validity(present: Flags) -> pa.Buffer | None:
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little").data)


def _numbers(values: Integers, present: Flags, kind: type[np.int32 | np.int64]) -> AnyArray:
    """Numbers where they are present, else null."""
    buffers = [_validity(present), pa.py_buffer(values.astype(kind).data)]
    return pa.Array.from_buffers(_NUMBER_TYPES[kind], len(values), buffers)


def _words(codes: Integers, present: Flags, vocabulary: Sequence[str], index: type[np.int8 | np.int32]) -> AnyArray:
    """The words of the vocabulary with these codes where they are present, else null."""
    texts = [word.encode() for word in vocabulary]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    words = pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(offsets.data), pa.py_buffer(b"".join(texts))])
    buffers = [_validity(present), pa.py_buffer(np.where(present, codes, 0).astype(index).data)]
    return pa.DictionaryArray.from_buffers(_WORD_TYPES[index], len(codes), buffers, words)
