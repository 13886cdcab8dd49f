"""Anomalies of transactions that no order can explain, such as dirty reads; and how the events of transactions are shown."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing.transactions import TransactionHistory
from quire.pipeline.auditing.verdicts import LoggedEvent, Witness
from quire.pipeline.labels import Labelled
from quire.trace.kinds import KINDS

_OPERATIONS = {"r": "reads", "w": "writes", "commit": "commits", "abort": "aborts"}

UNWRITTEN, UNCOMMITTED, INTERMEDIATE, BOTH = range(1, 5)
"""What no order explains: a read of a version that nobody wrote, that was not committed, or that its own writer overwrote; a
transaction that both committed and aborted."""


class Did(msgspec.Struct, frozen=True):
    """An event of a transaction."""

    txn: str
    op: str
    object: str
    member: int
    pos: int
    message: MessageId
    kind: int


class Wrong(msgspec.Struct, frozen=True):
    """The reads and transactions that no order explains: how many there are, and the kind and events of the first (for a read,
    the read, then the write that it saw)."""

    count: int = 0
    kind: int = 0
    did: tuple[Did, ...] = ()

    def joined(self, other: Wrong) -> Wrong:
        """Combine the results of two pieces."""
        first = min((one for one in (self, other) if one.kind), key=Wrong._place, default=self)
        return Wrong(self.count + other.count, first.kind, first.did)

    def _place(self) -> tuple[int, int, int]:
        return self.kind, self.did[0].member, self.did[0].pos


def not_said(history: TransactionHistory) -> str:
    """What the history does not record although the verdict needs it; empty if nothing is lacking."""
    return lacks(bool(history.committed.any()), int(np.maximum(history.lacking, 0).sum()), len(history.read))


def lacks(committed: bool, unsaid: int, reads: int) -> str:
    """The same, given whether anything committed, how many reads do not record what they saw, and how many do."""
    if not committed:
        return "no event says that a transaction committed: there is none with the op commit"
    if unsaid:
        return f"{unsaid} reads of committed transactions do not say what they saw"
    if not reads:
        return "no event says what a committed transaction read: there is no view with the op r"
    return ""


def say_unknown(objects: int) -> str:
    """That versions of so many objects have no known order."""
    return f"the order of the versions of {objects} objects is not known" if objects else ""


def find_wrong(rows: Labelled, history: TransactionHistory, *, ends: bool = True) -> Wrong:
    """Find reads that no order explains and, if `ends` is set, transactions that both committed and aborted."""
    txn = rows.codes["txn"]
    real = np.flatnonzero(history.source >= 0)
    writer = txn[history.write[history.source[real]]]
    foreign = writer != txn[history.read[real]]
    real, writer = real[foreign], writer[foreign]
    committed, final = history.committed[writer], history.final[history.source[real]]
    wrong = Wrong()
    for kind, reads in (
        (UNWRITTEN, np.flatnonzero(history.source == -2)),
        (UNCOMMITTED, real[~committed]),
        (INTERMEDIATE, real[committed & ~final]),
    ):
        if len(reads):
            read, source = int(history.read[reads[0]]), int(history.source[reads[0]])
            events = [read, *([int(history.write[source])] if source >= 0 else [])]
            wrong = _and(rows, wrong, len(reads), kind, events)
    both_ways = np.flatnonzero(history.committed & history.aborted & ends)
    if len(both_ways):
        events = [
            int(np.flatnonzero((txn == both_ways[0]) & (rows.codes["op"] == rows.words["op"].index(op)))[0])
            for op in ("commit", "abort")
        ]
        wrong = _and(rows, wrong, len(both_ways), BOTH, events)
    return wrong


def _and(rows: Labelled, wrong: Wrong, count: int, kind: int, events: Sequence[int]) -> Wrong:
    if wrong.kind:
        return Wrong(wrong.count + count, wrong.kind, wrong.did)
    return Wrong(wrong.count + count, kind, tuple(did_by(rows, event) for event in events))


def did_by(rows: Labelled, index: int) -> Did:
    return Did(
        rows.word("txn", index), rows.word("op", index), rows.word("object", index), rows.process(index), rows.pos(index),
        MessageId(int(rows.origin[index]), int(rows.seq[index])), int(rows.kind[index]),
    )  # fmt: skip


def because_wrong(wrong: Wrong) -> str:
    first, *others = wrong.did
    if wrong.kind == UNWRITTEN:
        return f"{first.txn} read {first.object} as {first.message} wrote it, but there is no such write"
    if wrong.kind == UNCOMMITTED:
        return f"{first.txn} read {first.object} as {others[0].txn} had written it, which never committed (G1a)"
    if wrong.kind == INTERMEDIATE:
        return f"{first.txn} read {first.object} as {others[0].txn} had written it before it wrote it again (G1b)"
    return f"{first.txn} committed at member {first.member}, but aborted at member {others[0].member}"


def witness_of_transactions(did: Sequence[Did], names: Sequence[str] = (), chain: Sequence[str] = ()) -> Witness:
    """The witness for these events; its messages are the transactions of the events, unless `names` are given."""
    return Witness(
        messages=tuple(names or dict.fromkeys(each.txn for each in did)),
        members=tuple(dict.fromkeys(each.member for each in did)),
        positions=tuple(LoggedEvent(each.member, KINDS[each.kind], _shown(each), each.pos, each.message) for each in did),
        chain=tuple(chain),
        names=tuple(dict.fromkeys(each.message for each in did)),
    )


def _shown(did: Did) -> str:
    """A message with what its transaction does by it, because the message's name alone tells a reader nothing."""
    what = _OPERATIONS.get(did.op, did.op)
    return f"{did.message} ({did.txn} {what}{f' {did.object}' if did.object else ''})"
