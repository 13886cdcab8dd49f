"""Serialisability of a run that goes on: transactions that nothing can contradict any more are forgotten, but not their order.

A later transaction is drawn into a cycle only by what it reads or overwrites. So of each object the last two versions are kept,
with the transactions that wrote them. The order that forgotten transactions gave those that are kept remains, as pairs. The
many that read a last version become one reader of it, which all precede that had to precede one of them: the next writer comes
after it. The cycles of what is left are therefore those of the whole run, except where a transaction slips a version in between
older ones, or reads one that is forgotten. The latter is known to come before the oldest version that is kept, so most of its
cycles are found nevertheless; as others might not be, `beyond` says so.

This needs versions in the order of timestamps. For others, and for objects beyond those of KEPT_MAX transactions, what is
forgotten is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

import numpy as np

from quire.pipeline.auditing.checks.serialisable import because, dependencies, judge_transactions
from quire.pipeline.auditing.followed_events import ENDS, OBJECT, OP, TXN, Logs, Worded, explained, labelled
from quire.pipeline.auditing.transactions import DELIVERED, find_transactions, timestamp_ranks, version_sequences
from quire.trace.kinds import SEND, VIEW

OLD_READS = "versions that were overwritten long before they were read are compared with the last versions only"
KEPT_MAX = 4096
"""The most transactions that are kept for the sake of later ones."""
_READERS = 10**15
"""Names of transactions that stand for several readers begin with this timestamp, or a later one."""


class FollowedTransactions:
    """Judges what is kept of a run, and forgets. `versions`: what the run's settings say about the order of versions."""

    def __init__(self, versions: str) -> None:
        self.beyond = ""
        """What could not be judged, as a sentence; empty if everything was."""
        self._versions = versions
        self._whole = True
        self._pairs: set[tuple[str, str]] = set()
        """Transactions of which the first precedes the second by way of forgotten ones."""
        self._oldest: dict[str, str] = {}
        """Of each object of which versions are forgotten, the transaction that wrote the oldest that is kept."""
        self._forgotten: dict[int, tuple[int, int]] = {}
        """The numbers of each origin's messages of which some are forgotten, and all others known: the first and the last."""
        self._forgot_at = 0
        """The logical time that had been reached when something was last forgotten."""
        self._numbers = count(_READERS)
        self._stand_for: dict[str, str] = {}

    def judge(self, logs: Logs, *, whole: bool) -> tuple[int, str]:
        self._whole = whole
        known, pairs = self._known(logs, whole=whole)
        rows, _ = labelled(_decided(known))
        found = judge_transactions(rows, self._versions, _codes(rows.words["txn"], pairs))
        if not found.violations:
            return 0, ""
        text = because(found)
        for name, object_ in self._stand_for.items():
            text = text.replace(name, f"a reader of {object_}")
        return found.violations, text

    def forget(self, logs: Logs, before: int) -> list[list[Worded]]:
        """What is kept of the events: all since the logical time `before`, and of older transactions what may matter later."""
        known, pairs = self._known(logs, whole=self._whole)
        rows, _ = labelled(_decided(known))
        names = rows.words["txn"]
        ranks = None if self._versions == DELIVERED else timestamp_ranks(names)
        if ranks is None or not names:
            self.beyond = "reads of versions, and changes of them, that are farther apart than the last events are not judged"
            return [[event for event in log if event.lamport >= before] for log in logs]
        history = find_transactions(rows)
        versions = version_sequences(rows, history, self._versions, ranks)
        edges, _ = dependencies(rows, history, versions)
        after: dict[str, set[str]] = {}
        for first, second in (*((names[one], names[other]) for one, other in edges.tolist()), *pairs):
            after.setdefault(first, set()).add(second)
        late = _late(logs, before)
        frontier, oldest = self._frontier(rows.words["object"], names, versions.object, versions.txn, late)
        kept = late | frontier
        newest = {rows.words["object"][thing]: names[txn] for thing, txn in zip(versions.object, versions.txn, strict=True)}
        readers = self._merge_readers(logs, kept, newest, after)
        kept |= {reader[0].words[TXN] or "" for reader in readers.values()}
        self._pairs = _shortened(after, kept)
        self._note_forgotten(logs, kept)
        self._oldest = {**self._oldest, **oldest}
        self._stand_for = {name: thing for name, thing in self._stand_for.items() if name in kept}
        remaining = [
            [event for event in log if event.words[TXN] in kept or (event.words[TXN] is None and event.lamport >= before)]
            for log in logs
        ]
        for (process, _), reader in readers.items():
            remaining[process] = sorted([*remaining[process], *reader], key=lambda event: event.lamport)
        return remaining

    def _known(self, logs: Logs, *, whole: bool) -> tuple[list[list[Worded]], set[tuple[str, str]]]:
        """The events that can be judged, and the pairs of transactions, with those of reads of forgotten versions."""
        if whole and not self._forgotten:
            return [list(log) for log in logs], self._pairs
        known, pairs = explained(logs), set(self._pairs)
        sent = {(event.origin, event.seq) for log in logs for event in log if event.kind == SEND}
        committed = {event.words[TXN] for log in logs for event in log if event.words[OP] == "commit"}
        for log in logs:
            for event in log:
                reader, oldest = event.words[TXN], self._oldest.get(event.words[OBJECT] or "")
                first, last = self._forgotten.get(event.origin, (0, -1))
                old = first <= event.seq <= last and (event.origin, event.seq) not in sent
                if event.kind == VIEW and old and reader in committed and oldest not in (None, reader):
                    if event.lamport > self._forgot_at:
                        self.beyond = self.beyond or OLD_READS
                    pairs.add((reader or "", oldest or ""))
        return known, pairs

    def _frontier(
        self, objects: Sequence[str], names: Sequence[str], of: np.ndarray, txn: np.ndarray, late: set[str]
    ) -> tuple[set[str], dict[str, str]]:
        """The writers of the last two versions of each object that are older than the `late` transactions, and for each object
        the older of the two, if there are older ones."""
        writers: dict[str, list[str]] = {}
        for thing, writer in zip(of.tolist(), txn.tolist(), strict=True):
            if names[writer] not in late:
                writers.setdefault(objects[thing], []).append(names[writer])
        frontier: set[str] = set()
        oldest: dict[str, str] = {}
        for thing, all_of in writers.items():
            if len(frontier) > KEPT_MAX:
                self.beyond = f"objects beyond those of {KEPT_MAX:,} transactions are judged among the last events only"
                self._oldest.pop(thing, None)
                continue
            frontier.update(all_of[-2:])
            if len(all_of) > 2 or thing in self._oldest:
                oldest[thing] = all_of[-2:][0]
        return frontier, oldest

    def _merge_readers(
        self, logs: Logs, kept: set[str], newest: dict[str, str], after: dict[str, set[str]]
    ) -> dict[tuple[int, str], list[Worded]]:
        """Of each object, by the process that recorded it, one reader of its newest version instead of all that are forgotten.
        `after`, which transaction precedes which, then has it, too."""
        writer = {(event.origin, event.seq): event.words[TXN] for log in logs for event in log if event.words[OP] == "w"}
        asked = {
            (event.origin, event.seq): event for log in logs for event in log if event.kind == SEND and event.words[OP] == "r"
        }
        ended = {event.words[TXN]: event for log in logs for event in log if event.words[OP] == "commit"}
        merged: dict[str, tuple[int, list[Worded]]] = {}
        for process, log in enumerate(logs):
            for event in log:
                reader, thing = event.words[TXN], event.words[OBJECT]
                if event.kind != VIEW or event.words[OP] != "r" or reader is None or thing is None or reader in kept:
                    continue
                message = event.origin, event.seq
                if reader not in ended or (
                    writer.get(message) != newest.get(thing) if thing in newest else message not in asked
                ):
                    continue
                if thing not in merged:
                    name = f"{next(self._numbers)}.0"
                    request = [asked[message]] if message in asked else []
                    own = [each._replace(words=_by(each, name)) for each in (*request, event, ended[reader])]
                    merged[thing] = process, own
                    self._stand_for[name] = thing
                after.setdefault(reader, set()).add(merged[thing][1][0].words[TXN] or "")
        return {(process, thing): own for thing, (process, own) in merged.items()}

    def _note_forgotten(self, logs: Logs, kept: set[str]) -> None:
        for log in logs:
            for event in log:
                self._forgot_at = max(self._forgot_at, event.lamport)
                if event.kind == SEND and event.words[TXN] not in kept:
                    first, last = self._forgotten.get(event.origin, (event.seq, event.seq))
                    self._forgotten[event.origin] = min(first, event.seq), max(last, event.seq)


