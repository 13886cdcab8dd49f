"""One-copy serialisability: is there one order of the committed transactions that explains what each of them read?

In the dependency graph, transaction A precedes B if B read A's write, B overwrote A's write, or B wrote the version that
follows one A read. For the version order that the system claims, a serial order exists if and only if this graph is acyclic.
A read of a version that was never committed, or that its own writer overwrote, fits into no order.

The transactions of a cycle may be anywhere in the trace. If an order that every task knows agrees with all edges, there is no
cycle, and each task can judge some of the objects on its own; otherwise one task reads the whole trace.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck, Need, Question, TaskKind
from quire.pipeline.auditing.cycles import find_knots
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.transaction_findings import (
    Did,
    because_wrong,
    did_by,
    find_wrong,
    not_said,
    say_unknown,
    witness_of_transactions,
)
from quire.pipeline.auditing.transaction_pieces import (
    Part,
    PieceResult,
    PieceRows,
    count_backward,
    count_pieces,
    part_of,
    read_piece,
)
from quire.pipeline.auditing.transactions import (
    COLUMNS,
    TransactionHistory,
    Versions,
    commit_ranks,
    find_transactions,
    parse_versions,
    timestamp_ranks,
    version_sequences,
)
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World

READ_FROM, OVERWROTE, READ_BEFORE, BY_OTHERS = range(4)
"""Why A precedes B: B read A's write; B overwrote A's write; B wrote a version that A had not seen; or by transactions in
between, which are not known any more."""


LAST_WRITE = -1


class SerialisableTask(msgspec.Struct, tag="serialisable"):
    world: World
    groups: tuple[RowGroup, ...]
    versions: str
    pieces: int = 1
    piece: int = 0


class Step(msgspec.Struct, frozen=True):
    """An edge of a cycle: transaction `first` precedes `second`. `did` holds the read and the write, or the two writes."""

    first: str
    second: str
    object: str
    why: int
    did: tuple[Did, ...]


class SerialisableResult(PieceResult, kw_only=True):
    cycles: int = 0
    """The number of strongly connected components with more than one transaction."""
    cycle: tuple[Step, ...] = ()

    @property
    def violations(self) -> int:
        return self.cycles + self.wrong.count


def judge_serialisable(task: SerialisableTask) -> SerialisableResult:
    """Read the trace with its text columns, or only the events of the piece's objects, and judge it."""
    if task.pieces > 1:
        return judge_piece(read_piece(task.world, task.groups, task.pieces, task.piece), task.versions, first=task.piece == 0)
    return judge_transactions(read_labelled(task.world, task.groups, COLUMNS, times=True, as_met=("txn",)), task.versions)


def judge_transactions(rows: Labelled, versions: str, by_others: np.ndarray | None = None) -> SerialisableResult:
    """The part of `judge_serialisable` that needs no files, for a whole trace, or for what is left of it: then `by_others` are
    pairs of transactions, of which the first precedes the second."""
    if not rows.words["txn"]:
        return SerialisableResult(named=False)
    history = find_transactions(rows)
    obj = rows.codes["object"]
    if missing := int((obj[history.write] < 0).sum() + (obj[history.read] < 0).sum()):
        return SerialisableResult(why=f"{missing} reads and writes do not name their object")
    sequences = version_sequences(rows, history, versions, timestamp_ranks(rows.words["txn"]))
    edges, about = dependencies(rows, history, sequences)
    if by_others is not None:
        edges = np.concatenate((edges, by_others))
        about = np.concatenate((about, np.tile([BY_OTHERS, -1, LAST_WRITE, LAST_WRITE], (len(by_others), 1))))
    knots = find_knots(edges, len(rows.words["txn"]), lambda: commit_ranks(rows, rows.lamport))
    why = not_said(history) or say_unknown(_count_unknown(rows, history, sequences))
    cycle = tuple(_step(rows, history, edges[edge], about[edge]) for edge in knots.cycle)
    return SerialisableResult(cycles=knots.components, why=why, wrong=find_wrong(rows, history), cycle=cycle)


