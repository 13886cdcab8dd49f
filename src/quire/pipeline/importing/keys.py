"""Resolves causes given by name: which record sent the message that another delivers, which span is another's parent.

It is a hash join: names are distributed over buckets, and one task joins each bucket, so no task sees all names.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.compiled import compiled
from quire.pipeline.hashing import bytes_of, hash_texts, mix_in
from quire.pipeline.importing.defects import Defect, DefectKind, Defects
from quire.pipeline.importing.records import schema_of
from quire.pipeline.importing.scratch import EDGES, Scratch, load_batch
from quire.trace.kinds import DELIVER, SEND, VIEW

_KEYS = schema_of(
    [
        ("execution", pa.int32()),
        ("name", pa.string()),
        ("row", pa.int64()),
        ("kind", pa.int8()),
        ("cause", pa.bool_()),
        ("file", pa.int32()),
        ("line", pa.int64()),
        ("content", pa.int64()),
    ]
)
_JOINED = schema_of([("row", pa.int64()), ("source", pa.int32()), ("index", pa.int64()), ("again", pa.bool_())])
"""An edge; or, if `again` is set, a record that repeats a send of another."""


class JoinTask(msgspec.Struct, tag="join"):
    scratch: Scratch
    files: tuple[str, ...]
    unit: str
    run: int
    hosts: tuple[str, ...]
    processes: tuple[int, ...]
    """The processes that have records."""
    bucket: int
    caused: bool
    """Whether records name the records that they follow, also at their own host, instead of messages."""


class Joined(msgspec.Struct):
    defects: Defects


class CollectTask(msgspec.Struct, tag="collect"):
    """Collect the results of all buckets for some processes, in one file per process."""

    scratch: Scratch
    run: int
    processes: tuple[int, ...]
    buckets: int


class Collected(msgspec.Struct):
    causes_max: int


def save_keys(scratch: Scratch, run: int, process: int, table: pa.Table, buckets: int) -> None:
    """Save a process's names, one batch per bucket."""
    key, causes = table["key"].combine_chunks(), table["causes"].combine_chunks()
    own = np.flatnonzero(np.asarray(pc.is_valid(key)))
    asked = np.repeat(np.arange(table.num_rows), np.asarray(pc.list_value_length(causes).fill_null(0)))
    row = np.concatenate((own, asked))
    name = pa.concat_arrays([key.drop_null(), pc.list_flatten(causes)])
    columns = {
        "name": name, "row": pa.array(row), "cause": pa.array(np.arange(len(row)) >= len(own)),
        "content": pa.array(_contents(table)[row]),
        **{other: table[other].combine_chunks().take(row) for other in ("execution", "kind", "file", "line")},
    }  # fmt: skip
    keys = pa.record_batch([columns[field.name] for field in _KEYS], schema=_KEYS)
    bucket = hash_texts(*bytes_of(name)) % buckets
    # Sorted by row, so that the first in the log is found first.
    order = np.lexsort((np.asarray(columns["cause"]), row, bucket))
    keys, edges = keys.take(order), np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
    with pa.OSFile(scratch.path("keys", run, process), "wb") as file, pa.ipc.new_file(file, _KEYS) as writer:
        for begin, end in pairwise(edges):
            writer.write_batch(keys.slice(begin, end - begin))


def _contents(table: pa.Table) -> np.ndarray:
    """A hash of each record's content, equal for equal records."""
    causes = table["causes"].combine_chunks()
    order = table["order"].combine_chunks()
    text: Any = table["text"].combine_chunks()
    lengths = np.asarray(pc.list_value_length(causes).fill_null(-1))
    said: np.ndarray = mix(
        np.asarray(order.fill_null(-1)), np.asarray(order.is_null()), hash_texts(*bytes_of(text.fill_null(""))), lengths,
        hash_texts(*bytes_of(pc.list_flatten(causes))),
    )  # fmt: skip
    return said


@compiled
def mix(
    order: np.ndarray, unordered: np.ndarray, text: np.ndarray, lengths: np.ndarray, causes: np.ndarray
) -> np.ndarray:  # fmt: skip
    """The hash of each record, from the parts of its content."""
    mixed, at = np.empty(len(order), np.int64), 0
    for row in range(len(order)):
        said = mix_in(text[row], unordered[row])
        said = mix_in(mix_in(said, order[row]), order[row] >> 32)
        said = mix_in(said, lengths[row])
        for _ in range(lengths[row]):
            said = mix_in(said, causes[at])
            at += 1
        mixed[row] = said
    return mixed


class _Sender(msgspec.Struct, order=True):
    file: int
    line: int
    process: int
    row: int
    kind: int
    content: int


