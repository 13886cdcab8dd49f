"""The tasks that check the order within groups, each for a share of the groups; they run in parallel with the segments.

Groups can be judged independently, so a task reads all logs but keeps only the events of its own groups. A delivery belongs to
the group that the message's sender names, so the sends are read first.

If one order explains all deliveries, it explains those of every group, and all that is left to find out is whether the trace
names groups at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa

from quire.pipeline.auditing.group_history import COLUMNS, find_history
from quire.pipeline.auditing.group_logs import GroupLogsResult, compare_logs
from quire.pipeline.auditing.groups import WithinGroups, disagreements_within
from quire.pipeline.auditing.total import Disagreement, labels_of, message_ids
from quire.pipeline.columns import kinds, numbers, present
from quire.pipeline.labels import Labelled, LabelledSlices, read_labelled
from quire.pipeline.layout import RowGroup, World, correct_members
from quire.pipeline.reading import TraceReader
from quire.trace.kinds import DELIVER, SEND, VIEW

ROWS_PER_PIECE = 2_500_000
_NONE = -1
"""The piece number of events that belong to no group."""


class GroupsTask(msgspec.Struct, tag="groups"):
    world: World
    groups: tuple[RowGroup, ...]
    pieces: int = 1
    piece: int = 0
    only_named: bool = False
    """Only find out whether there are groups, because one order explains all deliveries, and nobody joins or leaves."""


class GroupsResult(msgspec.Struct, kw_only=True):
    within: WithinGroups = WithinGroups()
    logs: GroupLogsResult = msgspec.field(default_factory=GroupLogsResult)

    def joined(self, other: GroupsResult) -> GroupsResult:
        """Combine the results of two pieces."""
        return GroupsResult(within=self.within.joined(other.within), logs=self.logs.joined(other.logs))


def cut_by_group(task: object) -> Sequence[GroupsTask]:
    assert isinstance(task, GroupsTask)
    return [msgspec.structs.replace(task, piece=piece) for piece in range(task.pieces)]


def judge_groups(task: GroupsTask) -> GroupsResult:
    """Read the events of the task's groups, and judge them."""
    correct = correct_members(task.world)
    if task.only_named:
        return GroupsResult(within=WithinGroups(grouped=_are_named(task, correct)))
    if task.pieces == 1:
        rows = read_labelled(task.world, task.groups, COLUMNS)
        return judge_rows(rows, correct, bool((rows.kind[correct[rows.processes()]] == DELIVER).any()))
    return judge_rows(*_read(task, correct))


def judge_rows(rows: Labelled, correct: np.ndarray, delivered: bool) -> GroupsResult:
    """The part of `judge_groups` that needs no files. `delivered`: whether a correct member delivered anything, in a group or
    not."""
    ids, size = message_ids(rows)
    history = find_history(rows, ids, size, correct)
    index = np.flatnonzero(history.first)
    start = np.searchsorted(index, rows.start).astype(np.int64)
    group = history.group[index]
    within = WithinGroups(grouped=bool((group >= 0).any()) or not delivered)
    found = disagreements_within(ids[index], start, group, size, len(history.dynamic))
    if found.pairs:
        before, after = labels_of(rows, ids, np.array([found.first.before, found.first.after]))
        disagreement = Disagreement(int(found.first.one), int(found.first.other), before, after)
        name = rows.words["group"][found.group]
        within = WithinGroups(grouped=True, pairs=found.pairs, group=name, disagreement=disagreement)
    return GroupsResult(within=within, logs=compare_logs(rows, history, ids))


class _Log(NamedTuple):
    """Some rows of a process, with the piece of each row's group as recorded in the row itself."""

    process: int
    groups: Sequence[RowGroup]
    table: pa.Table
    kind: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    piece: np.ndarray


def _logs(task: GroupsTask, columns: Sequence[str]) -> Iterator[_Log]:
    with TraceReader(task.world.run) as reader:
        for own, table in reader.read_files(task.groups, ["kind", "origin", "seq", *columns]):
            origin, seq = (np.where(present(table[name]), numbers(table, name)[0], -1) for name in ("origin", "seq"))
            piece = _pieces(table["group"], task.pieces)
            yield _Log(own[0].process, own, table, kinds(table["kind"]), origin, seq, piece)