def judge_piece(piece: PieceRows, versions: str, *, first: bool) -> SerialisableResult:
    """The same for some of the objects. Only the first piece checks how transactions ended."""
    rows = piece.rows
    if not rows.words["txn"]:
        return SerialisableResult(named=False, part=Part())
    if not piece.apart:
        return SerialisableResult(part=Part(apart=False))
    history = find_transactions(rows)
    ranks = timestamp_ranks(rows.words["txn"])
    sequences = version_sequences(rows, history, versions, ranks)
    edges, _ = dependencies(rows, history, sequences)
    part = part_of(history, count_backward(piece, ranks, edges), _count_unknown(rows, history, sequences))
    return SerialisableResult(why=part.why, wrong=find_wrong(rows, history, ends=first), part=part)


def _settled(found: SerialisableResult) -> bool:
    return found.part is None or found.part.settled


def _cut(task: SerialisableTask) -> list[SerialisableTask]:
    pieces = count_pieces(task.groups)
    return [msgspec.structs.replace(task, pieces=pieces, piece=piece) for piece in range(pieces)]


def _count_unknown(rows: Labelled, history: TransactionHistory, versions: Versions) -> int:
    """Count the objects whose version order is unknown: objects that were read, with several versions that follow no other.
    (The order of versions makes no difference if nobody read them or, instead of them, an older one.)"""
    objects = max(1, len(rows.words["object"]))
    final = history.write[history.final]
    final = final[history.committed[rows.codes["txn"][final]]]
    own = rows.of("object", final)
    later = np.flatnonzero(versions.sequence[1:] == versions.sequence[:-1]) + 1
    keys = np.sort(versions.txn[later] * objects + versions.object[later])
    mine = rows.of("txn", final) * objects + own
    first = own[np.append(keys, -1)[np.searchsorted(keys, mine)] != mine]
    read = rows.codes["object"][history.read[history.source >= 0]]
    return int(np.isin(np.flatnonzero(np.bincount(first, minlength=objects) > 1), read).sum())


def dependencies(rows: Labelled, history: TransactionHistory, versions: Versions) -> tuple[np.ndarray, np.ndarray]:
    """The edges between transactions, some of them twice, and for each: the reason, the object, and the two events (LAST_WRITE:
    the transaction's last write of the object)."""
    objects = max(1, len(rows.words["object"]))
    of, writer, sequence = versions

    def edges(
        why: int, thing: np.ndarray, first: np.ndarray, second: np.ndarray, one: np.ndarray | int, other: np.ndarray | int
    ) -> np.ndarray:  # fmt: skip
        return np.stack(np.broadcast_arrays(first, second, why, thing, one, other), axis=1).astype(np.int32)

    follows = np.concatenate((sequence[1:] == sequence[:-1], [False])) if len(sequence) else np.zeros(0, np.bool_)
    older = np.flatnonzero(follows)
    thing, first, second = of[older], writer[older], writer[older + 1]
    found = [edges(OVERWROTE, thing, first, second, LAST_WRITE, LAST_WRITE)]
    source, reader, seen = history.source, rows.of("txn", history.read), rows.of("object", history.read)
    real, initial = np.flatnonzero(source >= 0), np.flatnonzero(source == -1)
    wrote = history.write[source[real]]
    author = rows.of("txn", wrote)
    found.append(edges(READ_FROM, seen[real], author, reader[real], wrote, history.read[real]))
    # A read of a version comes before the next version, and one of nothing before the first: in every sequence.
    which, entry = _matches(author * objects + seen[real], writer * objects + of)
    which, entry = real[which[follows[entry]]], entry[follows[entry]] + 1
    head = np.flatnonzero(~np.concatenate(([False], follows))[: len(follows)])
    blind, start = _matches(seen[initial], of[head])
    for read, following in ((which, entry), (initial[blind], head[start])):
        thing, second = seen[read], writer[following]
        found.append(edges(READ_BEFORE, thing, reader[read], second, history.read[read], LAST_WRITE))
    every = np.concatenate(found)
    every = every[(every[:, 0] != every[:, 1]) & history.committed[every[:, 0]] & history.committed[every[:, 1]]]
    return every[:, :2].astype(np.int64), every[:, 2:]


