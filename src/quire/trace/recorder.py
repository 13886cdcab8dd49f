"""A process's events as they happen, kept as runs and spread out into rows only when they are written.

Recording is on the path of every delivery, so it appends plain integers and nothing else. One record stands for
a whole run of messages; their rows differ by the sequence number and the logical time alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import Struct
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quire.trace.schema import DELIVER, KINDS, PACKET, SCHEMA, SEND

RECORD_FIELDS = 8
# kind, origin, first number, count, logical time of the first, time, then:
#   send, deliver: group, bytes of each message       packet: type, header bytes (origin: fanout, first: payload bytes)

pack_record = Struct(f"={RECORD_FIELDS}q").pack
"""One record as bytes. A driver whose loop cannot afford a call for each event packs it and writes it itself."""

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
AnyArray: TypeAlias = "pa.Array[Any]"


class Group:
    """A named set of destinations, as messages are addressed to it."""

    def __init__(self, name: str, members: Sequence[int]) -> None:
        self.name = name
        self.members = tuple(members)


class Recorder:
    """The events of one process in local order."""

    def __init__(self, process: int, groups: Sequence[Group]) -> None:
        self.process = process
        self.groups = groups
        self._records = array("q")
        self._packet_types: dict[str, int] = {}
        self._rows_taken = 0
        # Copying packed bytes is four times as fast as having an array take eight integers.
        self.write = self._records.frombytes
        """Takes the bytes of `pack_record`."""

    def send(self, origin: int, first: int, count: int, lamport: int, time_ns: int, group: int, size: int) -> None:
        """`count` messages numbered from `first` were multicast; the first has logical time `lamport`."""
        self.write(pack_record(SEND, origin, first, count, lamport, time_ns, group, size))

    def deliver(self, origin: int, first: int, count: int, lamport: int, time_ns: int, group: int, size: int) -> None:
        self.write(pack_record(DELIVER, origin, first, count, lamport, time_ns, group, size))

    def packet(self, name: str, fanout: int, lamport: int, time_ns: int, header_bytes: int, payload_bytes: int) -> None:
        """One packet was put on the wire, in `fanout` copies."""
        self.write(pack_record(PACKET, fanout, payload_bytes, 1, lamport, time_ns, self.packet_type(name), header_bytes))

    def packet_type(self, name: str) -> int:
        """The code of a type of packet in this process's records."""
        return self._packet_types.setdefault(name, len(self._packet_types))

    def packet_names(self) -> Sequence[str]:
        """The types of packets by their codes."""
        return tuple(self._packet_types)

    def pending_records(self) -> int:
        return len(self._records) // RECORD_FIELDS

    def records(self) -> Integers:
        """A copy of everything recorded since the last `take` or `drop`, one record a row."""
        return np.array(self._records, dtype=np.int64).reshape(-1, RECORD_FIELDS)

    def take(self, run: str) -> pa.Table:
        """The rows of everything recorded since the last call."""
        table = self._spread(run, self.records())
        self._rows_taken += table.num_rows
        self.drop()
        return table

    def drop(self) -> None:
        """Forget what is recorded and not taken."""
        del self._records[:]

    def _spread(self, run: str, records: Integers) -> pa.Table:
        counts = records[:, 3]
        rows = int(counts.sum())
        record_of = np.repeat(np.arange(len(records)), counts)
        offset = np.arange(rows) - np.repeat(np.cumsum(counts) - counts, counts)
        kind, origin, first, _, lamport, time_ns, extra, size = (records[record_of, field] for field in range(RECORD_FIELDS))
        is_packet, is_send = kind == PACKET, kind == SEND
        is_message = ~is_packet
        every = np.ones(rows, dtype=bool)
        nowhere = np.zeros(rows, dtype=bool)
        zero = np.zeros(rows, dtype=np.int64)
        groups = [group.name for group in self.groups]
        columns = {
            "run": _words(zero, every, [run], np.int8),
            "process": _numbers(zero + self.process, every, np.int32),
            "pos": _numbers(self._rows_taken + np.arange(rows), every, np.int64),
            "kind": _words(kind, every, KINDS, np.int8),
            "origin": _numbers(origin, is_message, np.int32),
            "seq": _numbers(first + offset, is_message, np.int64),
            "group": _words(extra, is_message, groups, np.int32),
            "dests": self._destinations(extra, is_send),
            "lamport": _numbers(lamport + offset, every, np.int64),
            "time_ns": _numbers(time_ns, every, np.int64),
            "packet": _words(extra, is_packet, self.packet_names(), np.int8),
            "fanout": _numbers(origin, is_packet, np.int32),
            "header_bytes": _numbers(size, is_packet, np.int32),
            "payload_bytes": _numbers(np.where(is_packet, first, size), every, np.int32),
            "object": _words(zero, nowhere, (), np.int8),
            "op": _words(zero, nowhere, (), np.int8),
            "txn": _words(zero, nowhere, (), np.int8),
        }
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _destinations(self, group: Integers, is_send: Flags) -> AnyArray:
        members = [np.asarray(g.members, dtype=np.int64) for g in self.groups]
        sizes = np.array([len(m) for m in members] or [0])
        sent_to = group[is_send]
        lengths = np.zeros(len(group), dtype=np.int64)
        lengths[is_send] = sizes[sent_to]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        values = np.concatenate([members[g] for g in sent_to.tolist()]) if len(sent_to) else np.empty(0, np.int64)
        elements = _numbers(values, np.ones(len(values), dtype=bool), np.int32)
        buffers = [_validity(is_send), pa.py_buffer(offsets.data)]
        return pa.Array.from_buffers(SCHEMA.field("dests").type, len(group), buffers, children=[elements])


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
