"""Events with their words: groups, objects, operations, transactions.

Most checks need numbers only, and are several times as fast for it. Those that need words get them as numbers too: every
word of a column has a code, the same in all files, and codes are in the order of the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from quire.pipeline.columns import array, join, valid
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.reading import TraceReader
from quire.pipeline.slices import EventSlices, event_columns


class Labelled(msgspec.Struct):
    """Every event, packets included, so that an event of process p at index i has the position i - start[p]."""

    start: np.ndarray
    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    lamport: np.ndarray
    """Empty unless it was asked for."""
    ordered: bool
    codes: dict[str, np.ndarray]
    """For each column that was asked for: the codes of its words, -1 where there is none."""
    words: dict[str, list[str]]
    """The words of each column by their codes."""

    def word(self, name: str, index: int) -> str:
        """What the column says of the event; the empty word where it says nothing."""
        code = int(self.codes[name][index])
        return self.words[name][code] if code >= 0 else ""

    def process(self, index: int) -> int:
        return int(np.searchsorted(self.start, index, side="right")) - 1

    def pos(self, index: int) -> int:
        return index - int(self.start[self.process(index)])

    def processes(self) -> np.ndarray:
        """Where each event happened."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def read_labelled(world: World, groups: Sequence[RowGroup], names: Sequence[str], *, times: bool = False) -> Labelled:
    """All events of these row groups, which must be whole logs, with the words of these columns."""
    slices = EventSlices(world)
    pieces: dict[str, list[tuple[np.ndarray, list[str]]]] = {name: [] for name in names}
    with TraceReader(world.run) as reader:
        for own, table in reader.read_files(groups, [*event_columns(times=times, dests=False), *names]):
            slices.add(own, table, every=True)
            for name in names:
                pieces[name] += [_piece(chunk) for chunk in table[name].chunks]
    events = slices.events()
    codes, words = {}, {}
    for name in names:
        words[name] = sorted({word for _, vocabulary in pieces[name] for word in vocabulary})
        known = {word: code for code, word in enumerate(words[name])}
        coded = [np.array([*(known[word] for word in own), -1], np.int32)[indices] for indices, own in pieces[name]]
        codes[name] = join(coded, np.int32)
    return Labelled(events.start, events.kind, events.origin, events.seq, events.lamport, events.ordered, codes, words)


def _piece(chunk: Any) -> tuple[np.ndarray, list[str]]:
    """A piece of a column as indices into its own dictionary; -1, which is the last index of any list, where it is null."""
    indices = array(chunk.indices, np.int32)
    if chunk.null_count:
        indices = np.where(valid(chunk), indices, -1)
    return indices, chunk.dictionary.to_pylist()
