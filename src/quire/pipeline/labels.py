"""Reads events with their text columns (groups, objects, operations, transactions) as dictionary codes.

Most checks need only numeric columns, and are several times faster for it. For the checks that need text, every distinct value
of a column gets a code, the same in all files, and codes are in the order of the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.columns import array, join, valid
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.reading import TraceReader
from quire.pipeline.slices import EventSlices, event_columns


class Words(Sequence[str]):
    """Values in Arrow's memory, as there may be millions; a Python string is made only when one is asked for."""

    def __init__(self, texts: Any) -> None:
        self.texts = texts
        """An Arrow array of strings."""

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Words: ...
    def __getitem__(self, at: int | slice) -> str | Words:
        return Words(self.texts[at]) if isinstance(at, slice) else str(self.texts[at].as_py())

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts.to_pylist())


def texts_of(words: Sequence[str]) -> Any:
    """The words as an Arrow array."""
    return words.texts if isinstance(words, Words) else pa.array(list(words), pa.string())


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
    words: Mapping[str, Sequence[str]]
    """For each column, the values by code."""
    at: np.ndarray = msgspec.field(default_factory=lambda: np.empty(0, np.int64))
    """The position of each event, if some events were left out; else empty."""

    def word(self, name: str, index: int) -> str:
        """The column's value for the event; empty if it has none."""
        code = int(self.codes[name][index])
        return self.words[name][code] if code >= 0 else ""

    def of(self, name: str, events: np.ndarray) -> np.ndarray:
        """The codes of these events as int64, so that products of them do not overflow."""
        chosen: np.ndarray = self.codes[name][events].astype(np.int64)
        return chosen

    def process(self, index: int) -> int:
        return int(np.searchsorted(self.start, index, side="right")) - 1

    def pos(self, index: int) -> int:
        return int(self.at[index]) if len(self.at) else index - int(self.start[self.process(index)])

    def processes(self) -> np.ndarray:
        """The process of each event."""
        return np.repeat(np.arange(len(self.start) - 1, dtype=np.int32), np.diff(self.start))


def read_labelled(
    world: World, groups: Sequence[RowGroup], names: Sequence[str], *, times: bool = False, as_met: Sequence[str] = ()
) -> Labelled:
    """All events of these row groups, which must be complete logs, with the text columns of these names. The values of columns
    `as_met` are numbered in the order in which they are met, which takes less time than sorting them."""
    slices = LabelledSlices(world, names, as_met)
    with TraceReader(world.run) as reader:
        for own, table in reader.read_files(groups, [*event_columns(times=times, dests=False), *names]):
            slices.add(own, table)
    return slices.labelled()


class LabelledSlices:
    """Collects events with their text columns from several files; files must be added in the order that `EventSlices` needs."""

    def __init__(self, world: World, names: Sequence[str], as_met: Sequence[str] = ()) -> None:
        self._as_met = as_met
        self._slices = EventSlices(world)
        self._pieces: dict[str, list[_Words]] = {name: [] for name in names}
        self._at: list[np.ndarray] = []

    def add(self, groups: Sequence[RowGroup], table: pa.Table, wanted: np.ndarray | None = None) -> None:
        """Add a file's events, or only the rows that are wanted; values are numbered alike whichever these are."""
        for name, pieces in self._pieces.items():
            pieces += _coded(table[name], wanted)
        if wanted is not None:
            table = table.drop_columns(list(self._pieces)).filter(pa.array(wanted))
            self._at.append(groups[0].first_pos + np.flatnonzero(wanted))
        self._slices.add(groups, table, every=True)

    def labelled(self) -> Labelled:
        """All that was added; call it once, at the end."""
        events = self._slices.events()
        codes: dict[str, np.ndarray] = {}
        words: dict[str, Sequence[str]] = {}
        for name in list(self._pieces):  # Nothing is kept twice for longer than it must.
            codes[name], words[name] = _number(self._pieces.pop(name), as_met=name in self._as_met)
        return Labelled(
            events.start, events.kind, events.origin, events.seq, events.lamport, events.ordered, codes, words,
            join(self._at, np.int64),
        )  # fmt: skip


class _Words(NamedTuple):
    """A column of a row group as indices into its dictionary; null is -1, which as a Python index means the last entry."""

    indices: np.ndarray
    dictionary: Any


def _coded(column: Any, wanted: np.ndarray | None) -> list[_Words]:
    found, begin = [], 0
    for chunk in column.chunks:
        indices, end = _indices(chunk), begin + len(chunk)
        found.append(_Words(indices if wanted is None else indices[wanted[begin:end]], chunk.dictionary))
        begin = end
    return found


def _indices(chunk: Any) -> np.ndarray:
    indices = array(chunk.indices, np.int32)
    return np.where(valid(chunk), indices, -1) if chunk.null_count else indices


def _number(pieces: Sequence[_Words], *, as_met: bool) -> tuple[np.ndarray, Words]:
    """The code of each row's value, and the values of all pieces, sorted unless they stay as they are met."""
    if not pieces:
        return np.empty(0, np.int32), Words(pa.array([], pa.string()))
    every: Any = pa.concat_arrays([piece.dictionary.cast(pa.string()) for piece in pieces]).dictionary_encode()
    words, known = every.dictionary, np.asarray(every.indices)
    if not as_met:
        order = pc.sort_indices(words)
        rank = np.empty(len(order), np.int32)
        rank[np.asarray(order)] = np.arange(len(order), dtype=np.int32)
        words, known = words.take(order), rank[known]
    coded, begin = [], 0
    for piece in pieces:
        end = begin + len(piece.dictionary)
        coded.append(np.append(known[begin:end], np.int32(-1))[piece.indices])
        begin = end
    return join(coded, np.int32), Words(words)
