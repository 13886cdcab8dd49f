"""Fast path from rows to records: does for all ordinary rows at once what `mapping.Columns` does for one.

Unusual rows are marked `odd` and left to `mapping.Columns`, which also reports what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.model.errors import BadInput
from quire.pipeline.compiled import compiled
from quire.pipeline.hashing import bytes_of
from quire.pipeline.importing.clock_texts import read_clocks
from quire.pipeline.importing.formats.contract import Event, Found
from quire.pipeline.importing.mapping import NOWHERE, names_in
from quire.pipeline.importing.records import KINDS, Block, as_batch, as_block, as_lists, is_name, join_blocks
from quire.pipeline.importing.texts import join_texts, read_times
from quire.trace.kinds import DELIVER, LOCAL, SEND

_WHOLE = r"^-?[0-9]{1,18}$"
_NAMES = ("group", "object", "op", "txn")


class Part(NamedTuple):
    """Some of the rows of a piece: their numbers, the executions that they name, and their records."""

    rows: np.ndarray
    executions: Any
    block: Block


class _Reader:
    """The fields of some rows as text columns, with null for missing values; and which rows are odd."""

    def __init__(self, fields: Mapping[str, Any], rows: int) -> None:
        self._fields, self._rows = fields, rows
        self.odd = np.zeros(rows, np.bool_)

    def has(self, field: str) -> bool:
        return field in self._fields

    def text(self, field: str) -> Any:
        return self._fields[field] if field in self._fields else pa.nulls(self._rows, pa.string())

    def filled(self, field: str) -> Any:
        """The texts that are not empty."""
        texts = self.text(field)
        return pc.if_else(pc.equal(texts, pa.scalar("")), None, texts) if self.has(field) else texts

    def whole(self, field: str) -> Any:
        texts = self.filled(field)
        if texts.null_count == self._rows:
            return pa.nulls(self._rows, pa.int64())
        fits = pc.match_substring_regex(texts, _WHOLE)
        self.reject(pc.invert(fits))
        return pc.if_else(fits, texts, None).cast(pa.int64())

    def time(self) -> Any:
        texts = self.filled("time")
        times = read_times(texts)
        self.reject(pc.and_(pc.is_null(times), pc.is_valid(texts)))
        return times

    def names(self, texts: Any) -> Any:
        """The texts; rows whose text is not a valid name are odd."""
        if texts.null_count < len(texts):
            self.reject(pc.and_(pc.is_valid(texts), pa.array(~plain_names(*bytes_of(texts)))))
        return texts

    def words(self, field: str, meaning: Callable[[str], Any]) -> tuple[np.ndarray, list[Any]]:
        """The meanings of a field's few distinct texts, and the index of each row's; the last one is for empty texts."""
        words = self.filled(field).dictionary_encode()
        return np.asarray(words.indices.fill_null(len(words.dictionary))), [*map(meaning, words.dictionary.to_pylist()), None]

    def reject(self, which: Any) -> None:
        self.odd |= np.asarray(pc.fill_null(which, False))


def as_part(rows: np.ndarray, lines: np.ndarray, fields: Mapping[str, Any]) -> tuple[Part, np.ndarray]:
    """The records of the ordinary rows, given their columns by field; and which rows are odd."""
    reader = _Reader(fields, len(rows))
    columns: dict[str, Any] = {
        "line": lines, "order": reader.whole("order"), "lamport": reader.whole("lamport"), "time_ns": reader.time(),
        "text": reader.text("event"), **{name: reader.names(reader.filled(name)) for name in _NAMES if reader.has(name)},
    }  # fmt: skip
    follows = reader.has("id") and not reader.text("id").null_count
    if reader.has("id") and not follows:
        reader.odd[:] = True  # Some rows have a name of their own, and others do not.
    host = reader.names(reader.filled("host"))
    if follows and not reader.has("host"):
        host = pa.repeat(NOWHERE, len(rows))
    reader.reject(pc.is_null(host))
    names: list[str] = []
    if follows:
        _follow(reader, columns)
    else:
        names = _causality(reader, columns)
    own = host.dictionary_encode()
    numbers = {name: number for number, name in enumerate(names)}
    spread = np.array([numbers.setdefault(name, len(numbers)) for name in own.dictionary.to_pylist()] or [0], np.int32)
    block = Block(list(numbers), spread[np.asarray(own.indices.fill_null(0))], as_batch(len(rows), columns))
    kept = np.flatnonzero(~reader.odd)
    if len(kept) < len(rows):
        block = Block(block.names, block.host[kept], block.records.take(kept))
    return Part(rows[kept], pc.fill_null(reader.text("execution"), "").take(pa.array(kept)), block), reader.odd


def _follow(reader: _Reader, columns: dict[str, Any]) -> None:
    """Set the columns of events with a name and the name of at most one cause."""
    scope = pc.fill_null(reader.filled("scope"), "")
    own, after = reader.text("id"), reader.filled("after")
    columns["kind"] = np.full(len(own), LOCAL, np.int8)
    columns["key"] = reader.names(join_texts(scope, own))
    follows = np.asarray(pc.is_valid(after))
    named = after.drop_null()
    given = np.flatnonzero(follows)
    causes = join_texts(scope.take(pa.array(given)), named)
    reader.odd[given[~(single_names(*bytes_of(named)) & plain_names(*bytes_of(causes)))]] = True
    if reader.has("after"):
        columns["causes"] = _lists(follows.astype(np.int64), causes)
    if columns["order"].null_count == len(own):
        columns["order"] = columns["time_ns"]
    else:
        columns["order"] = pc.coalesce(columns["order"], columns["time_ns"])


def _causality(reader: _Reader, columns: dict[str, Any]) -> list[str]:
    """Set the columns of clocks, sends and deliveries. Returns the names of the hosts in clocks."""
    codes, meanings = reader.words("kind", lambda word: KINDS.get(word.lower(), -1))
    kind = np.array([*meanings[:-1], LOCAL], np.int8)[codes]
    names: list[str] = []
    clocks = reader.filled("clock")
    clocked = np.asarray(pc.is_valid(clocks))
    reader.odd |= kind < 0
    if clocked.any():
        letters, offsets = bytes_of(clocks)
        spans = np.stack((offsets[:-1], offsets[1:]), axis=1).astype(np.int64)
        read = read_clocks(letters, spans)
        reader.odd |= clocked & (read.lengths < 0)
        names, lists = read.names, read.columns()
        if not clocked.all():
            lists = {name: pc.if_else(pa.array(clocked), column, None) for name, column in lists.items()}
        columns.update(lists)
        kind = np.where(clocked, LOCAL, kind).astype(np.int8)
    columns["kind"] = kind
    named = (kind == SEND) | (kind == DELIVER)
    if named.any():
        message = pc.if_else(pa.array(named), reader.filled("message"), None)
        reader.odd |= named & np.asarray(pc.is_null(message))
        reader.names(message)
        columns["key"] = pc.if_else(pa.array(kind == SEND), message, None)
        delivered = kind == DELIVER
        causes = pc.if_else(pa.array(delivered), pc.fill_null(message, ""), None).drop_null()
        columns["causes"] = _lists(delivered.astype(np.int64), causes, ~delivered)
        if reader.has("dests"):
            columns["dests"] = _dests(reader, kind == SEND)
    return names


def _dests(reader: _Reader, sends: np.ndarray) -> Any:
    """The destinations of sends; each distinct list is parsed once."""
    codes, meanings = reader.words("dests", _list_of_names)
    reader.odd |= sends & np.array([*(meaning is None for meaning in meanings[:-1]), False], np.bool_)[codes]
    lists = pa.array([meaning or None for meaning in meanings], pa.list_(pa.string()))
    return lists.take(np.where(sends, codes, len(meanings) - 1))


def _list_of_names(text: str) -> list[str] | None:
    try:
        names = names_in(text, "")
    except BadInput:
        return None
    return names if names and all(map(is_name, names)) else None


def _lists(lengths: np.ndarray, texts: Any, nulls: np.ndarray | None = None) -> Any:
    return as_lists(lengths, texts, None if nulls is None else pa.array(nulls))


def add_parts(found: Found, parts: Sequence[Part], events: Iterable[tuple[int, Event]]) -> None:
    """Add the events of all parts, and those that were read one by one, in the order of their rows."""
    rows, hosts, records, labels = [], [], [], []
    for row, (line, label, host, record) in events:
        record["line"] = line
        if (text := record.pop("untimed", None)) is not None:
            found.untimed.append((line, host, text))
        rows.append(row)
        hosts.append(host)
        records.append(record)
        labels.append(label)
    every = [*parts, Part(np.array(rows, np.int64), pa.array(labels, pa.string()), as_block(hosts, records))]
    every = [part for part in every if len(part.rows)]
    if not every:
        return
    names, own, batch = join_blocks([part.block for part in every])
    executions = pa.concat_arrays([part.executions for part in every])
    order = np.argsort(np.concatenate([part.rows for part in every]), kind="stable")
    if (order[1:] < order[:-1]).any():
        own, batch, executions = own[order], batch.take(order), executions.take(pa.array(order))
    labelled = executions.dictionary_encode()
    numbers = np.array([found.execution(label) for label in labelled.dictionary.to_pylist()], np.int32)
    execution = numbers[np.asarray(labelled.indices)]
    batch = batch.set_column(batch.schema.get_field_index("execution"), "execution", pa.array(execution))
    kind = np.asarray(batch["kind"])
    found.clocked = found.clocked or batch["clock_hosts"].null_count < len(kind)
    found.caused = found.caused or bool((np.asarray(pc.is_valid(batch["key"])) & (kind == LOCAL)).any())
    found.dests |= _named(execution, batch["dests"])
    found.add_block(Block(names, own, batch))


def _named(execution: np.ndarray, dests: Any) -> set[tuple[int, str]]:
    """The hosts that are destinations, by execution."""
    if dests.null_count == len(dests):
        return set()
    names = pc.list_flatten(dests).dictionary_encode()
    of = np.repeat(execution, np.asarray(pc.list_value_length(dests).fill_null(0)))
    pairs = np.unique(of.astype(np.int64) * len(names.dictionary) + np.asarray(names.indices))
    words = names.dictionary.to_pylist()
    return {(int(pair // len(words)), words[pair % len(words)]) for pair in pairs.tolist()}


@compiled
def plain_names(letters: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Which texts are certainly valid names: see `records.check_name`."""
    good = np.empty(len(offsets) - 1, np.bool_)
    for row in range(len(good)):
        begin, end = offsets[row], offsets[row + 1]
        fine = 0 < end - begin <= 256
        if fine:
            head = letters[begin]
            fine = head != 61 and head != 43 and head != 45 and head != 64
        bad, before = False, np.uint8(0)  # There are no branches in the loop.
        for at in range(np.uint64(begin), np.uint64(end)):
            letter = letters[at]
            bad |= (letter < 32) | (letter == 127) | ((letter == 46) & (before == 46))
            before = letter
        good[row] = fine and not bad
    return good


@compiled
def single_names(letters: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Which texts are certainly a single name, not a list: see `mapping.names_in`."""
    good = np.empty(len(offsets) - 1, np.bool_)
    for row in range(len(good)):
        begin, end = offsets[row], offsets[row + 1]
        fine = begin < end and letters[begin] != 91
        for at in range(begin, end):
            letter = letters[at]
            if letter <= 32 or letter >= 128 or letter == 59 or letter == 44:
                fine = False
        good[row] = fine
    return good
