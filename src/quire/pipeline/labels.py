"""Reads events with their text columns (groups, objects, operations, transactions) as dictionary codes.

Most checks need only numeric columns, and are several times faster for it. For the checks that need text, every distinct value
of a column gets a code, the same in all files, and codes are in the order of the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.columns import array, join, valid
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.reading import TraceReader
from quire.pipeline.slices import EventSlices, event_columns


class Labelled(msgspec.Struct):
    """Every event, including packets, so that an event of process p at index i has the position i - start[p]."""

    start: np.ndarray
    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    lamport: np.ndarray
    """The logical times; empty unless requested."""
    ordered: bool
    codes: dict[str, np.ndarray]
    """For each requested column, the codes of its values; -1 for null."""
    words: dict[str, list[str]]
    """For each column, the values by code."""
    at: np.ndarray = msgspec.field(default_factory=lambda: np.empty(0, np.int64))
    """The position of each event, if some events were left out; else empty."""

    def word(self, name: str, index: int) -> str:
        """The column's value for the event; empty if it has none."""
        code = int(self.codes[name][index])
        return self.words[name][code] if code >= 0 else ""

    def process(self, index: int) -> int:
        return int(np.searchsorted(self.start, index, side="right")) - 1

    def pos(self, index: int) -> int:
        return int(self.at[index]) if len(self.at) else index - int(self.start[self.process(index)])

    def processes(self) -> np.ndarray:
        """The process of each event."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def read_labelled(world: World, groups: Sequence[RowGroup], names: Sequence[str], *, times: bool = False) -> Labelled:
    """All events of these row groups, which must be complete logs, with the text columns of these names."""
    slices = LabelledSlices(world, names)
    with TraceReader(world.run) as reader:
        for own, table in reader.read_files(groups, [*event_columns(times=times, dests=False), *names]):
            slices.add(own, table)
    return slices.labelled()


class LabelledSlices:
    """Collects events with their text columns from several files; files must be added in the order that `EventSlices` needs."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self._slices = EventSlices(world)
        self._pieces: dict[str, list[_Words]] = {name: [] for name in names}
        self._at: list[np.ndarray] = []

    def add(self, groups: Sequence[RowGroup], table: pa.Table, wanted: np.ndarray | None = None) -> None:
        """Add a file's events, or only the rows that are wanted."""
        if wanted is not None:
            table = table.filter(pa.array(wanted))
            self._at.append(groups[0].first_pos + np.flatnonzero(wanted))
        self._slices.add(groups, table, every=True)
        for name, pieces in self._pieces.items():
            pieces.append(_words(table[name]))

    def labelled(self) -> Labelled:
        events = self._slices.events()
        codes, words = {}, {}
        for name, pieces in self._pieces.items():
            codes[name], words[name] = _number(pieces)
        return Labelled(
            events.start, events.kind, events.origin, events.seq, events.lamport, events.ordered, codes, words,
            join(self._at, np.int64),
        )  # fmt: skip


class _Words(NamedTuple):
    """A column of a file as indices into its dictionary; null is -1, which as a Python index means the last entry."""

    indices: np.ndarray
    dictionary: Any


def _words(column: Any) -> _Words:
    # Every row group has its own dictionary, with mostly the same values.
    if column.num_chunks != 1:
        column = column.unify_dictionaries()
    indices = join([_indices(chunk) for chunk in column.chunks], np.int32)
    return _Words(indices, column.chunk(0).dictionary if column.num_chunks else pa.array([], pa.string()))


def _indices(chunk: Any) -> np.ndarray:
    indices = array(chunk.indices, np.int32)
    return np.where(valid(chunk), indices, -1) if chunk.null_count else indices


def _number(pieces: Sequence[_Words]) -> tuple[np.ndarray, list[str]]:
    """The code of each row's value, and the sorted values of all pieces; handled by Arrow, as there may be millions."""
    if not pieces:
        return np.empty(0, np.int32), []
    every: Any = pa.concat_arrays([piece.dictionary.cast(pa.string()) for piece in pieces]).dictionary_encode()
    order = pc.sort_indices(every.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[np.asarray(order)] = np.arange(len(order))
    known, coded, begin = rank[np.asarray(every.indices)], [], 0
    for piece in pieces:
        end = begin + len(piece.dictionary)
        coded.append(np.append(known[begin:end], np.int32(-1))[piece.indices])
        begin = end
    return join(coded, np.int32), every.dictionary.take(order).to_pylist()
