"""Checks of transactions and object calls on a live run: a sliding window of its last events is judged like a whole trace.

There is no bound on how long a transaction or a call must be remembered because a later one may contradict it. So only the
last EVENTS_MAX events are kept, starting at the same logical time at all processes. To avoid false alarms about what was
forgotten, events that refer to a message sent before that time are left out. A violation whose events are farther apart is
left to the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from quire.model.orders import Guarantee
from quire.pipeline.auditing.calls import COLUMNS
from quire.pipeline.auditing.checks import serialisable, significant
from quire.pipeline.auditing.checks.serialisable import judge_transactions
from quire.pipeline.auditing.checks.significant import judge_calls, parse_conflicts
from quire.pipeline.auditing.transactions import parse_versions
from quire.pipeline.labels import Labelled
from quire.trace.kinds import DELIVER, SEND, VIEW

_OP, _TXN = COLUMNS.index("op"), COLUMNS.index("txn")
_ENDS = ("commit", "abort")
"""Operations that record how a transaction ended; they count wherever they are recorded."""

EVENTS_MAX = 20_000

Judge = Callable[[Labelled, np.ndarray], tuple[int, str]]
"""Judges events: returns the number of violations, and the first one as a sentence. The array holds the number of the first
message that each process sends."""


class Worded(NamedTuple):
    """An event with the values of its text columns, in the order of COLUMNS."""

    kind: int
    origin: int
    seq: int
    lamport: int
    words: tuple[str | None, ...]


class WindowFollower:
    """Keeps the verdict of one check up to date while a run goes on. Processes are identified by their numbers."""

    def __init__(self, judge: Judge, processes: int) -> None:
        self.messages = self.deliveries = 0
        self.count = 0
        """The largest number of violations found in the window so far."""
        self.because = ""
        """The first violation that was found, as a sentence."""
        self._judge = judge
        self._kept: list[list[Worded]] = [[] for _ in range(processes)]
        self._pending: list[list[Worded]] = [[] for _ in range(processes)]
        self._reached = [0] * processes
        self._live: set[int] = set()
        self._whole = True
        """Whether all events since the beginning are known."""
        self._heard: set[int] = set()
        """The processes heard from since the last judgement."""

    def take(self, process: int, events: Sequence[Worded], reached: int, *, whole: bool = True) -> None:
        """Add a process's next events; its later ones will have logical times greater than `reached`. `whole`: whether no event
        of the process is missing before these."""
        self._whole &= whole
        self._pending[process] += events
        last = events[-1].lamport if events else 0
        self._reached[process] = max(self._reached[process], reached, last)
        self._live.add(process)
        self._heard.add(process)

    def gone(self, process: int) -> None:
        """A process is gone: do not wait for it, and assume that its last sends may be unknown."""
        self._live.discard(process)
        self._whole = False

    def oldest_waiting(self) -> int | None:
        return min((events[0].lamport for events in self._pending if events), default=None)

    def advance(self) -> bool:
        """Judge up to the logical time that all processes have reached, once each of them was heard from again; return whether
        there was anything new."""
        if not self._live or not self._live <= self._heard:
            return False
        self._heard.clear()
        until, further = min(self._reached[process] for process in self._live), False
        for kept, pending in zip(self._kept, self._pending, strict=True):
            ready = next((at for at, event in enumerate(pending) if event.lamport > until), len(pending))
            self.messages += sum(event.kind == SEND for event in pending[:ready])
            self.deliveries += sum(event.kind == DELIVER for event in pending[:ready])
            kept += pending[:ready]
            del pending[:ready]
            further |= ready > 0
        if further:
            self._forget()
            self._judge_kept()
        return further

    def _forget(self) -> None:
        over = sum(map(len, self._kept)) - EVENTS_MAX
        if over <= 0:
            return
        from_then = sorted(event.lamport for kept in self._kept for event in kept)[over]
        self._kept = [[event for event in kept if event.lamport >= from_then] for kept in self._kept]
        self._whole = False

    def _judge_kept(self) -> None:
        found, because = self._judge(*labelled(_decided(self._kept if self._whole else _explained(self._kept))))
        self.count = max(self.count, found)
        self.because = self.because or because


def _explained(logs: Sequence[Sequence[Worded]]) -> list[list[Worded]]:
    """The events without those that refer to a message whose send is not known."""
    sent = {(event.origin, event.seq) for log in logs for event in log if event.kind == SEND}
    return [[event for event in log if event.words[_OP] in _ENDS or (event.origin, event.seq) in sent] for log in logs]


def _decided(logs: Sequence[Sequence[Worded]]) -> list[list[Worded]]:
    """The events without reads of versions whose writer may still commit."""
    every = [event for log in logs for event in log]
    ended = {event.words[_TXN] for event in every if event.words[_OP] in _ENDS}
    open_writes = {(event.origin, event.seq) for event in every if event.words[_OP] == "w" and event.words[_TXN] not in ended}
    return [[event for event in log if event.kind != VIEW or (event.origin, event.seq) not in open_writes] for log in logs]


def labelled(logs: Sequence[Sequence[Worded]]) -> tuple[Labelled, np.ndarray]:
    """The events of all processes in the audit's form, and the number of the first message that each process sent."""
    first = [next((event.seq for event in log if event.kind == SEND), 0) for log in logs]
    every = [event for log in logs for event in log]
    start = np.concatenate(([0], np.cumsum([len(log) for log in logs]))).astype(np.int64)
    codes, words = {}, {}
    for at, name in enumerate(COLUMNS):
        words[name] = sorted({word for event in every if (word := event.words[at]) is not None})
        code: dict[str | None, int] = {word: number for number, word in enumerate(words[name])}
        codes[name] = np.array([code.get(event.words[at], -1) for event in every], np.int32)
    numbers = np.array([event[:4] for event in every], np.int64).reshape(-1, 4)
    kind, origin, seq, lamport = (numbers[:, column].copy() for column in range(4))
    rows = Labelled(start, kind.astype(np.int8), origin.astype(np.int32), seq, lamport, True, codes, words)
    return rows, np.array(first, np.int64)


def follow_words(promised: Guarantee, settings: Mapping[str, object], processes: int) -> WindowFollower:
    """A follower for a guarantee about transactions, or about calls of objects."""
    if promised is Guarantee.SERIALISABLE:
        versions = parse_versions(settings.get("versions"))

        def judge_store(rows: Labelled, _: np.ndarray) -> tuple[int, str]:
            found = judge_transactions(rows, versions)
            return found.violations, serialisable.because(found) if found.violations else ""

        return WindowFollower(judge_store, processes)
    conflicts = parse_conflicts(settings) or {}
    everybody = np.ones(processes, np.bool_)

    def judge_objects(rows: Labelled, first: np.ndarray) -> tuple[int, str]:
        found = judge_calls(rows, conflicts, everybody, first)
        return found.violations, significant.because(found) if found.violations else ""

    return WindowFollower(judge_objects, processes)