def _pieces(column: Any, pieces: int) -> np.ndarray:
    """The piece of each row's group: a hash of its name, so that all tasks agree."""
    found = []
    for chunk in column.chunks:
        of_word = np.array([*(crc32(word.encode()) % pieces for word in chunk.dictionary.to_pylist()), _NONE], np.int32)
        found.append(of_word[np.asarray(chunk.indices.fill_null(len(of_word) - 1))])
    return np.concatenate([np.empty(0, np.int32), *found])


def _read(task: GroupsTask, correct: np.ndarray) -> tuple[Labelled, np.ndarray, bool]:
    """The events of the task's groups, and whether anything was delivered."""
    sent = _find_sent(task)
    slices, delivered = LabelledSlices(task.world, COLUMNS), False
    for process, logs in groupby(_logs(task, COLUMNS), key=lambda log: log.process):
        unknown: list[np.ndarray] = []
        for log in logs:
            deliveries = np.flatnonzero((log.kind == DELIVER) & correct[process])
            delivered = delivered or len(deliveries) > 0
            by_sender = _look_up(sent, log.origin[deliveries], log.seq[deliveries])
            told = by_sender != _NONE
            log.piece[deliveries[told]] = by_sender[told]
            log.piece[deliveries[~told][_repeated(log, deliveries[~told], unknown)]] = _NONE
            wanted = (log.kind == SEND) | (log.kind == DELIVER) | (log.kind == VIEW)
            slices.add(log.groups, log.table, wanted & (log.piece == task.piece))
    return slices.labelled(), correct, delivered


class _Sent(NamedTuple):
    """The messages of a process that name a group, sorted by number, and the piece of each one's group."""

    seq: np.ndarray
    piece: np.ndarray


def _find_sent(task: GroupsTask) -> dict[int, _Sent]:
    found: dict[int, list[_Sent]] = {}
    for log in _logs(task, ["group"]):
        own = (log.kind == SEND) & (log.origin == log.process) & (log.piece != _NONE)
        found.setdefault(log.process, []).append(_Sent(log.seq[own], log.piece[own]))
    return {process: _first_of_each(parts) for process, parts in found.items()}


def _first_of_each(parts: Sequence[_Sent]) -> _Sent:
    seq, first = np.unique(np.concatenate([part.seq for part in parts]), return_index=True)
    return _Sent(seq, np.concatenate([part.piece for part in parts])[first])


def _look_up(sent: dict[int, _Sent], origin: np.ndarray, seq: np.ndarray) -> np.ndarray:
    """The piece of the group that each message's sender names; _NONE if it names none."""
    piece = np.full(len(origin), _NONE, np.int32)
    for process, its in sent.items():
        own = np.flatnonzero(origin == process)
        if len(own) and len(its.seq):
            at = np.minimum(np.searchsorted(its.seq, seq[own]), len(its.seq) - 1)
            piece[own] = np.where(its.seq[at] == seq[own], its.piece[at], _NONE)
    return piece


def _repeated(log: _Log, rows: np.ndarray, before: list[np.ndarray]) -> np.ndarray:
    """Which of these deliveries repeat an earlier one of the process. Only the first counts, and only it names the group."""
    names = np.stack((log.origin[rows].astype(np.int64), log.seq[rows].astype(np.int64)), axis=1)
    before.append(names)
    if (log.piece[rows] == _NONE).all():
        return np.zeros(len(rows), np.bool_)
    every = np.concatenate(before)
    again = np.ones(len(every), np.bool_)
    again[np.unique(every, axis=0, return_index=True)[1]] = False
    return again[len(every) - len(names) :]


def _are_named(task: GroupsTask, correct: np.ndarray) -> bool:
    """Whether any delivery belongs to a group, or nothing is delivered at all."""
    delivered: list[np.ndarray] = []
    named: list[np.ndarray] = []
    for log in _logs(task, ["group"]):
        names = np.stack((log.origin.astype(np.int64), log.seq.astype(np.int64)), axis=1)
        deliveries = (log.kind == DELIVER) & correct[log.process]
        if (log.piece[deliveries] != _NONE).any():
            return True
        delivered.append(names[deliveries])
        named.append(names[(log.kind == SEND) & (log.origin == log.process) & (log.piece != _NONE)])
    both = np.concatenate([np.unique(np.concatenate(some), axis=0) for some in (delivered, named)])
    return not sum(map(len, delivered)) or len(np.unique(both, axis=0)) < len(both)
