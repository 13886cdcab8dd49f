"""Resolves causes given by name: which record sent the message that another delivers, which span is another's parent.

It is a hash join of the fingerprints of names, one task per bucket.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.compiled import compiled
from quire.pipeline.fingerprints import number_alike
from quire.pipeline.hashing import bytes_of, hash_texts, mix_in
from quire.pipeline.importing.defects import KEPT_MAX, Defect, DefectKind, Defects
from quire.pipeline.importing.keys import KEYS
from quire.pipeline.importing.records import schema_of
from quire.pipeline.importing.scratch import EDGES, Scratch, load_batch, sort_edges
from quire.trace.kinds import DELIVER, SEND, VIEW

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
    pass


class _Names:
    """The names of a bucket, and the records that have them or give them to their causes."""

    def __init__(self, task: JoinTask) -> None:
        self._task = task
        batches = [load_batch(task.scratch.path("keys", task.run, process), task.bucket) for process in task.processes]
        self.process = np.repeat(np.array(task.processes, np.int32), [batch.num_rows for batch in batches])
        keys = pa.Table.from_batches(batches, KEYS)
        high, low, self.row, self._at, self.is_cause, self.kind = (np.asarray(keys[name]) for name in KEYS.names)
        self.meaning: np.ndarray = number_alike(high, low)
        """The number of each name; equal names of an execution have the same."""

    def texts(self, those: np.ndarray) -> list[str]:
        found = np.empty(len(those), np.object_)
        for process in np.unique(self.process[those]).tolist():
            local = self._local(process)
            for cause, texts in ((False, local["key"]), (True, pc.list_flatten(local["causes"].combine_chunks()))):
                chosen = (self.process[those] == process) & (self.is_cause[those] == cause)
                found[chosen] = texts.take(pa.array(self._at[those[chosen]])).to_pylist()
        named: list[str] = found.tolist()
        return named

    def places(self, those: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """File and line of the records."""
        file = self._of(those, lambda local, rows: np.asarray(local["file"])[rows])
        return file, self._of(those, lambda local, rows: np.asarray(local["line"])[rows])

    def contents(self, those: np.ndarray) -> np.ndarray:
        """A hash of the content of the records."""
        return self._of(those, lambda local, rows: _contents(local.take(pa.array(rows))))

    def _of(self, those: np.ndarray, column: Callable[[pa.Table, np.ndarray], np.ndarray]) -> np.ndarray:
        found = np.empty(len(those), np.int64)
        for process in np.unique(self.process[those]).tolist():
            chosen = self.process[those] == process
            found[chosen] = column(self._local(process), self.row[those[chosen]])
        return found

    def report(self, defects: Defects, those: np.ndarray, kind: DefectKind, because: Callable[[str, int], str]) -> None:
        """Report all, and describe those that are first in the files; the reason is given the name."""
        file, line = self.places(those)
        first = those[np.lexsort((line, file))[:KEPT_MAX]]
        for name, each in zip(self.texts(first), first.tolist(), strict=True):
            process, row = int(self.process[each]), int(self.row[each])
            local = self._local(process)
            file, line = self._task.files[local["file"][row].as_py()], local["line"][row].as_py()
            defects.add(Defect(file, line, self._task.hosts[process], kind, because(name, each), self._task.unit))
        if len(those) > KEPT_MAX:
            defects.counts[kind] += len(those) - KEPT_MAX

    def _local(self, process: int) -> pa.Table:
        return self._task.scratch.load("local", self._task.run, process)


def join(task: JoinTask) -> Joined:
    defects, names = Defects([], {}), _Names(task)
    process, row, kind, meaning = names.process, names.row, names.kind, names.meaning
    first = np.full(int(meaning.max(initial=-1)) + 1, -1, np.int64)
    senders = np.flatnonzero(~names.is_cause)
    first[meaning[senders[::-1]]] = senders[::-1]
    again = _choose_first(task, names, senders, first, defects)
    asked = np.flatnonzero(names.is_cause)
    sender = first[meaning[asked]]
    names_message = (kind[asked] == DELIVER) | (kind[asked] == VIEW)
    links = (sender >= 0) & (task.caused | names_message | (process[sender] != process[asked]))

    def missing(name: str, each: int) -> str:
        what = {DELIVER: "it delivers", VIEW: "it read"}.get(int(kind[each]), "it names")
        return f"{what} {name}, which does not exist"

    names.report(defects, asked[sender < 0], DefectKind.NOT_THERE, missing)
    lost = asked[(sender < 0) & names_message]
    nobodys = np.array([*map(_nobodys, names.texts(lost))], np.int64)
    found = np.concatenate((asked[links], lost, again))
    to = np.concatenate((sender[links], np.full(len(lost), -1), first[meaning[again]]))
    source, index = np.where(to < 0, -1, process[to]).astype(np.int32), row[to]
    index[to < 0] = nobodys
    is_again = np.arange(len(found)) >= len(found) - len(again)
    order = np.argsort(process[found], kind="stable")
    found, source, index, is_again = found[order], source[order], index[order], is_again[order]
    edges = np.searchsorted(process[found], np.arange(len(task.hosts) + 1)).tolist()
    joined = pa.record_batch([pa.array(column) for column in (row[found], source, index, is_again)], schema=_JOINED)
    path = task.scratch.path("joined", task.run, task.bucket)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, _JOINED) as writer:
        for begin, end in pairwise(edges):
            writer.write_batch(joined.slice(begin, end - begin))
    return Joined(defects)


def _choose_first(
    task: JoinTask, names: _Names, senders: np.ndarray, first: np.ndarray, defects: Defects
) -> np.ndarray:  # fmt: skip
    """If several records have the same name, choose the one that is meant and store it in `first`; report and return the
    others."""
    counts = np.bincount(names.meaning[senders], minlength=len(first))
    several: np.ndarray = senders[counts[names.meaning[senders]] > 1]
    if not len(several):
        return several
    (file, line), content = names.places(several), names.contents(several)
    meaning, process, row = names.meaning[several], names.process[several], names.row[several]
    # The process that logged it first is the sender, and its first send is the one that counts.
    order = np.lexsort((row, process, line, file, meaning))
    _, starts, group = np.unique(meaning[order], return_index=True, return_inverse=True)
    elsewhere = process[order] != process[order[starts]][group]
    chosen = order[np.lexsort((row[order], elsewhere, group))[starts]]
    first[meaning[chosen]] = several[chosen]
    of = np.empty(len(several), np.int64)
    of[order] = chosen[group]
    again: np.ndarray = order[of[order] != order]
    same = (process[again] == process[of[again]]) & (content[again] == content[of[again]])
    place = dict(zip(several.tolist(), range(len(several)), strict=True))

    def other(each: int) -> str:
        meant = of[place[each]]
        return f"{task.files[file[meant]]} {task.unit} {line[meant]}"

    plain = names.kind[several[again]] != SEND
    names.report(defects, several[again[plain & same]], DefectKind.REPEATED, lambda name, each: f"{name} repeats {other(each)}")
    names.report(
        defects, several[again[plain & ~same]], DefectKind.CONTRADICTING,
        lambda name, each: f"{name} is also the name of {other(each)}, which differs",
    )  # fmt: skip
    others: np.ndarray = several[again]
    return others


def _contents(table: pa.Table) -> np.ndarray:
    """A hash of each record's content, equal for equal records."""
    causes = table["causes"].combine_chunks()
    order = table["order"].combine_chunks()
    text: Any = table["text"].combine_chunks()
    lengths = np.asarray(pc.list_value_length(causes).fill_null(0))
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


def collect(task: CollectTask) -> Collected:
    for process in task.processes:
        paths = [task.scratch.path("joined", task.run, bucket) for bucket in range(task.buckets)]
        joined = pa.Table.from_batches([load_batch(path, process) for path in paths], _JOINED)
        again = np.asarray(joined["again"])
        columns = [np.asarray(joined[name]) for name in EDGES.names]
        for stage, chosen in (("edges", ~again), ("again", again)):
            those = [column[chosen] for column in columns]
            order = sort_edges(*those)
            edges = pa.table([pa.array(column[order]) for column in those], schema=EDGES)
            task.scratch.save(stage, task.run, process, edges)
    return Collected()


def _nobodys(name: str) -> int:
    """A number for a message that nobody sent, the same wherever it is delivered."""
    return int.from_bytes(blake2b(name.encode(), digest_size=6).digest(), "big")