def join(task: JoinTask) -> Joined:
    defects = Defects([], {})
    batches = [load_batch(task.scratch.path("keys", task.run, process), task.bucket) for process in task.processes]
    process = np.repeat(np.array(task.processes, np.int32), [batch.num_rows for batch in batches])
    keys = pa.Table.from_batches(batches, _KEYS).combine_chunks()
    row, kind, is_cause = (np.asarray(keys[name]) for name in ("row", "kind", "cause"))
    meaning = _number_names(keys)
    first = np.full(int(meaning.max(initial=-1)) + 1, -1, np.int64)
    senders = np.flatnonzero(~is_cause)
    first[meaning[senders[::-1]]] = senders[::-1]
    again = _choose_first(task, keys, process, meaning, senders, first, defects)
    asked = np.flatnonzero(is_cause)
    sender = first[meaning[asked]]
    names_message = (kind[asked] == DELIVER) | (kind[asked] == VIEW)
    links = (sender >= 0) & (task.caused | names_message | (process[sender] != process[asked]))
    nowhere = asked[sender < 0]
    for each in nowhere.tolist():
        what = {DELIVER: "it delivers", VIEW: "it read"}.get(int(kind[each]), "it names")
        _report(task, defects, process, keys, each, DefectKind.NOT_THERE, f"{what} {keys['name'][each]}, which does not exist")
    lost = asked[(sender < 0) & names_message]
    nobodys = np.array([_nobodys(keys["name"][each].as_py()) for each in lost.tolist()], np.int64)
    found = np.concatenate((asked[links], lost, again))
    to = np.concatenate((sender[links], np.full(len(lost), -1), first[meaning[again]]))
    source, index = np.where(to < 0, -1, process[to]).astype(np.int32), row[to]
    index[to < 0] = nobodys
    is_again = np.arange(len(found)) >= len(found) - len(again)
    order = np.lexsort((is_again, index, source, row[found], process[found]))
    found, source, index, is_again = found[order], source[order], index[order], is_again[order]
    edges = np.searchsorted(process[found], np.arange(len(task.hosts) + 1)).tolist()
    joined = pa.record_batch([pa.array(column) for column in (row[found], source, index, is_again)], schema=_JOINED)
    path = task.scratch.path("joined", task.run, task.bucket)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, _JOINED) as writer:
        for begin, end in pairwise(edges):
            writer.write_batch(joined.slice(begin, end - begin))
    return Joined(defects)


def _number_names(keys: pa.Table) -> np.ndarray:
    """Number the names of each execution in order of first occurrence."""
    names = np.asarray(keys["name"].combine_chunks().dictionary_encode().indices).astype(np.int64)
    execution = np.asarray(keys["execution"]).astype(np.int64)
    if not execution.any():
        return names
    _, numbers = np.unique(execution * (len(names) + 1) + names, return_inverse=True)
    return np.asarray(numbers, np.int64)


def _choose_first(
    task: JoinTask, keys: pa.Table, process: np.ndarray, meaning: np.ndarray, senders: np.ndarray, first: np.ndarray,
    defects: Defects,
) -> np.ndarray:  # fmt: skip
    """If several records have the same name, choose the one that is meant and store it in `first`; report and return the
    others."""
    counts = np.bincount(meaning[senders], minlength=len(first))
    several = senders[counts[meaning[senders]] > 1]
    by_name: dict[int, list[tuple[_Sender, int]]] = {}
    columns = [np.asarray(keys[name]) for name in ("file", "line", "row", "kind", "content")]
    for each in several.tolist():
        file, line, row, kind, content = (int(column[each]) for column in columns)
        by_name.setdefault(int(meaning[each]), []).append((_Sender(file, line, int(process[each]), row, kind, content), each))
    again = []
    for name, those in by_name.items():
        # The process that logged it first is the sender, and its first send is the one that counts.
        those.sort()
        begun = those[0][0].process
        one, first[name] = min((pair for pair in those if pair[0].process == begun), key=lambda pair: pair[0].row)
        for sender, each in those:
            if each == first[name]:
                continue
            again.append(each)
            if sender.kind != SEND:
                same = (sender.process, sender.content) == (one.process, one.content)
                word, other = keys["name"][each], f"{task.files[one.file]} {task.unit} {one.line}"
                _report(
                    task, defects, process, keys, each, DefectKind.REPEATED if same else DefectKind.CONTRADICTING,
                    f"{word} repeats {other}" if same else f"{word} is also the name of {other}, which differs",
                )  # fmt: skip
    return np.array(again, np.int64)


def collect(task: CollectTask) -> Collected:
    most = 0
    for process in task.processes:
        paths = [task.scratch.path("joined", task.run, bucket) for bucket in range(task.buckets)]
        joined = pa.Table.from_batches([load_batch(path, process) for path in paths], _JOINED)
        rows, source, index, again = (np.asarray(joined[name]) for name in _JOINED.names)
        order = np.lexsort((index, source, rows))
        rows, source, index, again = rows[order], source[order], index[order], again[order]
        edges = ~again
        if edges.any():
            most = max(most, int(np.bincount(rows[edges]).max()))
        for stage, chosen in (("edges", edges), ("again", again)):
            columns = [pa.array(rows[chosen]), pa.array(source[chosen]), pa.array(index[chosen])]
            task.scratch.save(stage, task.run, process, pa.table(columns, schema=EDGES))
    return Collected(most)


def _nobodys(name: str) -> int:
    """A number for a message that nobody sent, the same wherever it is delivered."""
    return int.from_bytes(blake2b(name.encode(), digest_size=6).digest(), "big")


def _report(
    task: JoinTask, defects: Defects, process: np.ndarray, keys: pa.Table, each: int, kind: DefectKind, because: str
) -> None:  # fmt: skip
    file, line = task.files[keys["file"][each].as_py()], keys["line"][each].as_py()
    defects.add(Defect(file, line, task.hosts[process[each]], kind, because, task.unit))