def _by(event: Worded, name: str) -> tuple[str | None, ...]:
    return tuple(name if at == TXN else word for at, word in enumerate(event.words))


def _late(logs: Logs, before: int) -> set[str]:
    """The transactions that did something since this time, have not ended, or have read what may still be aborted."""
    every = [event for log in logs for event in log if event.words[TXN] is not None]
    ended = {event.words[TXN] for event in every if event.words[OP] in ENDS}
    open_writes = {(each.origin, each.seq) for each in every if each.words[OP] == "w" and each.words[TXN] not in ended}
    late = {event.words[TXN] for event in every if event.lamport >= before or event.words[TXN] not in ended}
    late |= {event.words[TXN] for event in every if event.kind == VIEW and (event.origin, event.seq) in open_writes}
    return {name for name in late if name is not None}


def _shortened(after: dict[str, set[str]], kept: set[str]) -> set[tuple[str, str]]:
    """The order of those that are kept, with as few pairs as possible, of a graph without cycles."""
    names = sorted(kept)
    bit = {name: 1 << at for at, name in enumerate(names)}
    next_kept: dict[str, int] = {}
    reaches: dict[str, int] = {}
    pairs: set[tuple[str, str]] = set()
    for name in _effects_first(after):
        near = far = 0
        for each in after.get(name, ()):
            near |= bit.get(each) or next_kept.get(each, 0)
        for at in _ones(near):
            far |= reaches.get(names[at], 0)
        # What is reached by way of another that is reached needs no pair of its own.
        next_kept[name], reaches[name] = near & ~far, near | far
        if name in bit:
            pairs.update((name, names[at]) for at in _ones(near & ~far))
    return pairs


def _ones(bits: int) -> Iterable[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _effects_first(after: dict[str, set[str]]) -> list[str]:
    """All transactions, each after those that it precedes."""
    order: list[str] = []
    seen: set[str] = set()
    for root in after:
        stack = [(root, iter(after.get(root, ())))] if root not in seen else []
        seen.add(root)
        while stack:
            name, rest = stack[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                order.append(name)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(after.get(following, ()))))
    return order


def _codes(names: Sequence[str], pairs: set[tuple[str, str]]) -> np.ndarray:
    code = {name: at for at, name in enumerate(names)}
    found = [(code[one], code[other]) for one, other in sorted(pairs) if one in code and other in code]
    return np.array(found, np.int64).reshape(-1, 2)


def _decided(logs: Logs) -> list[list[Worded]]:
    """The events without reads of versions whose writer may still commit."""
    every = [event for log in logs for event in log]
    ended = {event.words[TXN] for event in every if event.words[OP] in ENDS}
    open_writes = {(event.origin, event.seq) for event in every if event.words[OP] == "w" and event.words[TXN] not in ended}
    return [[event for event in log if event.kind != VIEW or (event.origin, event.seq) not in open_writes] for log in logs]
