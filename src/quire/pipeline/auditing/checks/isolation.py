"""The checks of isolation levels below serialisability: read committed, read atomic, transactional causal consistency.

Each task judges some of the objects, where one order that all tasks know explains every read; otherwise one task judges the
levels by their definitions.
"""

from __future__ import annotations

from functools import partial

import msgspec
import numpy as np

from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck, Need, Question, TaskKind
from quire.pipeline.auditing.cycles import find_knots
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.isolation import READ, SESSION, Level, Ordered, Orders, Sessions, find_sessions
from quire.pipeline.auditing.isolation_pieces import count_unexplained
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.transaction_findings import (
    Did,
    because_wrong,
    did_by,
    find_wrong,
    not_said,
    witness_of_transactions,
)
from quire.pipeline.auditing.transaction_pieces import Part, PieceResult, PieceRows, count_pieces, part_of, read_piece
from quire.pipeline.auditing.transactions import COLUMNS, commit_ranks, find_transactions
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World

_INITIAL = "the initial state"


class IsolationTask(msgspec.Struct, tag="isolation"):
    world: World
    groups: tuple[RowGroup, ...]
    pieces: int = 1
    piece: int = 0


class LevelFound(msgspec.Struct, frozen=True):
    """The number of strongly connected components with several transactions, and a shortest cycle: its transactions, why each
    precedes the next, and the reads that show it."""

    cycles: int = 0
    names: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    did: tuple[Did, ...] = ()


class IsolationResult(PieceResult, kw_only=True):
    levels: tuple[LevelFound, ...] = (LevelFound(),) * len(Level)

    def violations(self, level: Level) -> int:
        return self.levels[level].cycles + self.wrong.count


def judge_isolation(task: IsolationTask) -> IsolationResult:
    """Read the whole trace, with the text columns, or the rows of the piece's objects, and judge it."""
    if task.pieces > 1:
        return judge_piece(read_piece(task.world, task.groups, task.pieces, task.piece, turns=True), first=task.piece == 0)
    return judge_levels(read_labelled(task.world, task.groups, COLUMNS, times=True, as_met=("txn",)))


def judge_levels(rows: Labelled) -> IsolationResult:
    """The part of `judge_isolation` that needs no files."""
    if not rows.words["txn"]:
        return IsolationResult(named=False)
    history = find_transactions(rows)
    sessions = find_sessions(rows, history)
    orders, levels = Orders(sessions), []
    # A level requires all that those below it do, so what is on no cycle at one is on none at the next.
    knotted = np.ones(orders.nodes, np.bool_)
    for level in reversed(Level):
        found, knotted = _judge_level(rows, sessions, orders.at(level, knotted), orders.nodes)
        levels.append(found)
    return IsolationResult(why=not_said(history), wrong=find_wrong(rows, history), levels=tuple(reversed(levels)))


def _judge_level(rows: Labelled, sessions: Sessions, found: Ordered, nodes: int) -> tuple[LevelFound, np.ndarray]:
    """What was found, and which transactions are on cycles."""
    # The initial state comes first.
    knots = find_knots(found.edges, nodes, lambda: np.append(commit_ranks(rows, rows.lamport)[sessions.code], -1))

    def name(number: int) -> str:
        return rows.words["txn"][int(sessions.code[number])] if number < len(sessions.code) else _INITIAL

    names, chain, did = [], [], []
    for step in knots.cycle:
        first, second = map(name, found.edges[step].tolist())
        why, thing, read = found.about(step)
        reader = name(int(sessions.reader[read])) if read >= 0 else ""
        names.append(first)
        chain.append(_because(why, first, second, rows.words["object"][thing] if thing >= 0 else "", reader))
        if read >= 0:
            did.append(did_by(rows, int(sessions.event[read])))
    return LevelFound(knots.components, tuple(names), tuple(chain), tuple(did)), knots.knotted


def judge_piece(piece: PieceRows, *, first: bool) -> IsolationResult:
    """What some of the objects, and some of the sessions, say. How transactions ended is for the first piece to judge."""
    if not piece.rows.words["txn"]:
        return IsolationResult(named=False, part=Part())
    if not piece.apart:
        return IsolationResult(part=Part(apart=False))
    history = find_transactions(piece.rows)
    part = part_of(history, count_unexplained(piece, history))
    return IsolationResult(why=part.why, wrong=find_wrong(piece.rows, history, ends=first), part=part)


def _settled(found: IsolationResult) -> bool:
    return found.part is None or found.part.settled


def _cut(task: IsolationTask) -> list[IsolationTask]:
    pieces = count_pieces(task.groups)
    return [msgspec.structs.replace(task, pieces=pieces, piece=piece) for piece in range(pieces)]


def _because(why: int, first: str, second: str, thing: str, reader: str) -> str:
    if why == SESSION:
        return f"{first} came before {second}" if first == _INITIAL else f"{first} came before {second} in its session"
    if why == READ:
        return f"{second} read {thing} as {first} had written it"
    return f"{reader} had seen {first}, which wrote {thing}, and read it as {second} had written it"


def _explain(level: Level, results: Results, _: Log) -> Explanation:
    found = results.of(IsolationResult)
    at = found.levels[level]
    if not at.cycles:
        return Explanation(witness_of_transactions(found.wrong.did), because_wrong(found.wrong))
    because = f"{', '.join(at.names[:-1])} and {at.names[-1]} come before each other: {', and '.join(at.chain)}"
    return Explanation(witness_of_transactions(at.did, at.names, at.chain), because)


def _make(question: Question) -> IsolationTask:
    return IsolationTask(question.layout.world, question.layout.groups)


_TRANSACTIONS = Need(lambda results: not results.of(IsolationResult).named, "no event names a transaction, in txn")
_TASK = TaskKind(IsolationTask, IsolationResult, judge_isolation, _make, _cut, _settled)


def _check(guarantee: Guarantee, level: Level, holds: str) -> AuditCheck:
    return AuditCheck(
        guarantee=guarantee,
        holds=holds,
        needs=(_TRANSACTIONS,),
        tasks=(_TASK,),
        count=lambda results: results.of(IsolationResult).violations(level),
        undecided=lambda results: results.of(IsolationResult).why,
        explain=partial(_explain, level),
    )


READ_COMMITTED = _check(
    Guarantee.READ_COMMITTED,
    Level.READ_COMMITTED,
    "no transaction read what was not committed, or older versions after newer ones",
)
READ_ATOMIC = _check(
    Guarantee.READ_ATOMIC, Level.READ_ATOMIC, "every transaction saw all of what each other had written, or nothing of it"
)
TRANSACTIONAL_CAUSAL = _check(
    Guarantee.TRANSACTIONAL_CAUSAL, Level.CAUSAL, "every transaction saw all that had happened before what it saw"
)
