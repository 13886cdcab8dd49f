"""The checks of isolation levels below serialisability: read committed, read atomic, transactional causal consistency."""

from __future__ import annotations

from functools import partial

import msgspec

from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck, Need, Question, TaskKind
from quire.pipeline.auditing.cycles import outgoing, shortest, strongly_connected
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.isolation import READ, SESSION, Level, find_sessions, order_of
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.transaction_findings import (
    Did,
    Wrong,
    because_wrong,
    did_by,
    find_wrong,
    not_said,
    witness_of_transactions,
)
from quire.pipeline.auditing.transactions import COLUMNS, find_transactions
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World

_SEARCH_STEPS_MAX = 2_000_000_000
_INITIAL = "the initial state"


class IsolationTask(msgspec.Struct, tag="isolation"):
    world: World
    groups: tuple[RowGroup, ...]


class LevelFound(msgspec.Struct, frozen=True):
    """The number of strongly connected components with several transactions, and a shortest cycle: its transactions, why each
    precedes the next, and the reads that show it."""

    cycles: int = 0
    names: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    did: tuple[Did, ...] = ()


class IsolationResult(msgspec.Struct, kw_only=True):
    named: bool = True
    why: str = ""
    wrong: Wrong = Wrong()
    levels: tuple[LevelFound, ...] = (LevelFound(),) * len(Level)

    def violations(self, level: Level) -> int:
        return self.levels[level].cycles + self.wrong.count


def judge_isolation(task: IsolationTask) -> IsolationResult:
    """Read the whole trace, with the text columns, and judge it."""
    return judge_levels(read_labelled(task.world, task.groups, COLUMNS))


def judge_levels(rows: Labelled) -> IsolationResult:
    """The part of `judge_isolation` that needs no files."""
    if not rows.words["txn"]:
        return IsolationResult(named=False)
    history = find_transactions(rows)
    sessions = find_sessions(rows, history)
    names = [*(rows.words["txn"][code] for code in sessions.code.tolist()), _INITIAL]
    levels = []
    for level in Level:
        edges, about = order_of(sessions, level)
        begin, order = outgoing(edges, len(names))
        component, count = strongly_connected(begin, edges[order, 1])
        if not count:
            levels.append(LevelFound())
            continue
        steps = shortest(edges, begin, order, component, _SEARCH_STEPS_MAX).tolist()
        chain, did = [], []
        for step in steps:
            first, second = (names[end] for end in edges[step].tolist())
            why, thing, read = about[step].tolist()
            reader = names[int(sessions.reader[read])] if read >= 0 else ""
            chain.append(_because(why, first, second, rows.words["object"][thing] if thing >= 0 else "", reader))
            if read >= 0:
                did.append(did_by(rows, int(sessions.event[read])))
        levels.append(LevelFound(int(count), tuple(names[edges[step, 0]] for step in steps), tuple(chain), tuple(did)))
    return IsolationResult(why=not_said(history), wrong=find_wrong(rows, history), levels=tuple(levels))


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
_TASK = TaskKind(IsolationTask, IsolationResult, judge_isolation, _make)


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