def _matches(wanted: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (index into `wanted`, index into `keys`) with equal values: a join."""
    order = np.argsort(keys, kind="stable")
    low, high = (np.searchsorted(keys[order], wanted, side=side) for side in ("left", "right"))
    counts = high - low
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(np.arange(len(wanted)), counts), order[np.repeat(low, counts) + within]


def _step(rows: Labelled, history: TransactionHistory, edge: np.ndarray, about: np.ndarray) -> Step:
    names, why, thing = rows.words["txn"], int(about[0]), int(about[1])
    if why == BY_OTHERS:
        return Step(names[int(edge[0])], names[int(edge[1])], "", why, ())
    final, did = history.write[history.final], []
    for txn, event in zip(edge.tolist(), about[2:].tolist(), strict=True):
        if event == LAST_WRITE:
            event = final[(rows.codes["txn"][final] == txn) & (rows.codes["object"][final] == thing)][0]
        did.append(did_by(rows, int(event)))
    return Step(names[int(edge[0])], names[int(edge[1])], rows.words["object"][thing], why, tuple(did))


def _explain(results: Results, _: Log) -> Explanation:
    """The shortest cycle of transactions, or a read that no order explains. Needs no lookups: the task's result has it all."""
    found = results.of(SerialisableResult)
    if not found.cycle:
        return Explanation(witness_of_transactions(found.wrong.did), because(found))
    did = [each for step in found.cycle for each in step.did]
    names, chain = [step.first for step in found.cycle], tuple(map(_because_of, found.cycle))
    return Explanation(witness_of_transactions(did, names, chain), because(found))


def because(found: SerialisableResult) -> str:
    """The first violation as a sentence; called only if there is one."""
    if not found.cycle:
        return because_wrong(found.wrong)
    names = [step.first for step in found.cycle]
    chain = ", and ".join(map(_because_of, found.cycle))
    known = all(step.why != BY_OTHERS for step in found.cycle)
    called = f" ({anomaly(found.cycle)})" if known else ""
    return f"{', '.join(names[:-1])} and {names[-1]} come before each other: {chain}{called}"


def anomaly(cycle: Sequence[Step]) -> str:
    """Adya's name for a cycle: by whether it has write dependencies only, read dependencies too, or one or several
    anti-dependencies (reads of what another transaction then overwrote)."""
    anti = sum(step.why == READ_BEFORE for step in cycle)
    if not anti:
        return "G0" if all(step.why == OVERWROTE for step in cycle) else "G1c"
    return "G-single" if anti == 1 else "G2"


def _because_of(step: Step) -> str:
    if step.why == READ_FROM:
        return f"{step.second} read {step.object} as {step.first} had written it"
    if step.why == BY_OTHERS:
        return f"{step.first} came before {step.second} by what others did in between"
    if step.why == OVERWROTE:
        return f"{step.second} overwrote {step.object} after {step.first}"
    return f"{step.first} read {step.object} before {step.second} wrote it"


def _make(question: Question) -> SerialisableTask:
    layout = question.layout
    return SerialisableTask(layout.world, layout.groups, parse_versions(question.info.settings.get("versions")))


TRANSACTIONS = Need(lambda results: not results.of(SerialisableResult).named, "no event names a transaction in txn")

SERIALISABLE = AuditCheck(
    guarantee=Guarantee.SERIALISABLE,
    holds="one order of the committed transactions explains what each of them read",
    needs=(TRANSACTIONS,),
    tasks=(TaskKind(SerialisableTask, SerialisableResult, judge_serialisable, _make, _cut, _settled),),
    count=lambda results: results.of(SerialisableResult).violations,
    undecided=lambda results: results.of(SerialisableResult).why,
    explain=_explain,
)
