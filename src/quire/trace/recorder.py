"""A process's events as they happen, kept as runs and spread out into rows only when they are written.

Recording is on the path of every delivery, so it appends plain integers and nothing else. One record stands for
a whole run of messages; their rows differ by the sequence number and the logical time alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import Struct

import numpy as np
import pyarrow as pa

from quire.trace.schema import DELIVER, KINDS, PACKET, SCHEMA, SEND

_FIELDS = 8
# kind, origin, first number, count, logical time of the first, time, then:
#   send, deliver: group, bytes of each message       packet: type, header bytes (origin: fanout, first: payload bytes)

pack_record = Struct(f"={_FIELDS}q").pack
"""One record as bytes. A driver whose loop cannot afford a call for each event packs it and writes it itself."""

_KIND_WORDS = pa.array(KINDS, pa.string())


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
        return len(self._records) // _FIELDS

    def records(self) -> np.ndarray:
        """A copy of everything recorded since the last `take` or `drop`, one record a row."""
        return np.array(self._records, dtype=np.int64).reshape(-1, _FIELDS)

    def take(self, run: str) -> pa.Table:
        """The rows of everything recorded since the last call."""
        table = self._spread(run, self.records())
        self._rows_taken += table.num_rows
        self.drop()
        return table

    def drop(self) -> None:
        """Forget what is recorded and not taken."""
        del self._records[:]

    def _spread(self, run: str, records: np.ndarray) -> pa.Table:
        counts = records[:, 3]
        rows = int(counts.sum())
        record_of = np.repeat(np.arange(len(records)), counts)
        offset = np.arange(rows) - np.repeat(np.cumsum(counts) - counts, counts)
        kind, origin, first, _, lamport, time_ns, extra, size = (records[record_of, field] for field in range(_FIELDS))
        is_packet, is_send = kind == PACKET, kind == SEND
        is_message = ~is_packet
        nothing = np.ones(rows, dtype=bool)

        def numbers(values: np.ndarray, present: np.ndarray, type_: pa.DataType) -> pa.Array:
            return pa.array(values, type_, mask=~present)

        def words(codes: np.ndarray, present: np.ndarray, vocabulary: pa.Array, index: pa.DataType) -> pa.Array:
            return pa.DictionaryArray.from_arrays(pa.array(codes, index, mask=~present), vocabulary)

        empty = pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int8()), pa.array([], pa.string()))
        columns = {
            "run": words(np.zeros(rows, np.int8), nothing, pa.array([run]), pa.int8()),
            "process": pa.array(np.full(rows, self.process), pa.int32()),
            "pos": pa.array(self._rows_taken + np.arange(rows), pa.int64()),
            "kind": words(kind, nothing, _KIND_WORDS, pa.int8()),
            "origin": numbers(origin, is_message, pa.int32()),
            "seq": numbers(first + offset, is_message, pa.int64()),
            "group": words(extra, is_message, pa.array([g.name for g in self.groups], pa.string()), pa.int32()),
            "dests": self._destinations(extra, is_send),
            "lamport": pa.array(lamport + offset, pa.int64()),
            "time_ns": pa.array(time_ns, pa.int64()),
            "packet": words(extra, is_packet, pa.array(list(self._packet_types), pa.string()), pa.int8()),
            "fanout": numbers(origin, is_packet, pa.int32()),
            "header_bytes": numbers(size, is_packet, pa.int32()),
            "payload_bytes": pa.array(np.where(is_packet, first, size), pa.int32()),
            "object": empty,
            "op": empty,
            "txn": empty,
        }
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _destinations(self, group: np.ndarray, is_send: np.ndarray) -> pa.Array:
        members = [np.asarray(g.members, dtype=np.int32) for g in self.groups]
        sizes = np.array([len(m) for m in members] or [0])
        lengths = np.where(is_send, sizes[np.where(is_send, group, 0)], 0)
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        sent_to = group[is_send]
        values = np.concatenate([members[g] for g in sent_to]) if len(sent_to) else np.empty(0, np.int32)
        return pa.ListArray.from_arrays(
            pa.array(offsets), pa.array(values, pa.int32()), type=SCHEMA.field("dests").type, mask=pa.array(~is_send)
        )
