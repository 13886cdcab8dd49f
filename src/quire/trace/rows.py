"""Expands records into the rows of a trace: one row for each message of a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quire.trace.kinds import KINDS, PACKET, SEND, VIEW
from quire.trace.log import Address, Names
from quire.trace.records import COUNT, RECORD_FIELDS
from quire.trace.schema import SCHEMA
from quire.trace.tables import Integers

Flags = npt.NDArray[np.bool_]
AnyArray: TypeAlias = "pa.Array[Any]"


def spread(run: str, process: int, first_pos: int, names: Names, records: Integers) -> pa.Table:
    """The rows of a process's records; `first_pos` is the position of the first."""
    counts = records[:, COUNT]
    rows = int(counts.sum())
    record_of = np.repeat(np.arange(len(records)), counts)
    offset = np.arange(rows) - np.repeat(np.cumsum(counts) - counts, counts)
    kind, origin, first, _, lamport, time_ns, extra, size = (records[record_of, field] for field in range(RECORD_FIELDS))
    is_packet = kind == PACKET
    is_message = ~is_packet
    every = np.ones(rows, dtype=bool)
    zero = np.zeros(rows, dtype=np.int64)
    columns = {
        "run": _words(zero, every, [run], np.int8),
        "process": _numbers(zero + process, every, np.int32),
        "pos": _numbers(first_pos + np.arange(rows), every, np.int64),
        "kind": _words(kind, every, KINDS, np.int8),
        "origin": _numbers(origin, is_message, np.int32),
        "seq": _numbers(first + offset, is_message, np.int64),
        "dests": _destinations(extra, (kind == SEND) | (kind == VIEW), names.addresses),
        "lamport": _numbers(lamport + offset, every, np.int64),
        "time_ns": _numbers(time_ns, every, np.int64),
        "packet": _words(extra, is_packet, names.packet_types, np.int8),
        "fanout": _numbers(origin, is_packet, np.int32),
        "header_bytes": _numbers(size, is_packet, np.int32),
        "payload_bytes": _numbers(np.where(is_packet, first, size), every, np.int32),
    }
    for name in ("group", "object", "op", "txn"):
        columns[name] = _labels(extra, is_message, [getattr(address, name) for address in names.addresses])
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _destinations(address: Integers, present: Flags, addresses: Sequence[Address]) -> AnyArray:
    known = np.array([each.dests is not None for each in addresses] or [True])
    present = present & known[np.where(present, address, 0)]
    sizes = np.array([len(each.dests or ()) for each in addresses] or [0])
    flat = np.array([process for each in addresses for process in each.dests or ()], dtype=np.int64)
    used = address[present]
    lengths = np.zeros(len(address), dtype=np.int64)
    lengths[present] = sizes[used]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    # Each row's list starts in `flat` where its address's does; in the column, the lists are concatenated.
    starts = (np.cumsum(sizes) - sizes)[used]
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1][present], sizes[used])
    elements = _numbers(flat[np.repeat(starts, sizes[used]) + within], np.ones(len(within), dtype=bool), np.int32)
    buffers = [_validity(present), pa.py_buffer(offsets.astype(np.int32).data)]
    return pa.Array.from_buffers(SCHEMA.field("dests").type, len(address), buffers, children=[elements])


def _labels(address: Integers, present: Flags, labels: Sequence[str | None]) -> AnyArray:
    """A text column from the rows' addresses; null if an address has no value."""
    vocabulary = {label: code for code, label in enumerate(dict.fromkeys(label for label in labels if label is not None))}
    codes = np.array([-1 if label is None else vocabulary[label] for label in labels] or [-1], dtype=np.int64)
    found = codes[np.where(present, address, 0)]
    return _words(found, present & (found >= 0), tuple(vocabulary), np.int32)


# Columns are made from buffers, because `pa.array` would first import pandas to check its argument's type, which takes longer
# than most runs.

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
